"""Outputs for other sessions and forks: each arrives exactly once, whatever ends the run when."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from pug import CORRUPT, FAILED, guest

NOBODY = "01900000-0000-7000-8000-000000000000"

# Answers what is asked for in the last event, then pauses. An item is {"to": session or "fork" or
# null, "text": …}.
CLERK = """
import base64, json, sys
def write(text, **fields):
    print(json.dumps({"data": base64.b64encode(text.encode()).decode(), **fields}), flush=True)
event = None
for line in sys.stdin:
    entry = json.loads(line)
    if "data" in entry:
        event = json.loads(base64.b64decode(entry["data"]))
if isinstance(event, dict) and "items" in event:
    for item in event["items"]:
        to = {} if item["to"] is None else {"fork": True} if item["to"] == "fork" else {"session": item["to"]}
        write(json.dumps(item["text"] * item.get("times", 1)), **to)
write("", **{"content-type": "application/vnd.pugmark.pause+text"})
"""


@pytest.fixture
def clerk(home):
    return ["python", "-S", home.script(CLERK, "clerk.py")]


def children(home, session):
    """The forks of a session, oldest first."""
    folder = home.bucket.folder(session) / "children"
    files = folder.iterdir() if folder.exists() else []
    # A writer that was killed may leave a file that it was still writing: `…#1`.
    return sorted(file.name for file in files if "#" not in file.name)


def bodies(home, session):
    return [json.loads(body) for body in home.bucket.bodies(session) if body]


def ask(*items):
    return {"items": [{"to": to, "text": text} for to, text in items]}


def test_an_output_for_another_session(home, clerk):
    other = home.start('"first"')
    session = home.start(ask((other, "a"), (None, "own"), (other, "b")))
    result = home.run("run", "--once", "--", *clerk)
    assert "delivered 2 outputs to other sessions" in result.err.splitlines()
    assert bodies(home, session)[1:] == ["own"]
    assert bodies(home, other) == ["first", "a", "b"]
    entries = home.bucket.log(other)[1:]
    step = next(s for s in home.bucket.snapshots(session) if "step" in s)
    origins = [entry["origin"] for entry in entries]
    assert origins == [
        {"session": session, "version": step["version"], "index": index} for index in (0, 1)
    ]
    tip = home.bucket.tip(session)
    assert "outbox" not in tip["last"]
    assert (tip["kind"], tip["objects"]) == ("provisional", [])
    assert "paused" in home.ok("context")
    home.ok("switch", other)
    assert "due" in home.ok("context")


def test_a_fork_inherits_the_step_that_made_it(home, clerk):
    session = home.start(ask(("fork", "left"), (None, "own"), ("fork", "right")))
    home.ok("run", "--once", "--", *clerk)
    found = children(home, session)
    step = next(s for s in home.bucket.snapshots(session) if "step" in s)
    for child in found:
        parent = home.bucket.manifest(child)["parent"]
        assert (parent["session"], parent["version"]) == (session, step["version"])
        assert bodies(home, child)[1:-1] == ["own"]
        home.bucket.check(child)
    assert sorted(bodies(home, child)[-1] for child in found) == ["left", "right"]
    # A child is due, and a handler takes it up.
    home.ok("run", "-s", found[0], "--", *clerk)


def test_own_id_is_no_other_session(home, clerk):
    session = home.start()
    home.push(ask((session, "x")))
    home.ok("run", "--once", "--", *clerk)
    assert bodies(home, session)[1:] == ["x"]


def test_only_outputs_elsewhere_end_the_loop(home):
    other = home.start()
    home.start("x")
    handler = home.script(
        f"""print('{{"data":"MQ==","session":"{other}"}}')""",
    )
    assert home.run("run", "--", "python", "-S", handler).err.splitlines()[-1] == "1 step, at rest"
    assert home.bucket.bodies(other) == [b"1"]


def test_large_outputs(home, clerk):
    other = home.start()
    items = [{"to": to, "text": "x", "times": 100_000} for to in (other, "fork")]
    session = home.start({"items": items})
    home.ok("run", "--once", "--", *clerk)
    [child] = children(home, session)
    assert bodies(home, other) == bodies(home, child)[1:] == ["x" * 100_000]


@pytest.mark.parametrize("line", [
    f'{{"data":"MQ==","session":"{NOBODY}"}}',
    '{"data":"MQ==","session":"code-review"}',
    f'{{"data":"MQ==","session":"{NOBODY}","fork":true}}',
    '{"data":"","content-type":"application/vnd.pugmark.pause+text","fork":true}',
    f'{{"data":"","content-type":"application/vnd.pugmark.pause+text","session":"{NOBODY}"}}',
])
def test_what_cannot_be_delivered_is_refused_before_the_commit(home, unchanged, line):
    home.start("x")
    unchanged()
    message = home.fails(FAILED, "run", "--", "printf", '{"data":"MQ=="}\\n%s\\n', line)
    assert any(word in message for word in ("not in this bucket", "session", "pause"))


def test_a_program_in_the_sandbox_sends_too(home):
    other = home.start()
    line = f'{{"data":"MQ==","session":"{other}"}}\n{{"data":"Mg==","fork":true}}'
    session = home.start({"probe": "raw-stdout", "text": line})
    home.ok("run", "--once", "--", guest("command-probe"))
    assert home.bucket.bodies(other) == [b"1"]
    [child] = children(home, session)
    assert home.bucket.bodies(child)[-1] == b"2"


# Crashes, made by taking away what a run wrote after the moment of the crash.


def committed(home, clerk):
    """A session with a step that sent two outputs to another session and made a fork."""
    other = home.start('"first"')
    session = home.start(ask((other, "a"), ("fork", "seed"), (None, "done"), (other, "b")))
    home.ok("run", "--once", "--", *clerk)
    [child] = children(home, session)
    return session, other, child


def forget(home, session, newest=1):
    """Takes the newest versions of a session away."""
    for file in sorted((home.bucket.folder(session) / "snapshots").glob("*.json"))[:newest]:
        file.unlink()


def forget_session(home, parent, child):
    shutil.rmtree(home.bucket.folder(child))
    (home.bucket.folder(parent) / "children" / child).unlink()


@pytest.mark.parametrize("delivered", ["nothing", "entries", "fork", "all"])
def test_the_next_run_delivers_what_is_left(home, clerk, delivered):
    session, other, child = committed(home, clerk)
    forget(home, session)
    if delivered in ("nothing", "fork"):
        forget(home, other)
    if delivered in ("nothing", "entries"):
        forget_session(home, session, child)
    assert home.bucket.tip(session)["last"]["outbox"]
    assert "due" in home.ok("context")
    home.ok("run", "--", *clerk)
    assert bodies(home, other) == ["first", "a", "b"]
    assert children(home, session) == [child]
    assert bodies(home, child)[-1] == "seed"
    assert "outbox" not in home.bucket.tip(session)["last"]


def test_a_delivery_is_recognised_behind_other_events(home, clerk):
    session, other, child = committed(home, clerk)
    forget(home, session)
    home.push('"later"', "-s", other)
    home.ok("run", "-s", other, "--once", "--", *clerk)
    home.ok("run", "--", *clerk)
    assert bodies(home, other) == ["first", "a", "b", "later"]
    assert children(home, session) == [child]


def test_a_failed_delivery_says_so_and_is_resumed(home, clerk):
    session, other, child = committed(home, clerk)
    forget(home, session)
    forget(home, other)
    [tip] = list((home.bucket.folder(other) / "snapshots").glob("*fffe.json"))
    whole = tip.read_bytes()
    tip.write_bytes(whole[:-20])
    result = home.run("run", "--", *clerk)
    assert result.code == CORRUPT
    assert "not all that it sends to other sessions is delivered" in result.err
    assert "hint: the next `pugmark run` on the session delivers the rest" in result.err
    tip.write_bytes(whole)
    home.ok("run", "--", *clerk)
    assert bodies(home, other) == ["first", "a", "b"]
    assert children(home, session) == [child]


def test_killed_at_random_moments(home, clerk):
    seed = int(os.environ.get("PUGMARK_SEED", time.time_ns() % 2**32))
    print(f"PUGMARK_SEED={seed}")
    moments = random.Random(seed)
    other = home.start()
    session = home.start()
    asked = ["warm"]

    def ask_for(text):
        home.push(ask((other, text), ("fork", text), (None, "done")))

    ask_for("warm")
    begun = time.monotonic()
    home.ok("run", "--once", "--", *clerk)
    whole = time.monotonic() - begun
    for number in range(25):
        asked.append(f"n{number}")
        ask_for(asked[-1])
        running = home.spawn("run", "--", *clerk, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 1.2) * whole)
        running.send_signal(signal.SIGKILL)
        running.wait()
        home.ok("run", "--", *clerk)
        assert "outbox" not in home.bucket.tip(session)["last"]
    assert bodies(home, other) == asked
    seeds = [bodies(home, child)[-1] for child in children(home, session)]
    assert sorted(seeds) == sorted(asked)
    home.bucket.check(session)
