"""Damaged and missing buckets, and newer formats: told apart, and nothing half committed."""

import json
import re

import pytest

from pug import CORRUPT, INVALID, NOT_FOUND, digest, guest

HELLO = '{"kind":"hello"}'


def tip_file(home, session):
    return min((home.bucket.folder(session) / "snapshots").glob("*.json"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: data[:-1] + b"?",
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"",
    ],
    ids=["first byte", "last byte", "cut", "longer", "empty"],
)
def test_an_object_whose_bytes_do_not_match(home, unchanged, damage):
    session = home.start("x" * 5000)
    file = home.bucket.path / "objects" / digest(b"x" * 5000)
    file.write_bytes(damage(file.read_bytes()))
    unchanged()
    reads = [
        ["cat", file.name],
        ["cat"],
        ["cat", file.name[7:15]],
        ["pull", file.name, "-o", "out"],
    ]
    for args in reads:
        result = home.run(*args)
        assert result.code == CORRUPT, (args, result)
        assert file.name in result.err and "damaged" in result.err
    assert not (home.path / "out").exists()
    for handler in (
        ["python", "-c", "import pugmark\npugmark.write([len(o.body()) for o in pugmark.read()])"],
    ):
        message = home.fails(CORRUPT, "run", "-s", session, "--once", "--", *handler)
        assert file.name in message


def test_a_damaged_node_of_the_log(home, unchanged):
    session = home.start()
    (home.path / "event").write_text(HELLO)
    home.ok("push", *["event"] * 40)
    [[node]] = home.bucket.tip(session)["log"]["levels"]
    file = home.bucket.path / "objects" / node
    whole = file.read_bytes()
    unchanged()
    for damaged in (whole.replace(b"event", b"evil!", 1), whole[: len(whole) // 2], b""):
        file.write_bytes(damaged)
        for args in (
            ["cat"],
            ["objects"],
            ["run", "--once", "--", "cat"],
            ["run", "--once", "--", guest("counter")],
        ):
            result = home.run(*args)
            assert (result.code, node in result.err) == (CORRUPT, True), (args, result)
    file.unlink()
    assert node in home.run("objects").err


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"{}",
        lambda data: b"\0" * len(data),
        lambda data: data.replace(b'"version":1', b'"version":2', 1),
        lambda data: data.replace(b'"size":16', b'"size":17', 1),
        lambda data: data.replace(b'"count":1', b'"count":33', 1),
        lambda data: re.sub(
            rb'"session":"[^"]*"',
            b'"session":"01900000-0000-7000-8000-000000000000"',
            data,
            count=1,
        ),
    ],
    ids=[
        "truncated",
        "empty",
        "no fields",
        "zeros",
        "another version",
        "wrong size",
        "wrong count",
        "another session",
    ],
)
def test_a_damaged_snapshot(home, unchanged, damage):
    session = home.start(HELLO)
    file = tip_file(home, session)
    file.write_bytes(damage(file.read_bytes()))
    unchanged()
    for args in (
        ["log"],
        ["objects"],
        ["cat"],
        ["context"],
        ["push"],
        ["run", "--", "true"],
        ["run", "--fork", "--", "true"],
    ):
        message = home.fails(CORRUPT, *args, stdin=HELLO)
        assert file.name in message and "damaged" in message, message
    assert home.ok("sessions").startswith(f"* {session}")


def test_a_damaged_manifest(home, unchanged):
    session = home.start(HELLO)
    (home.bucket.folder(session) / "manifest.json").write_text('{"format"')
    unchanged()
    for args in (["log"], ["run", "--", "true"], ["fork", "seed"]):
        (home.path / "seed").write_text("1")
        assert "manifest.json" in home.fails(CORRUPT, *args)


def with_format(file, **format):
    snapshot = json.loads(file.read_bytes())
    snapshot["format"] |= format
    file.write_text(json.dumps(snapshot, separators=(",", ":")) + "\n")


def test_a_newer_format_is_not_read(home, unchanged):
    session = home.start(HELLO)
    with_format(tip_file(home, session), read=3, write=3)
    unchanged()
    for args in (
        ["log"],
        ["cat"],
        ["push"],
        ["run", "--", "true"],
        ["run", "--fork", "--", "true"],
    ):
        message = home.fails(INVALID, *args, stdin=HELLO)
        assert "format 3" in message and "use a newer pugmark" in message
    file = tip_file(home, session)
    file.write_text('{"format":{"read":9,"write":9},"and":"nothing else as it was"}\n')
    unchanged()
    assert "format 9" in home.fails(INVALID, "push", stdin=HELLO)


def test_a_newer_writers_session_is_read_but_not_extended(home, unchanged):
    session = home.start(HELLO)
    with_format(tip_file(home, session), write=4)
    unchanged()
    assert home.ok("cat") == HELLO + "\n"
    assert session in home.ok("log", "-A")
    for args in (["push"], ["run", "--", "true"], ["run", "--fork", "--", "true"]):
        message = home.fails(INVALID, *args, stdin=HELLO)
        assert session in message and "use a newer pugmark" in message


def test_a_bucket_that_is_not_there(home):
    home.start(HELLO)
    moved = home.path / "moved"
    home.bucket.path.rename(moved)
    for args in (["log"], ["push"], ["start"], ["sessions"], ["run", "--start", "--", "true"]):
        message = home.fails(NOT_FOUND, *args, stdin=HELLO)
        assert str(home.bucket.path) in message and "mkdir" in message
    home.bucket.path.write_text("a file")
    assert home.fails(NOT_FOUND, "log")
    home.bucket.path.unlink()
    moved.rename(home.bucket.path)
    assert home.ok("cat") == HELLO + "\n"
