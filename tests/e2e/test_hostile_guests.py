"""Guests that take too much, end badly or answer nonsense: a named error, and nothing committed."""

import json
import re
import subprocess
import time

import pytest

import tables
from hostile_guests import COMMAND, GROUPS, MAX, TYPED
from pug import DONE, FAILED, LIMIT, PAUSE, guest

ALL = [hostile for guests in GROUPS.values() for hostile in guests]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A compiled-code cache for the whole module."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def shared_cache(home, cache):
    home.env["XDG_CACHE_HOME"] = cache


@pytest.fixture(scope="module")
def found():
    """What each guest came to, in the words of the table."""
    return {}


@pytest.mark.parametrize("hostile", ALL, ids=lambda hostile: hostile.name)
def test_contained(home, found, hostile):
    """A named error or a harmless step, memory bounded, and the session as good as before."""
    event = hostile.event or {"n": 1}
    session = home.start(event)
    before = home.bucket.files("sessions")
    begun = time.monotonic()
    file = hostile.make(home.path)
    result, peak = home.measured("run", "--once", *hostile.flags, "--", file)
    assert result.code == hostile.code, result.err
    assert "panicked at host/" not in result.err
    assert time.monotonic() - begun < 100
    assert peak < hostile.memory, f"{peak} MiB"
    added = []
    if hostile.code == DONE:
        added = home.bucket.log(session)[1:]
        assert len(added) == {"nothing": 0, "one event": 1}[hostile.says]
    else:
        assert result.out == ""
        assert re.search(hostile.says, result.err, re.S), result.err
        assert len(result.err) < 100_000
        assert home.bucket.files("sessions") == before
    assert_harmless(result.err)
    home.ok("run", "--once", "--", guest("counter"))
    entries = home.bucket.check(session)
    assert json.loads(home.bucket.body(entries[-1])) == {"count": 1 + len(added)}
    assert home.ok("verify") == ""
    found[hostile.name] = told(result, hostile, file)


def told(result, hostile, file):
    """What the user is told, where it is the same in each run."""
    if result.code == DONE:
        return {"nothing": "nothing: the step ends well", "one event": "the event, escaped"}[
            hostile.says
        ]
    [line] = [line for line in result.err.splitlines() if line.startswith("error: ")]
    line = line.removeprefix("error: ").replace(str(file), "FILE")
    line = re.sub(r"^handler `[^`]*` failed: |^cannot use `FILE` as a handler: ", "", line)
    # Where in which build of which crate.
    line = re.sub(r", in [^`]*$|, in `.*| \(at offset .*", "", line)
    line = line if len(line) <= 160 else line[:160] + "…"
    return f"{escaped(line)}"


def escaped(line):
    """As code in a table's cell."""
    return "``" + line.replace("|", "\\|") + "``" if "`" in line else f"`{line}`"


def assert_harmless(text):
    """Fails if a terminal would act on it."""
    hostile = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u202e\u202c\u2066\u2069"}
    assert not set(text) & (hostile - {"\n"})


def test_the_table_in_the_docs_is_what_was_found(found):
    if len(found) < len(ALL):
        pytest.skip(f"only {len(found)} of {len(ALL)} guests were run")
    text = ""
    for group, guests in GROUPS.items():
        text += f"### {group}\n\n| guest | what it tries | exit code | what the user is told |\n|---|---|---|---|\n"
        for hostile in guests:
            text += (
                f"| {hostile.name} | {hostile.tries} | {hostile.code} | {found[hostile.name]} |\n"
            )
        text += "\n"
    tables.check("hostile-guests.md", "guests", text)


ESCAPING = [
    (TYPED, name)
    for name in ["refuse-fold-escapes", "refuse-escapes", "log-escapes", "pause-escapes"]
]


@pytest.mark.parametrize("file, probe", [*ESCAPING, (COMMAND, "stderr-escapes")])
def test_what_a_guest_says_cannot_move_the_terminal(home, file, probe):
    session = home.start({"probe": probe})
    result = home.run("run", "--once", "--", guest(file))
    assert result.code == (FAILED if probe.startswith("refuse") else DONE)
    printed = result.err + home.ok("log", "-A") + home.ok("objects", "-s", session)
    assert "desrever" in printed
    assert_harmless(printed)
    assert not re.search("^two", printed, re.M) or probe == "stderr-escapes"


def test_a_long_refusal_is_cut(home, unchanged):
    home.start({"probe": "refuse-long"})
    unchanged()
    message = home.fails(FAILED, "run", "--once", "--", guest(TYPED))
    assert len(message) < 100_000
    assert re.search(r"…|\.\.\.|cut|more", message)


@pytest.mark.parametrize(
    "event, limits",
    [
        ({"probe": "log-flood", "count": 10}, ["--limit", "log-lines=10"]),
        ({"probe": "log-huge", "bytes": 100_000}, []),
        ({"probe": "outputs-flood", "count": 10}, ["--limit", "outputs=11"]),
        ({"probe": "output-huge", "bytes": 5 << 20}, []),
    ],
    ids=lambda value: value.get("probe", "") if isinstance(value, dict) else "",
)
def test_under_the_limit_it_is_a_normal_step(home, event, limits):
    session = home.start(event)
    result = home.run("run", *limits, "--", guest(TYPED))
    assert result.err.splitlines()[-1] == "1 step, paused"
    assert (
        len(home.bucket.log(session))
        == 1 + (event["count"] if event["probe"] == "outputs-flood" else 1) + 1
    )
    if event["probe"] == "log-huge":
        assert max(map(len, result.err.splitlines())) < 10_000


