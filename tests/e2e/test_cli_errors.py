"""What the command line says and does when something is wrong, and where its output goes."""

import subprocess

import pytest

from pug import BIN, DONE, INVALID, NOT_FOUND, Home, digest

HELLO = '{"kind":"user_message","text":"hi"}\n'

NO_SESSION = "01900000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    "args",
    [
        ["switch", NO_SESSION],
        ["push", "-s", NO_SESSION],
        ["log", "-s", NO_SESSION],
        ["objects", "-s", NO_SESSION],
        ["cat", "-s", NO_SESSION],
        ["stat", "abcdef", "-s", NO_SESSION],
        ["pull", "abcdef", "-s", NO_SESSION],
        ["fork", "-s", NO_SESSION, "seed"],
        ["run", "-s", NO_SESSION, "--", "true"],
        ["link", "x", "-s", NO_SESSION],
        ["run", "--fork", "-s", f"{NO_SESSION}:3", "--", "true"],
    ],
    ids=lambda args: args[0],
)
def test_unknown_session(home, unchanged, args):
    home.start(HELLO)
    (home.path / "seed").write_text("1")
    unchanged()
    message = home.fails(NOT_FOUND, *args, stdin="1")
    assert NO_SESSION in message and "pugmark sessions" in message
    assert home.ok("refs") == ""


@pytest.mark.parametrize(
    "args",
    [["objects"], ["cat"], ["stat", "abcdef"], ["fork", "seed"], ["run", "--fork", "--", "true"]],
    ids=lambda args: args[0],
)
def test_unknown_version(home, unchanged, args):
    session = home.start(HELLO)
    (home.path / "seed").write_text("1")
    unchanged()
    message = home.fails(NOT_FOUND, args[0], "-s", f"{session}:7", *args[1:])
    assert f"session {session} has no version 7: its newest is 1" in message and "log -A" in message
    assert "`seven`" in home.fails(INVALID, args[0], "-s", f"{session}:seven", *args[1:])


@pytest.mark.parametrize("command", ["cat", "stat", "pull"])
def test_unknown_hash(home, command):
    home.start(HELLO)
    for hash in ["sha256:" + "0" * 64, "0000"]:
        message = home.fails(NOT_FOUND, command, hash)
        assert f"`{hash}`" in message and "pugmark objects" in message
    for hash in ["xyz", "abc", "sha256:", "a" * 65]:
        assert f"`{hash}`" in home.fails(INVALID, command, hash)


def test_an_ambiguous_hash(home):
    home.start()
    bodies, seen = {}, None
    for n in range(2000):
        prefix = digest(b"%d" % n)[7:11]
        if prefix in bodies:
            seen = (bodies[prefix], n)
            break
        bodies[prefix] = n
    for n in seen:
        home.push(str(n))
    prefix = digest(b"%d" % seen[0])[7:11]
    assert "several objects" in home.fails(INVALID, "cat", prefix)


def test_no_current_session(home):
    for args in [["push"], ["log"], ["objects"], ["cat"], ["run", "--", "true"], ["link", "x"]]:
        message = home.fails(NOT_FOUND, *args)
        assert "no current session" in message and "pugmark start" in message
    assert "`nobody`" in home.fails(NOT_FOUND, "switch", "nobody")


def test_wrong_arguments(home):
    for args in [
        [],
        ["unknown"],
        ["push", "--frobnicate"],
        ["run", "--timeout", "soon", "--", "true"],
        ["run", "--timeout", "0s", "--", "true"],
        ["run", "--max-steps", "0", "--", "true"],
        ["run", "--start", "--fork", "--", "true"],
        ["sessions", "-n", "x"],
    ]:
        result = home.run(*args)
        assert (result.code, result.out) == (INVALID, ""), args
        assert "Usage:" in result.err or "error:" in result.err
    home.start()
    assert "memory, table" in home.fails(INVALID, "run", "--limit", "speed=1", "--", "true")


def test_a_damaged_context_file(home):
    home.start()
    (home.path / ".config/pugmark/context.yaml").write_text("bucket: [")
    assert "context.yaml" in home.fails(INVALID, "context")


@pytest.mark.parametrize(
    "args",
    [["sessions"], ["log", "-A"], ["objects"], ["cat"], ["--help"]],
    ids=lambda args: args[0],
)
def test_a_reader_that_leaves_is_no_error(home, args):
    home.start()
    (home.path / "long").write_text("x" * 1000 + "\n")
    home.ok("push", *["long"] * 2000)
    shell = f"set -o pipefail; '{BIN}' {' '.join(args)} | head -c 1 >/dev/null"
    done = subprocess.run(["bash", "-c", shell], env=home.env, capture_output=True)
    assert (done.returncode, done.stderr) == (DONE, b"")


def test_what_others_wrote_cannot_move_the_terminal(home):
    home.start()
    home.push(HELLO, "--name", "\x1b[31mred\u202e\x07", "--content-type", "a/b\x1b[0m")
    for args in [["log", "-A"], ["objects"], ["stat", digest(HELLO.encode())]]:
        printed = home.ok(*args)
        assert "red" in printed
        assert not set(printed) & {"\x1b", "\x07", "\u202e", "\r"}
    result = home.run("push", "--name", "\x1b[31m", stdin=HELLO)
    assert "\x1b" not in result.out


def test_help_and_version(home):
    assert home.ok("--version").startswith("pugmark 0.")
    listed = home.ok("--help")
    for command in [
        "start",
        "sessions",
        "switch",
        "context",
        "link",
        "refs",
        "unlink",
        "push",
        "log",
        "objects",
        "cat",
        "stat",
        "pull",
        "fork",
        "run",
    ]:
        assert f"\n  {command} " in listed
        assert "Usage: pugmark " + command in home.ok(command, "--help")
    assert not (home.path / ".config").exists()


def test_homes_do_not_meet(tmp_path):
    one, two = Home(tmp_path / "one"), Home(tmp_path / "two")
    one.start(HELLO)
    assert two.ok("sessions") == ""
