"""`kill -9` at any moment of a step: the log as before or with the step whole, and the next run goes on."""

import os
import random
import signal
import subprocess
import time

import pytest

from pug import DONE, FAILED, INTERRUPTED, alive, guest, wait_for

KILLS = 60


def processes_of(home):
    """Processes that were started with this home."""
    mark = f"HOME={home.path}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                if mark in environ.read().split(b"\0") and alive(pid):
                    found.append(int(pid))
        except OSError:
            pass
    return found


# Each step of it appends one small and one large event.
STEP = """
import base64, json, sys
count = len(list(sys.stdin))
for body in (b"%d" % count, b"%d " % count * 3000):
    print(json.dumps({"data": base64.b64encode(body).decode()}), flush=True)
"""


@pytest.mark.parametrize("kind", ["process", "component"])
def test_killed_at_random_moments(home, kind):
    seed = int(os.environ.get("PUGMARK_SEED", time.time_ns() % 2**32))
    print(f"PUGMARK_SEED={seed}")
    moments = random.Random(seed)
    session = home.start({"kind": "first"})
    handler = ["python", "-S", home.script(STEP)] if kind == "process" else [guest("counter")]
    outputs = 2 if kind == "process" else 1
    run = ["run", "--max-steps", "4", "--", *handler]
    home.ok(*run)
    begun = time.monotonic()
    home.ok(*run)
    whole = time.monotonic() - begun
    before = home.bucket.raw(session)
    for _ in range(KILLS):
        running = home.spawn(*run, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, whole))
        running.send_signal(signal.SIGKILL)
        running.wait()
        now = home.bucket.raw(session)
        assert now[: len(before)] == before
        home.ok("run", "--once", "--", *handler)
        before = home.bucket.raw(session)
        assert len(before) == len(now) + 1
    assert len(home.bucket.check(session)) == 1 + outputs * (len(before) - 2)
    bodies = home.bucket.bodies(session)
    if kind == "component":
        assert home.bucket.events(session)[1:] == [{"count": n} for n in range(1, len(bodies))]
    else:
        assert bodies[1::2] == [b"%d" % n for n in range(1, len(bodies), 2)]
    wait_for(lambda: processes_of(home) == [], 3)


def test_no_handler_outlives_a_killed_host(home, unchanged):
    home.start([1])
    unchanged()
    running = home.spawn("run", "--", "sh", "-c", "echo $$ > pid; exec sleep 300")
    wait_for(lambda: (home.path / "pid").exists() and (home.path / "pid").read_text())
    pid = int((home.path / "pid").read_text())
    running.send_signal(signal.SIGKILL)
    running.wait()
    try:
        wait_for(lambda: not alive(pid), 3)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "sent, code",
    [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, None), (signal.SIGHUP, None)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_stopped_run_takes_its_handler_along(home, unchanged, sent, code):
    home.start([1])
    unchanged()
    running = home.spawn("run", "--", "sh", "-c", "sleep 300 & echo $$ $! > pids; wait")
    wait_for(
        lambda: (home.path / "pids").exists() and len((home.path / "pids").read_text().split()) == 2
    )
    pids = [int(pid) for pid in (home.path / "pids").read_text().split()]
    running.send_signal(sent)
    ended = running.wait(timeout=5)
    assert ended in ((code,) if code else (-sent, 128 + sent))
    try:
        wait_for(lambda: not any(map(alive, pids)), 3)
    finally:
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)


def test_a_handler_that_is_killed_fails_the_step(home, unchanged):
    home.start([1])
    unchanged()
    running = home.spawn(
        "run", "--", "sh", "-c", 'echo \'{"data":"MQ=="}\'; echo $$ > pid; exec sleep 300'
    )
    wait_for(lambda: (home.path / "pid").exists() and (home.path / "pid").read_text())
    os.kill(int((home.path / "pid").read_text()), signal.SIGKILL)
    assert running.wait(timeout=5) == FAILED


def test_a_killed_push_is_whole_or_not_there(home):
    seed = int(os.environ.get("PUGMARK_SEED", time.time_ns() % 2**32))
    print(f"PUGMARK_SEED={seed}")
    moments = random.Random(seed)
    session = home.start()
    file = home.path / "body"
    file.write_bytes(b"x" * 200_000)
    for _ in range(KILLS):
        running = home.spawn("push", file, file, stdout=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, 0.03))
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert len(home.bucket.check(session)) == 2 * (len(home.bucket.raw(session)) - 1)
    assert home.run("push", file).code == DONE
    home.bucket.check(session)
