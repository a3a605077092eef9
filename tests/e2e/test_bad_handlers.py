"""Subprocess handlers that fail or misbehave: a named error, an exit code, and nothing committed."""

import base64
import json
import os
import re
import subprocess
import time

import pytest

from pug import DONE, FAILED, LIMIT, NOT_FOUND, UNUSABLE, digest

OTHER = "01900000-0000-7000-8000-000000000000"
GOOD = '{"data":"MQ=="}'

# What a handler writes on its second line, and what the error has to say.
BAD_LINES = {
    "text": ("hello there", "is not JSON.*`hello there`.*standard error"),
    "half": ('{"data":"MQ=="', "is not JSON"),
    "two on a line": (GOOD + GOOD, "is not JSON"),
    "array": ('["MQ=="]', "not a JSON object.*standard error"),
    "null": ("null", "not a JSON object"),
    "number": ("42", "not a JSON object"),
    "not UTF-8": ('{"data":"MQ==","name":"\\xff"}', "is not JSON"),
    "neither": ('{"name":"x"}', "neither `data` nor `uri`"),
    "both": ('{"data":"MQ==","uri":"s3://a/b"}', "both `data` and `uri`"),
    "no base64": ('{"data":"*"}', "not base64"),
    "url-safe base64": ('{"data":"_-8="}', "not base64"),
    "unpadded base64": ('{"data":"MQ"}', "not base64"),
    "data of a number": ('{"data":1}', "`data` that is not a string"),
    "name of a number": ('{"data":"MQ==","name":1}', "`name` that is not a string"),
    "metadata of numbers": (
        '{"data":"MQ==","metadata":{"a":1}}',
        "`metadata` that is not an object of strings",
    ),
    "a field twice": ('{"data":"MQ==","data":"MQ=="}', "data"),
    "fork of a text": ('{"data":"MQ==","fork":"yes"}', "`fork` that is not true or false"),
    "session that is none": ('{"data":"MQ==","session":"x"}', "`session` that is not a session id"),
    "fork and session": (
        f'{{"data":"MQ==","fork":true,"session":"{OTHER}"}}',
        "both `fork` and another `session`",
    ),
    "pause elsewhere": (
        '{"data":"","content-type":"application/vnd.pugmark.pause+text","fork":true}',
        "a pause for another session",
    ),
    "no duration": (
        '{"data":"","content-type":"application/vnd.pugmark.pause+text","metadata":{"duration":"soon"}}',
        "`duration` set to `soon`",
    ),
    "negative duration": (
        '{"data":"","content-type":"application/vnd.pugmark.pause+text","metadata":{"duration":"-1s"}}',
        "`duration` set to `-1s`",
    ),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line(home, unchanged, case):
    line, expected = BAD_LINES[case]
    home.start([1])
    unchanged()
    before = home.bucket.files()
    message = home.fails(
        FAILED, "run", "--", "printf", f"{GOOD}\\n%b\\n", line.replace("\\xff", "\\0377")
    )
    assert re.search(expected, message), message
    assert "handler `printf` failed" in message
    assert "line 2 of the handler's output" in message
    assert "hint: standard output takes" in message
    assert home.bucket.files() == before


def test_a_bad_line_is_told_before_the_handler_ends(home, unchanged):
    home.start([1])
    unchanged()
    begun = time.monotonic()
    assert "not JSON" in home.fails(
        FAILED, "run", "--", "sh", "-c", "echo oops; exec sleep 60 2>/dev/null"
    )
    assert time.monotonic() - begun < 5


def test_blank_lines_and_unknown_fields_are_skipped(home):
    session = home.start([1])
    home.ok(
        "run",
        "--once",
        "--",
        "printf",
        r'\n  \n{"data":"MQ==","later":[1],"uri":null,"fork":false}\r\n\n{"data":""}',
    )
    assert home.bucket.bodies(session) == [b"[1]", b"1", b""]


def test_an_output_for_its_own_session_is_its_own(home):
    session = home.start([1])
    home.ok(
        "run",
        "--once",
        "--",
        "sh",
        "-c",
        'echo "{\\"data\\":\\"MQ==\\",\\"session\\":\\"$PUGMARK_SESSION_ID\\"}"',
    )
    assert home.bucket.bodies(session) == [b"[1]", b"1"]


@pytest.mark.parametrize(
    "make, argv, hint",
    [
        (None, ["./nowhere"], "check the path"),
        (None, ["no-such-program"], "PATH"),
        (lambda path: path.mkdir(), ["./it"], ""),
        (lambda path: path.write_text("#!/bin/sh\n"), ["./it"], r"chmod \+x"),
        (
            lambda path: (path.write_text("#!/no/interpreter\n"), path.chmod(0o755)),
            ["./it"],
            "interpreter",
        ),
    ],
    ids=["no file", "not in PATH", "folder", "not executable", "no interpreter"],
)
def test_cannot_start(home, unchanged, make, argv, hint):
    home.start([1])
    if make:
        make(home.path / "it")
    unchanged()
    message = home.fails(UNUSABLE, "run", "--", *argv)
    assert f"cannot start the handler `{argv[0]}`" in message
    assert re.search(f"hint: .*{hint}", message) or not hint


def test_a_program_that_cannot_start_leaves_no_session_behind(home):
    home.start([1])
    home.run("run", "--start", "--handler", "missing=./nowhere")
    assert len(home.ok("sessions").splitlines()) == 1


@pytest.mark.parametrize("code", [1, 3, 127, 255])
def test_exits_with_another_status(home, unchanged, code):
    home.start([1])
    unchanged()
    message = home.fails(
        FAILED, "run", "--", "sh", "-c", f"echo '{GOOD}'; echo because >&2; exit {code}"
    )
    assert f"handler `sh` failed: the handler `sh` exited with status {code}" in message
    assert message.startswith("because\n")


def test_ended_by_a_signal(home, unchanged):
    home.start([1])
    unchanged()
    assert "signal 11" in home.fails(
        FAILED, "run", "--", "sh", "-c", f"echo '{GOOD}'; kill -SEGV $$"
    )
    assert "memory" in home.fails(FAILED, "run", "--", "sh", "-c", "kill -KILL $$")


def test_an_exception_in_the_sdk(home, unchanged):
    home.start("no JSON")
    unchanged()
    code = "import pugmark\npugmark.write(1)\n[o.decode_json() for o in pugmark.read()]"
    message = home.fails(FAILED, "run", "--", "python", "-c", code)
    assert "JSONDecodeError" in message and "exited with status 1" in message


def run_measured(home, *args):
    """Exit code, standard error and peak memory (MiB) of the host."""
    process = home.spawn(*args, stderr=subprocess.PIPE)
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, message, usage.ru_maxrss / 1024


def test_an_endless_line_takes_bounded_memory(home, unchanged):
    home.start([1])
    unchanged()
    code, message, peak_mib = run_measured(
        home, "run", "--", "sh", "-c", "cat /dev/zero | tr '\\0' x"
    )
    assert (code, "longer than" in message) == (LIMIT, True), message
    assert peak_mib < 300


def test_too_many_outputs(home, unchanged):
    home.start([1])
    unchanged()
    message = home.fails(LIMIT, "run", "--", "sh", "-c", f"yes '{GOOD}'")
    assert "10000" in message


def test_outputs_too_long_together(home, unchanged):
    home.start([1])
    unchanged()
    line = json.dumps({"data": base64.b64encode(b"x" * 2**20).decode()})
    (home.path / "line").write_text(line + "\n")
    code, message, peak_mib = run_measured(
        home, "run", "--", "sh", "-c", "while cat line; do :; done"
    )
    assert (code, "67108864 bytes" in message) == (LIMIT, True), message
    assert peak_mib < 300


def test_an_entry_whose_name_is_too_long(home, unchanged):
    home.start([1])
    unchanged()
    code = "import json; print(json.dumps({'data': '', 'name': 'n' * 300_000}))"
    code = home.run("run", "--", "python", "-c", code).code
    assert code in (FAILED, LIMIT)


def test_a_slow_writer_meets_the_timeout(home, unchanged):
    home.start([1])
    unchanged()
    message = home.fails(
        LIMIT,
        "run",
        "--timeout",
        "1s",
        "--",
        "sh",
        "-c",
        f"while echo '{GOOD}'; do sleep 0.1; done",
    )
    assert "still running after 1s" in message


@pytest.fixture
def long_log(home):
    """A session whose log is longer than any pipe."""
    session = home.start()
    (home.path / "event.json").write_text(json.dumps({"text": "x" * 900}))
    home.ok("push", *["event.json"] * 1000)
    return session


def test_closing_standard_input_early_is_allowed(home, long_log):
    home.ok("run", "--once", "--", "sh", "-c", f"exec <&-; sleep 0.2; echo '{GOOD}'")
    home.ok("run", "--once", "--", "sh", "-c", f"head -c 10 >/dev/null; echo '{GOOD}'")
    home.ok("run", "--once", "--", "printf", GOOD)
    assert home.bucket.bodies(long_log)[1000:] == [b"1"] * 3
    home.bucket.check(long_log)


def test_closing_standard_input_early_and_failing(home, long_log, unchanged):
    unchanged()
    message = home.fails(FAILED, "run", "--", "sh", "-c", f"exec <&-; echo '{GOOD}'; exit 4")
    assert "exited with status 4" in message


def test_writing_much_before_reading_anything(home, long_log):
    """Neither side may wait for the other: both pipes are full."""
    line = json.dumps({"data": base64.b64encode(b"y" * 2**20).decode()})
    (home.path / "line").write_text(line + "\n")
    home.ok("run", "--once", "--", "sh", "-c", "cat line line; cat >/dev/null")
    assert home.bucket.bodies(long_log)[1000:] == [b"y" * 2**20] * 2


def test_what_a_handler_says_cannot_move_the_terminal(home, unchanged):
    home.start([1])
    unchanged()
    message = home.fails(FAILED, "run", "--", "printf", "\\033[31mred\\007\\n")
    assert "red" in message and not set(message) & {"\x1b", "\x07"}


def test_a_loop_keeps_the_steps_before_the_failure(home):
    session = home.start([1])
    home.fails(FAILED, "run", "--", "sh", "-c", f"test $(grep -c . ) -lt 3 && echo '{GOOD}'")
    assert home.bucket.bodies(session) == [b"[1]", b"1", b"1"]
    home.bucket.check(session)


def test_the_next_run_starts_from_the_same_log(home):
    session = home.start([1])
    home.fails(FAILED, "run", "--once", "--", "sh", "-c", "cat > seen1; exit 1")
    home.ok("run", "--once", "--", "sh", "-c", f"cat > seen2; echo '{GOOD}'")
    seen = [
        re.sub(r"http://[^\"]*/", "", (home.path / name).read_text()) for name in ("seen1", "seen2")
    ]
    assert seen[0] == seen[1] != ""
    assert home.bucket.bodies(session) == [b"[1]", b"1"]


def test_an_object_that_a_handler_asks_for_and_is_not_there(home):
    session = home.start("x" * 5000)
    object = home.bucket.path / "objects" / digest(b"x" * 5000)
    object.rename(home.path / "aside")
    code = "import pugmark\npugmark.write([len(o.body()) for o in pugmark.read()])"
    message = home.run("run", "--once", "--", "python", "-c", code)
    assert message.code in (5, NOT_FOUND) and digest(b"x" * 5000) in message.err
    (home.path / "aside").rename(object)
    assert home.run("run", "--once", "--", "python", "-c", code).code == DONE
    assert home.bucket.bodies(session)[1] == b"[5000]"


def test_the_limits_of_outputs_can_be_set(home, unchanged):
    home.start([1])
    unchanged()
    two = ("run", "--once", "--limit", "outputs=1", "--", "printf", '{"data":"MQ=="}\\n{"data":"Mg=="}\\n')
    home.fails(LIMIT, *two)
    long = ("run", "--once", "--limit", "output=1KiB", "--", "printf", '{"data":"%02000d"}', "0")
    home.fails(LIMIT, *long)