def test_the_module_s_own_maximum_is_its_own_word(home):
    for file, probe, saw in [
        (MAX, "memory-hog", {"pages": 64}),
        (MAX, "memory-leap", {"grew": False}),
        # More than any memory of 32 bits can have, or Rust asks for.
        (TYPED, "memory-leap", {"grew": False}),
        (COMMAND, "allocate", {"refused": True}),
    ]:
        session = home.start({"probe": probe})
        home.ok("run", "--", guest(file))
        assert home.bucket.events(session)[1]["saw"] == saw


def test_outputs_keep_their_attributes(home):
    given = {
        "name": "n",
        "content-type": "a/b",
        "content-encoding": "gzip",
        "schema-url": "type.googleapis.com/a.B",
    }
    session = home.start({"probe": "output-attributes", **given})
    home.ok("run", "--", guest(TYPED))
    entry = home.bucket.log(session)[1]
    assert {key: entry[key] for key in given} == given
    session = home.start({"probe": "output-attributes"})
    home.ok("run", "--", guest(TYPED))
    assert set(home.bucket.log(session)[1]) == {"hash", "size", "data"}


def test_a_metadata_name_given_twice(home):
    session = home.start({"probe": "output-metadata"})
    result = home.run("run", "--once", "--", guest(TYPED))
    if result.code == DONE:
        assert home.bucket.log(session)[1]["metadata"] == {"a": "2", "b": "3"}
    else:
        assert (result.code, "`b`" in result.err) == (FAILED, True)
        assert len(home.bucket.log(session)) == 1


def test_pauses_written_as_outputs(home):
    session = home.start({"probe": "output-pause"})
    result = home.run("run", "--max-steps", "3", "--", guest(TYPED))
    if result.code == DONE:
        assert result.err.splitlines()[-1] == "1 step, paused"
    home.push([1])
    home.ok("run", "--once", "--", guest("counter"))
    home.bucket.check(session)


def test_empty_and_silent_steps_end_the_turn(home):
    for file, probe in [(TYPED, "empty"), (COMMAND, "silent")]:
        session = home.start({"probe": probe})
        assert home.run("run", "--", guest(file)).err.splitlines()[-1] == "1 step, at rest"
        assert len(home.bucket.log(session)) == 1


def test_exit_zero_is_success(home):
    session = home.start({"probe": "exit", "code": 0})
    home.ok("run", "--once", "--", guest(COMMAND))
    assert home.bucket.events(session)[1] == {"probe": "exit", "saw": None}


@pytest.mark.parametrize("flags, decides", [([], [1, 2, 3, 4, 5]), (["--cold"], [1] * 5)])
def test_continue_is_bounded_by_max_steps(home, flags, decides):
    session = home.start({"probe": "continue"})
    result = home.run("run", *flags, "--max-steps", "5", "--", guest(TYPED))
    assert result.err.splitlines()[-1] == "5 steps, due"
    assert home.bucket.events(session)[1:] == [{"decides": number} for number in decides]


def test_sleep(home):
    session = home.start({"probe": "sleep", "ms": 1500})
    home.ok("run", "--once", "--", guest(TYPED))
    tip = home.bucket.tip(session)
    seconds = [
        float(tip[key][17:23]) if key == "created" else float(tip["last"]["wake"][17:23])
        for key in ("created", "wake")
    ]
    assert round((seconds[1] - seconds[0]) % 60, 3) == 1.5
    assert [e.get("content-type") for e in tip["objects"]] == [PAUSE]


def test_a_sleep_for_ever_does_not_overflow(home):
    session = home.start({"probe": "sleep-forever"})
    result = home.run("run", "--once", "--", guest(TYPED))
    if result.code == DONE:
        assert home.bucket.tip(session)["last"]["wake"] <= "9999-12-31T23:59:59.999Z"
        assert "sleeping until" in home.ok("context")
    else:
        assert result.code in (FAILED, LIMIT)
    home.push([1])
    home.ok("run", "--once", "--", guest("counter"))


def test_a_corrupt_object_ends_the_step(home, unchanged):
    session = home.start({"probe": "read-whole"}, "x" * 5000)
    file = home.bucket.path / "objects" / home.bucket.log(session)[1]["hash"]
    unchanged()
    for damage in (b"y" * 5000, b"x" * 4999, b"x" * 5001, b""):
        file.write_bytes(damage)
        message = home.fails(5, "run", "--once", "--", guest(TYPED))
        assert file.name in message


def test_an_interrupted_guest(home, unchanged):
    home.start({"probe": "spin-decide"})
    home.ok("run", "-s", home.start({"probe": "decides"}), "--", guest(TYPED))
    home.start({"probe": "spin-decide"})
    unchanged()
    process = home.spawn("run", "--", guest(TYPED), stderr=subprocess.PIPE)
    time.sleep(0.7)
    process.send_signal(2)
    assert process.wait(timeout=5) == 130
    assert process.stderr.read().startswith(b"error: ended by a signal")
