"""The guest suite: guests that each expose one way in which two runs could differ, one test each.

What the right values are is in test_sandbox.py; here it is that they are the same wherever the guest
runs, and replay. The tests write the second table of docs/determinism.md.
"""

import json
from dataclasses import dataclass

import pytest

import asking
import tables
import wasm
from circumstances import OF_THE_SESSION, PROBES, outputs
from pug import CORRUPT, DONE, LIMIT, NOT_FOUND, Home, guest


@dataclass
class Item:
    """One of them."""

    name: str
    tells: str
    probes: list


def all_of(*names):
    """Probes by their names, or by what their names begin with."""
    found = [
        probe
        for probe in PROBES
        if any(probe == name or probe.startswith(name + ".") for name in names)
    ]
    assert found
    return found


ITEMS = [
    Item(
        "hash-map order",
        "the order of a folded map, read after `decide` made others",
        all_of("typed.hashmap-order", "wasip1.hashmap-order", "command.hashmap-order"),
    ),
    Item(
        "arguments and environment",
        "its arguments in order, its environment, its raw standard input",
        all_of("command.frame", "typed.session", "typed.entries", "wasip1.entries"),
    ),
    Item(
        "memory growth",
        "how far memories and tables grow, up to the maxima that they declare; a limit ends the step instead",
        all_of("max", "typed.memory-leap", "command.allocate", "text.growth"),
    ),
    Item(
        "write permits",
        "how much each write takes as standard output fills",
        all_of("argument.stdout-permits"),
    ),
    Item(
        "standard input in chunks",
        "how many bytes each read gives, and past the end",
        all_of(
            "argument.stdin-chunks",
            "argument.stdin-past-end",
            "argument.no-read",
            "argument.partial-read",
            "command.close-streams",
        ),
    ),
    Item(
        "clocks",
        "all clocks, how often it can look at them in 10 ms, and what both say of a sleep",
        all_of(
            "command.clocks",
            "command.busy-wait",
            "command.yield",
            "command.sleep",
            "command.sleep-long",
        ),
    ),
    Item(
        "poll order",
        "which of several waits is over first, with ready streams and equal times among them",
        all_of("command.poll"),
    ),
    Item(
        "random numbers",
        "all random interfaces, in instantiation, `fold` and `decide`",
        all_of("wasip1.entropy", "typed.entropy", "command.random"),
    ),
    Item(
        "denied calls",
        "the errors of files, sockets, names, threads and processes, through the adapter of preview 1, too",
        all_of("command.denied", "command.denied-raw"),
    ),
    Item(
        "object reads",
        "reads of hashes that are not in the log, past the end, in pieces, and all at once",
        all_of(
            "typed.read-whole",
            "typed.read-past-end",
            "typed.read-unknown",
            "typed.read-pieces",
            "objects",
        ),
    ),
    Item("two worlds", "exports both worlds: the typed one runs", all_of("text.both-worlds")),
    Item(
        "terminals and exit",
        "terminals, preopened folders, `exit(0)` after an output",
        all_of("command.isatty", "command.preopens", "command.exit"),
    ),
    Item(
        "NaN bits",
        "the bits of every NaN that arithmetic makes, scalar and vector",
        all_of("typed.nan", "wasip1.nan", "text.floats"),
    ),
    Item(
        "relaxed SIMD",
        "every operation that processors may answer differently",
        all_of("text.relaxed-simd"),
    ),
    Item("calls of `decide`", "how often it was called in its instance", all_of("typed.decides")),
]

# Those that ask by HTTP; the retries after a kill are in test_effects.py.
HTTP = [
    Item("a request from clock and chance", "a request made of both", ["clock-and-chance"]),
    Item(
        "two requests at a time",
        "in which order they are answered, the second one faster",
        ["two-at-a-time"],
    ),
    Item("pieces of a response", "how often it was not ready, and how long its pieces are", ["pieces"]),
    Item("a request against timers", "which of them was first", ["timers"]),
    Item("an echoed secret", "what a server returns of the `Authorization` that it got", ["secret"]),
]

COLUMNS = {
    "elsewhere": "elsewhere",
    "limits": "limits",
    "warm": "cached",
    "fresh": "fresh",
}


@pytest.fixture(scope="session")
def replayed(observed, tmp_path_factory):
    """All sessions of the probes as one bundle, replayed in a home that has nothing but the bundle."""
    _, cold = observed
    bundle = tmp_path_factory.mktemp("bundle") / "all.pug"
    cold.ok("bundle", "-o", bundle, *PROBES)
    elsewhere = Home(tmp_path_factory.mktemp("replay"), "Asia/Kathmandu", LANG="tr_TR.UTF-8")
    reports = {}
    for flags in [[], ["--cold", "--jobs", "4"], ["--interpreted", "--jobs", "1"]]:
        result = elsewhere.run("replay", "--json", *flags, bundle, timeout=300)
        assert result.code == DONE, f"replay {flags}: {result.err}\n{result.out}"
        reports[" ".join(flags[:1])] = [json.loads(line) for line in result.out.splitlines()]
    return reports


@pytest.fixture(scope="module")
def cells():
    """What the tests found of each item."""
    return {}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name.replace(" ", "-"))
