"""Eight processes push into one session while a handler loops on it."""

import json
import os
import subprocess
import sys
import threading

import pytest
import reading
from pug import BIN

PROCESSES = 8
# The 500 each take minutes on a store that is slow at conditions: PUGMARK_RACE_PUSHES=500.
PUSHES = int(os.environ.get("PUGMARK_RACE_PUSHES", "25"))

LIMIT = 200 + 4 * PUSHES

PUSHER = """
import json, subprocess, sys
pugmark, number, session, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
for index in range(count):
    event = json.dumps({"push": f"{number}-{index}"})
    done = subprocess.run([pugmark, "push", "-s", session], input=event.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
"""

COUNTER = """
import base64, json, sys
seen = sum(1 for line in sys.stdin if json.loads(line).get("name") != "seen")
body = json.dumps({"seen": seen}).encode()
print(json.dumps({"data": base64.b64encode(body).decode(), "name": "seen",
                  "content-type": "application/json"}))
print(json.dumps({"data": base64.b64encode(b"waiting").decode(),
                  "content-type": "application/vnd.pugmark.pause+text"}))
"""


@pytest.mark.timeout(LIMIT + 60)
def test_pushers_and_a_handler(store, user):
    home = user(store)
    home.env["PUGMARK_BUCKET"] = store.bucket()
    session = home.start({"begin": True})
    pusher, counter = home.script(PUSHER, "pusher.py"), home.script(COUNTER, "counter.py")
    pushers = [
        subprocess.Popen(
            [sys.executable, pusher, BIN, str(number), session, str(PUSHES)],
            env=home.env,
            stderr=subprocess.PIPE,
        )
        for number in range(PROCESSES)
    ]
    stop, failures = threading.Event(), []

    def loop():
        while not stop.is_set():
            ended = home.run("run", "-s", session, "--", "python3", counter, timeout=LIMIT)
            if ended.code != 0:
                failures.append(ended.err)
                return

    handler = threading.Thread(target=loop)
    handler.start()
    try:
        for process in pushers:
            _, err = process.communicate(timeout=LIMIT)
            assert process.returncode == 0, err.decode()
    finally:
        stop.set()
        for process in pushers:
            process.kill()
        handler.join(LIMIT)
    assert not failures, failures
    home.ok("run", "-s", session, "--", "python3", counter, timeout=LIMIT)

    events = reading.events(home, session)
    wanted = [f"{number}-{index}" for number in range(PROCESSES) for index in range(PUSHES)]
    reading.once_each(events, wanted, "push")
    # The handler has seen everything that came before each of its answers, and at last all.
    pushes = 0
    for event in events:
        if "seen" not in event:
            pushes += 1
    assert json.loads(json.dumps(events))[-1].get("seen", pushes) == pushes
    assert max(event["seen"] for event in events if "seen" in event) == pushes
    reading.verified(home)
