"""`verify`, `gc`, `rm` and `push --id`."""

import json
import os
import time

import pytest

from pug import CORRUPT, DONE, INVALID, NOT_FOUND, digest, normalised
from terminal import on_terminal


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def age(path, hours=48):
    """Makes files look old."""
    past = time.time() - hours * 3600
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (past, past))


@pytest.fixture
def large(home):
    """A session with an object of its own, and a fork of it from before; the fork is current."""
    home.start([1])
    session = home.ok("context").splitlines()[1].split()[1]
    home.push("x" * 5000)
    (home.path / "seed.json").write_text("2")
    fork = home.ok("fork", "-s", f"{session}:1", "seed.json").strip()
    return session, fork


def test_verify_of_a_sound_bucket(home, large):
    result = home.run("verify")
    assert (result.code, result.out) == (DONE, "")
    assert result.err == "everything is as it was written\n"
    assert home.ok("verify", "--json") == ""


def test_verify_names_what_is_damaged(home, large):
    session, _ = large
    file = home.bucket.path / "objects" / digest(b"x" * 5000)
    file.write_bytes(b"y" * 5000)
    result = home.run("verify")
    assert result.code == CORRUPT
    assert result.out.startswith("lost   ") and file.name in result.out
    findings = lines(home.run("verify", "--json").out)
    assert [f["damage"] for f in findings] == ["lost"]
    assert file.name in findings[0]["key"]
    assert findings[0]["readable"]


def test_gc_says_what_it_would_delete_and_deletes_when_told(home, large):
    orphan = home.bucket.path / "objects" / digest(b"z" * 2000)
    orphan.write_bytes(b"z" * 2000)
    assert home.run("gc").out == ""
    assert "nothing to delete" in home.run("gc").err
    age(home.bucket.path)
    result = home.run("gc")
    assert result.out == f"object       2.0 KiB  objects/{orphan.name}\n"
    assert "--delete" in result.err
    assert orphan.exists()
    kept, garbage, total = lines(home.ok("gc", "--json"))
    assert (kept["type"], kept["sessions"]) == ("kept", 2)
    assert garbage == {
        "type": "garbage",
        "key": f"objects/{orphan.name}",
        "bytes": 2000,
        "kind": "object",
    }
    assert total == {"type": "total", "count": 1, "bytes": 2000, "deleted": False}
    assert "deleted 1 thing" in home.run("gc", "--delete").err
    assert not orphan.exists()
    assert home.run("gc").out == ""
    assert home.run("verify").code == DONE


def test_gc_with_another_grace_window(home, large):
    orphan = home.bucket.path / "objects" / digest(b"z" * 2000)
    orphan.write_bytes(b"z" * 2000)
    age(home.bucket.path, hours=2)
    assert home.run("gc").out == ""
    assert orphan.name in home.run("gc", "--grace", "1h").out
    assert home.run("gc", "--grace", "soon").code == INVALID


def test_rm_refuses_where_nobody_can_be_asked(home, large, unchanged):
    session, _ = large
    unchanged()
    assert "--yes" in home.fails(INVALID, "rm", session)
    assert "pugmark sessions" in home.fails(NOT_FOUND, "rm", "nothing", "--yes")


def test_rm_asks_on_a_terminal(home, large):
    session, fork = large
    code, shown = on_terminal(home, "rm", session, answer=b"n\n")
    assert code == DONE
    assert f"remove session {session} with 2 events; 1 fork keep" in shown
    assert "nothing was removed" in shown
    assert session in home.ok("sessions")
    code, shown = on_terminal(home, "rm", session, answer=b"y\n")
    assert f"removed {session}" in shown
    assert session not in home.ok("sessions")


def test_rm_leaves_forks_readable_and_drops_names(home, large):
    session, fork = large
    home.ok("link", "old", "-s", session)
    assert normalised(home.run("rm", "--yes", "old").err) == "removed <id 1>\n"
    assert home.ok("refs") == ""
    assert home.bucket.events(fork) == [[1], 2]
    assert home.ok("cat") == "[1]\n2\n"
    for command in (["switch"], ["log", "-s"], ["objects", "-s"], ["push", "-s"], ["fork", "-s"]):
        file = ["seed.json"] if command[0] == "fork" else []
        assert "was removed" in home.fails(NOT_FOUND, *command, session, *file, stdin="1")
    drawn = home.ok("log").splitlines()
    assert drawn[0] == f"{session}  removed"
    assert drawn[1].startswith(f"└─ {fork}  forked at v1  v0  2 events")
    assert [r["state"] for r in lines(home.ok("log", "--json"))] == ["removed", "due"]
    assert home.run("verify").code == DONE
    assert json.loads(home.ok("rm", "--yes", "--json", session))["session"] == session


def test_rm_of_the_current_session(home):
    session = home.start([1])
    assert json.loads(home.ok("rm", "--yes", "--json", session)) == {
        "session": session,
        "version": 2,
        "unlinked": [],
    }
    assert json.loads(home.ok("context", "--json"))["session"] is None
    assert "current session" in home.fails(NOT_FOUND, "log")


def test_gc_frees_what_only_a_removed_session_held(home, large):
    session, fork = large
    home.ok("rm", "--yes", session)
    age(home.bucket.path)
    held = home.bucket.path / "objects" / digest(b"x" * 5000)
    home.run("gc", "--delete", "--grace", "1ns")
    assert not held.exists()
    assert home.run("verify").code == DONE
    assert home.ok("cat", "-s", fork) == "[1]\n2\n"


def test_push_with_an_id_appends_once(home):
    session = home.start()
    first = home.ok("push", "--id", "order-1", stdin="[1]")
    again = home.run("push", "--id", "order-1", stdin="[1]")
    assert (again.code, again.out) == (DONE, first)
    assert "pushed before" in again.err
    home.push([2])
    assert home.ok("push", "--id", "order-1", stdin="[1]") == first
    assert home.bucket.events(session) == [[1], [2]]
    assert "order-1" in home.fails(INVALID, "push", "--id", "order-1", stdin="[3]")
    assert home.run("push", "--id", "", stdin="1").code == INVALID
    view = json.loads(home.ok("push", "--json", "--id", "order-1", stdin="[1]"))
    assert (view["repeated"], view["objects"][0]["hash"]) == (True, digest(b"[1]"))
    view = json.loads(home.ok("push", "--json", "--id", "order-2", stdin="[1]"))
    assert (view["repeated"], view["version"], view["objects"][0]["id"]) == (False, 3, "order-2")
