"""Pushers and a runner race on one session: nothing is lost, doubled or out of order."""

import json
import re
import subprocess
import threading

import pytest

from pug import DONE, guest

PUSHES = 60

# Answers with all that was pushed since its last answer; rests when there is nothing.
ACKNOWLEDGE = """
import base64, json, sys
waiting = []
for line in sys.stdin:
    entry = json.loads(line)
    body = json.loads(base64.b64decode(entry["data"]))
    if "ack" in body:
        waiting = [tag for tag in waiting if tag not in body["ack"]]
    elif "tag" in body:
        waiting.append(body["tag"])
if waiting:
    print(json.dumps({"data": base64.b64encode(json.dumps({"ack": waiting}).encode()).decode()}))
"""


def pusher(home, session, who, failures):
    for number in range(PUSHES):
        result = home.run(
            "push",
            "-s",
            session,
            stdin=json.dumps({"tag": f"{who}-{number}", "kind": "input", "text": "hi"}),
        )
        if result.code != DONE:
            failures.append(result)


def race(home, session, handler):
    """Two pushers against `run` in a loop; returns once all is pushed and the session is at rest."""
    failures, runs = [], 0
    threads = [threading.Thread(target=pusher, args=(home, session, who, failures)) for who in "ab"]
    for thread in threads:
        thread.start()
    while True:
        over = not any(thread.is_alive() for thread in threads)
        result = home.run("run", "-s", session, "--", *handler)
        runs += 1
        if result.code != DONE:
            failures.append(result)
        if over or failures:
            break
    for thread in threads:
        thread.join()
    assert failures == []
    return runs


@pytest.mark.parametrize("kind", ["process", "component"])
def test_two_pushers_and_a_runner(home, kind):
    session = home.start()
    if kind == "process":
        handler = ["python", "-S", home.script(ACKNOWLEDGE)]
    else:
        handler = [guest("wasi-echo")]
        home.ok("run", "--start", "--", *handler)
    runs = race(home, session, handler)
    log = home.bucket.check(session)
    events = home.bucket.events(session)
    tags = [event["tag"] for event in events if "tag" in event]
    for who in "ab":
        assert [tag for tag in tags if tag.startswith(who)] == [f"{who}-{n}" for n in range(PUSHES)]
    assert len(tags) == 2 * PUSHES
    snapshots = home.bucket.snapshots(session)
    steps = [snapshot for snapshot in snapshots if "step" in snapshot]
    assert len(steps) >= runs
    if kind == "process":
        acknowledged = [tag for event in events for tag in event.get("ack", [])]
        assert acknowledged == tags
    union = sorted(json.dumps(entry) for snapshot in snapshots for entry in snapshot["objects"])
    assert union == sorted(map(json.dumps, log))
    seen = [snapshot["last"]["version"] for snapshot in steps]
    assert seen == sorted(set(seen))
    assert snapshots[-1]["last"]["ended"] in ("empty", "pause")
    assert any(snapshot["kind"] == "provisional" for snapshot in snapshots)
    explained_by_the_listing(home, session, log)


def explained_by_the_listing(home, session, log):
    """Rebuilds the log's order from what `log -A` prints: a step's outputs stand before all that
    came after the version that it began on."""
    rebuilt, counts, place = [], [], 0
    for line in home.ok("log", "-A", "-s", session).splitlines()[1:]:
        if version := re.match(
            r"  v(\d+)  \S+  (checkpoint|provisional)(?:  step by \S+ on v(\d+).*)?$", line
        ):
            assert int(version[1]) == len(counts)
            counts.append(len(rebuilt))
            place = counts[int(version[3]) + 1] if version[3] else len(rebuilt)
        else:
            rebuilt.insert(place, line.split()[0])
            place += 1
    assert rebuilt == [entry["hash"] for entry in log]


def test_two_runners_one_wins_each_step(home):
    """The loser's outputs are dropped, and it says so with its own exit code."""
    session = home.start([0])
    slow = home.script(
        "import json,sys,time\nn=len(list(sys.stdin))\ntime.sleep(0.3)\n"
        "print(json.dumps({'data':'MQ=='})) if n < 6 else None\n"
    )
    running = [
        home.spawn("run", "-s", session, "--", "python", "-S", slow, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    errors = [process.communicate()[1].decode() for process in running]
    codes = [process.returncode for process in running]
    assert sorted(codes) == [0, 4], errors
    loser = errors[codes.index(4)]
    assert "another step was committed first" in loser and "hint: another `pugmark run`" in loser
    assert len(home.bucket.check(session)) == 6


def test_a_push_during_a_step_is_read_after_the_answer(home):
    session = home.start({"q": 1})
    slow = [
        "sh",
        "-c",
        'cat > seen; touch begun; while ! test -e go; do sleep 0.01; done; echo \'{"data":"MQ=="}\'',
    ]
    running = home.spawn("run", "--once", "--", *slow)
    while not (home.path / "begun").exists():
        pass
    for number in (2, 3):
        home.push({"q": number})
    (home.path / "go").touch()
    assert running.wait(timeout=20) == DONE
    assert home.bucket.events(session) == [{"q": 1}, 1, {"q": 2}, {"q": 3}]
    kinds = [(s["kind"], "step" in s) for s in home.bucket.snapshots(session)]
    assert kinds == [("checkpoint", False)] * 2 + [("provisional", False)] * 2 + [
        ("checkpoint", True)
    ]
    assert "due" in home.ok("context")
    home.bucket.check(session)


def test_many_forks_of_a_session_that_is_pushed_to(home):
    session = home.start([0])
    (home.path / "seed").write_text("true")
    failures = []
    pushing = threading.Thread(target=pusher, args=(home, session, "a", failures))
    pushing.start()
    children = [home.ok("fork", "-s", session, "seed").strip() for _ in range(15)]
    pushing.join()
    assert failures == []
    for child in children:
        at = home.bucket.manifest(child)["parent"]["version"]
        inherited = home.bucket.log(session, at)
        assert home.bucket.log(child)[:-1] == inherited
    listed = home.ok("log", "-s", session)
    assert all(child in listed for child in children)