def test_item(seen, replayed, cells, item):
    row = []
    for circumstances in COLUMNS:
        own = circumstances == "fresh" and any(map(OF_THE_SESSION.search, item.probes))
        for probe in item.probes:
            here, there = (outputs(seen, probe, name) for name in ("cold", circumstances))
            if not (circumstances == "fresh" and OF_THE_SESSION.search(probe)):
                assert there == here
        row.append("its own" if own else "same")
    for reports in replayed.values():
        assert sum(report["identical"] for report in reports) == len(PROBES)
        row.append("same")
    cells[item.name] = row


@pytest.fixture(scope="session")
def asked(tmp_path_factory):
    return asking.observe_all(tmp_path_factory.mktemp)


@pytest.mark.parametrize("item", HTTP, ids=lambda item: item.name.replace(" ", "-"))
def test_item_that_asks(asked, cells, item):
    seen, reports = asked
    [probe] = item.probes
    row = []
    for circumstances in COLUMNS:
        own = circumstances == "fresh" and probe == "clock-and-chance"
        assert (seen[circumstances][probe] == seen["cold"][probe]) is not own
        row.append("its own" if own else "same")
    for report in reports:
        assert sum(session["identical"] for session in report) == len(asking.PROBES)
        row.append("same")
    cells[item.name] = row


def test_a_limit_is_no_value_that_a_guest_can_read(home):
    """The guest that counts its pages is told its own maximum, or nothing at all."""
    for flags, code in [
        ([], LIMIT),
        (["--limit", "memory=1MiB"], LIMIT),
        (["--limit", "memory=900MiB", "--timeout", "50s"], LIMIT),
    ]:
        session = home.start({"probe": "memory-hog"})
        assert "memory limit" in home.fails(
            code, "run", "--once", *flags, "--", guest("typed-probe")
        )
        assert len(home.bucket.log(session)) == 1


def test_the_depth_of_the_stack_is_none_either(home):
    home.start({"n": 1})
    file = home.path / "recursion.wasm"
    file.write_bytes(wasm.text("recursion"))
    for flags in [[], ["--limit", "memory=1GiB"], ["--timeout", "50s"]]:
        assert "call stack limit of 1MiB" in home.fails(LIMIT, "run", "--once", *flags, "--", file)


def test_of_two_worlds_the_typed_one_runs(seen):
    [(_, body)] = outputs(seen, "text.both-worlds", "cold")
    assert body == b"typed"


def test_random_numbers_by_phase(seen):
    """Insecure ones and seeds follow from the component alone, secure ones from the session, too."""
    [(_, body), _] = outputs(seen, "wasip1.entropy", "cold")
    [(_, other), _] = outputs(seen, "wasip1.entropy", "fresh")
    here, there = json.loads(body)["saw"], json.loads(other)["saw"]
    looks = [here["start"], *here["fold"], *here["decide"]]
    for number in ("insecure", "seed", "secure"):
        assert [look[number] for look in [there["start"], *there["fold"]]] == [
            look[number] for look in [here["start"], *here["fold"]]
        ]
    for number in ("insecure", "seed"):
        assert [look[number] for look in there["decide"]] == [
            look[number] for look in here["decide"]
        ]
    assert there["decide"][0]["secure"] != here["decide"][0]["secure"]
    drawn = [json.dumps(look["secure"]) for look in looks]
    assert len(set(drawn)) == len(drawn)


def test_a_store_that_fails_or_lies_ends_the_step(home):
    """No read answers with what is not the object; no failure is a value that the guest gets."""
    body = "x" * 5_000
    session = home.start({"probe": "read-whole"})
    hash = home.push(body)
    object = home.bucket.path / "objects" / hash
    before = home.bucket.files("sessions")
    object.write_text("y" * 5_000)
    assert hash in home.fails(CORRUPT, "run", "--once", "--", guest("typed-probe"))
    object.unlink()
    code = home.run("run", "--once", "--", guest("typed-probe")).code
    assert code in (CORRUPT, NOT_FOUND)
    assert home.bucket.files("sessions") == before
    object.write_text(body)
    home.ok("run", "--once", "--", guest("typed-probe"))
    saw = json.loads(home.bucket.bodies(session)[2])["saw"]
    assert (saw["size"], saw["huge-length"]["len"]) == (5_000, 5_000)


def test_objects_of_other_sessions_are_not_there(home):
    """Known by its hash, and in the same bucket: still not this session's."""
    home.start({"n": 1})
    hash = home.push("secret " * 1_000)
    session = home.start({"probe": "read-hash", "hash": hash})
    home.push("other " * 1_000)
    home.ok("run", "--once", "--", guest("typed-probe"))
    denied = {"error": "not in this session's log"}
    saw = json.loads(home.bucket.bodies(session)[2])
    assert saw == {"probe": "read-hash", "saw": [denied, denied]}


def test_the_table_in_the_docs_is_what_was_found(cells):
    items = [*ITEMS, *HTTP]
    if len(cells) < len(items):
        pytest.skip(f"only {len(cells)} of {len(items)} items were tried")
    columns = [*COLUMNS.values(), "replay", "`--cold`", "`--interpreted`"]
    text = f"| | the guest tells | {' | '.join(columns)} |\n{'|---' * (len(columns) + 2)}|\n"
    for item in items:
        text += f"| {item.name} | {item.tells} | {' | '.join(cells[item.name])} |\n"
    tables.check("determinism.md", "guests", text)
