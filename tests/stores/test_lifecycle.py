"""A session from beginning to end on each store, as a user would have it."""

import hashlib
import json
import os

import pytest

ECHO = """
import json, sys, base64
lines = [json.loads(line) for line in sys.stdin]
users = [l for l in lines if l.get("name") != "reply"]
replies = len(lines) - len(users)
if replies < len(users):
    body = json.dumps({"kind": "reply", "to": len(users)}).encode()
    print(json.dumps({"data": base64.b64encode(body).decode(), "name": "reply"}))
else:
    print(json.dumps({"data": base64.b64encode(b"done").decode(),
                      "content-type": "application/vnd.pugmark.pause+text"}))
"""


@pytest.fixture
def home(store, user):
    made = user(store)
    made.env["PUGMARK_BUCKET"] = store.bucket()
    return made


def test_a_session_from_start_to_fork(home):
    session = home.start({"kind": "user", "text": "hello"}, flags=["--meta", "team=a"])
    script = home.script(ECHO)
    home.ok("run", "--", "python3", script)
    bodies = home.ok("cat").splitlines()
    assert [json.loads(line)["kind"] for line in bodies[:2]] == ["user", "reply"]
    assert bodies[2:] == ["done"]

    seed = home.path / "seed.json"
    seed.write_text('{"kind": "user", "text": "another way"}')
    child = home.ok("fork", "-s", f"{session}:1", seed).strip()
    home.ok("run", "--", "python3", script)
    assert home.ok("cat").splitlines()[0] == home.ok("cat", "-s", session).splitlines()[0]
    assert len(home.ok("cat", "-s", session).splitlines()) == 3

    home.ok("link", "-s", session, "main")
    assert session in home.ok("refs")
    assert home.ok("cat", "-s", "main") == home.ok("cat", "-s", session)
    home.ok("switch", "main")
    listed = home.ok("sessions")
    assert session in listed and child in listed
    assert "main" in listed
    assert child[-6:] in home.ok("log", "-A")
    home.ok("unlink", "main")
    assert home.ok("refs") == ""


@pytest.mark.parametrize("size", [0, 1023, 1024, 5_000_000, 20_000_000])
def test_bodies_of_all_sizes(home, size):
    body = os.urandom(size)
    path = home.path / "body.bin"
    path.write_bytes(body)
    home.ok("start")
    home.ok("push", path)
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    assert digest in home.ok("objects")
    out = home.path / "out"
    with open(out, "wb") as file:
        assert home.spawn("cat", digest, stdout=file).wait(120) == 0
    assert out.read_bytes() == body


def test_what_a_handler_reads_and_writes_at_length(home):
    """Large bodies both ways, and a log of more than one node."""
    home.ok("start")
    for number in range(3):
        files = []
        for index in range(30):
            file = home.path / f"event-{number}-{index}.json"
            file.write_text(json.dumps({"n": number * 30 + index, "fill": "x" * (index * 100)}))
            files.append(file)
        home.ok("push", *files)
    script = home.script(
        "import base64, json, sys, urllib.request\n"
        "total = 0\n"
        "for line in sys.stdin:\n"
        "    entry = json.loads(line)\n"
        "    body = urllib.request.urlopen(entry['url']).read()\n"
        "    assert len(body) == entry['size']\n"
        "    total += json.loads(body)['n']\n"
        "body = json.dumps({'total': total, 'fill': 'y' * 3_000_000}).encode()\n"
        "print(json.dumps({'data': base64.b64encode(body).decode(), 'name': 'total'}))\n"
    )
    home.ok("run", "--once", "--", "python3", script)
    last = json.loads(home.ok("cat").splitlines()[-1])
    assert last["total"] == sum(range(90))


def test_a_session_of_another_user(home, store, user):
    """What one has written another reads, who has only the URL."""
    session = home.start({"text": "for all"})
    other = user(store, "other")
    other.env["PUGMARK_BUCKET"] = home.env["PUGMARK_BUCKET"]
    assert json.loads(other.ok("cat", "-s", session)) == {"text": "for all"}
    other.ok("switch", session)
    other.push({"text": "answer"})
    assert len(home.ok("cat", "-s", session).splitlines()) == 2
