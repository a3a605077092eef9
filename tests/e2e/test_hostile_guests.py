"""Guests that take too much, end badly or answer nonsense: a named error, and nothing committed."""

import json
import re
import subprocess
import time

import pytest

from pug import DONE, FAILED, LIMIT, PAUSE, guest

TYPED, MAX, WASIP1, COMMAND = (
    "typed-probe",
    "typed-probe-max",
    "typed-probe-wasip1",
    "command-probe",
)
FAST = ["--timeout", "1s"]

# Guest, event, flags of `run`, exit code, what the error says.
HOSTILE = [
    (
        TYPED,
        {"probe": "spin-fold"},
        FAST,
        LIMIT,
        r"over the time limit of 1000 ms; `--timeout` raises it",
    ),
    (TYPED, {"probe": "spin-decide"}, FAST, LIMIT, r"time limit"),
    (COMMAND, {"probe": "spin"}, FAST, LIMIT, r"time limit"),
    (
        TYPED,
        {"probe": "read-forever"},
        ["--limit", "object-reads=4KiB"],
        LIMIT,
        r"object-reads limit of 4KiB.*--limit object-reads=8KiB",
    ),
    (TYPED, {"probe": "trap-fold"}, [], FAILED, r"trapped: .*unreachable"),
    (TYPED, {"probe": "trap"}, [], FAILED, r"trapped: .*unreachable"),
    (TYPED, {"probe": "panic"}, [], FAILED, r"trapped"),
    (COMMAND, {"probe": "trap"}, [], FAILED, r"trapped: .*unreachable"),
    (COMMAND, {"probe": "panic"}, [], FAILED, r"(?s)the probe panics.*(trapped|exited)"),
    (TYPED, {"probe": "refuse-fold"}, [], FAILED, r"answered with an error: refused at 0"),
    (TYPED, {"probe": "refuse"}, [], FAILED, r"answered with an error: refused on purpose"),
    (TYPED, {"probe": "nothing of the kind"}, [], FAILED, r"no such probe"),
    (COMMAND, {"probe": "nothing of the kind"}, [], FAILED, r"(?s)no such probe.*exited with code"),
    (
        TYPED,
        {"probe": "memory-hog"},
        ["--limit", "memory=64MiB"],
        LIMIT,
        r"memory limit of 64MiB; `--limit memory=128MiB` raises it",
    ),
    (MAX, {"probe": "memory-hog"}, ["--limit", "memory=2MiB"], LIMIT, r"memory limit of 2MiB"),
    (COMMAND, {"probe": "memory-hog"}, [], LIMIT, r"memory limit of 256MiB"),
    # Rust's stack is part of its memory, and the first to run out.
    (TYPED, {"probe": "stack"}, [], FAILED, r"trapped: out of bounds memory access"),
    (COMMAND, {"probe": "stack"}, [], FAILED, r"trapped: out of bounds memory access"),
    (
        TYPED,
        {"probe": "log-flood"},
        ["--limit", "log-lines=20"],
        LIMIT,
        r"log-lines limit of 20 a step",
    ),
    (
        COMMAND,
        {"probe": "stderr-flood"},
        ["--limit", "stderr=64KiB"],
        LIMIT,
        r"stderr limit of 64KiB",
    ),
    (TYPED, {"probe": "outputs-flood"}, [], LIMIT, r"--limit \w+="),
    (
        TYPED,
        {"probe": "outputs-flood", "count": 60},
        ["--limit", "outputs=50"],
        LIMIT,
        r"outputs limit of 50 a step",
    ),
    (
        TYPED,
        {"probe": "output-huge", "bytes": 100 << 20},
        [],
        LIMIT,
        r"output limit of 64MiB a step",
    ),
    (COMMAND, {"probe": "stdout-flood"}, [], LIMIT, r"outputs? limit"),
    (
        COMMAND,
        {"probe": "stdout-endless-line"},
        ["--limit", "output=1MiB"],
        LIMIT,
        r"output limit of 1MiB",
    ),
    (
        COMMAND,
        {"probe": "stdout-huge", "bytes": 9 << 20},
        ["--limit", "output=4MiB"],
        LIMIT,
        r"output limit of 4MiB",
    ),
    (TYPED, {"probe": "pause-long"}, ["--limit", "output=4MiB"], LIMIT, r"output limit of 4MiB"),
    (TYPED, {"probe": "output-extra"}, [], FAILED, r"later"),
    (TYPED, {"probe": "decision-extra"}, [], FAILED, r"later"),
    (COMMAND, {"probe": "random-huge"}, ["--limit", "memory=1GiB"], LIMIT, r"read limit of 16MiB"),
    (COMMAND, {"probe": "handles"}, ["--limit", "memory=2GiB"], LIMIT, r"handles limit of 10000"),
    (COMMAND, {"probe": "exit", "code": 3}, [], FAILED, r"exited with code"),
    *[
        (
            COMMAND,
            {"probe": "raw-stdout", "text": text},
            [],
            FAILED,
            rf"output 1 cannot be used.*{error}|line 1.*{error}",
        )
        for text, error in [
            ("oops", "not JSON"),
            ("[1]", "not a JSON object"),
            ('{"name":"x"}', "neither"),
            ('{"data":"MQ==","uri":"s3://a/b"}', "both"),
            ('{"data":"*"}', "base64"),
            ('{"data":"MQ==","fork":1}', "`fork`"),
            ('{"uri":"file:///etc/passwd"}', "`uri`, which a handler in the sandbox cannot"),
            ('{"data":"MQ==","session":"x"}', "`session`"),
        ]
    ],
    (
        COMMAND,
        {"probe": "raw-base64", "text": "eyJkYXRhIjoiTVE9PSIsIm5hbWUiOiL/In0K"},
        [],
        FAILED,
        r"not JSON",
    ),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A compiled-code cache for the whole module."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def shared_cache(home, cache):
    home.env["XDG_CACHE_HOME"] = cache


@pytest.mark.parametrize(
    "file, event, flags, code, expected",
    HOSTILE,
    ids=[f"{case[0]} {json.dumps(case[1])[10:60]}" for case in HOSTILE],
)
def test_contained(home, file, event, flags, code, expected):
    session = home.start(event)
    before = home.bucket.files("sessions")
    begun = time.monotonic()
    message = home.fails(code, "run", "--once", *flags, "--", guest(file), timeout=90)
    assert re.search(expected, message), message
    assert f"handler `{file}` failed" in message
    assert time.monotonic() - begun < 60
    assert home.bucket.files("sessions") == before
    home.ok("run", "--once", "--", guest("counter"))
    assert home.bucket.events(session) == [event, {"count": 1}]
    home.bucket.check(session)


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
    assert not set(printed) & {
        *map(chr, range(32)),
        *map(chr, range(0x7F, 0xA0)),
        *"\u202e\u202c\u2066\u2069",
    } - {"\n"}
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


def test_continue_is_bounded_by_max_steps(home):
    session = home.start({"probe": "continue"})
    result = home.run("run", "--max-steps", "5", "--", guest(TYPED))
    assert result.err.splitlines()[-1] == "5 steps, due"
    assert home.bucket.events(session)[1:] == [{"decides": 1}] * 5


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
