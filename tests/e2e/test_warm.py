"""The instance that a loop keeps between steps: it changes nothing, and replay repeats it."""

import json
import signal
import threading
import time

import pytest

from pug import CONFLICT, DONE, FAILED, LIMIT, guest, wait_for
from test_replay import issue, replay, steps


def born(home, session):
    """The version that each step's instance was created at."""
    snapshots = home.bucket.snapshots(session)
    return [snapshots[version]["step"]["born"] for version in steps(home, session)]


def began(home, session):
    """The version that each step began on."""
    snapshots = home.bucket.snapshots(session)
    return [snapshots[version]["step"]["snapshot"] for version in steps(home, session)]


def saw(home, session):
    """What a probe has seen, step after step."""
    return [event["saw"] for event in home.bucket.events(session) if "saw" in event]


def is_exact(home, session, *flags):
    """Fails unless a replay repeats each step, without anything to say of it."""
    report = replay(home, "-s", session, *flags)
    assert (report["impure"], report["incomplete"]) == ([], [])
    assert report["identical"] == len(steps(home, session))


def is_pure(home, session):
    """Fails unless every step comes out the same on a fresh instance as well."""
    is_exact(home, session)
    is_exact(home, session, "--cold")


def test_the_same_entries_warm_and_cold(home):
    warm = home.start({"until": 100})
    home.ok("run", "--", guest("counter"))
    cold = home.start({"until": 100})
    home.ok("run", "--cold", "--", guest("counter"))
    assert home.bucket.log(warm) == home.bucket.log(cold)
    assert home.bucket.root(warm) == home.bucket.root(cold)
    assert born(home, warm) == [1] * 100
    assert born(home, cold) == began(home, cold) == [*range(1, 101)]
    for session in warm, cold:
        home.bucket.check(session)
        is_pure(home, session)


def test_bodies_of_their_own_warm_and_cold(home):
    def triaged(*flags):
        session = home.start(*(issue(n, "Crash", "x" * 3000 * (n % 2)) for n in range(40)))
        home.ok("run", *flags, "--", guest("triage"))
        home.push(issue(99, "Typo", "y" * 5000))
        home.ok("run", *flags, "--", guest("triage"))
        is_pure(home, session)
        return home.bucket.log(session)

    assert triaged() == triaged("--cold")


PURE = ["entropy", "entries", "session", "nan", "read-whole", "read-unknown"]


@pytest.mark.parametrize("probe", PURE)
@pytest.mark.parametrize("build", ["typed-probe", "typed-probe-wasip1"])
def test_what_a_step_sees_does_not_depend_on_those_before(home, build, probe):
    session = home.start({"probe": probe, "again": True}, "x", "y" * 2000)
    for _ in range(2):
        home.ok("run", "--max-steps", "4", "--", guest(build), "an argument")
        home.push("z" * 1500)
    assert len(set(born(home, session))) == 2
    is_pure(home, session)


@pytest.mark.parametrize("build", ["typed-probe", "typed-probe-wasip1"])
def test_the_order_of_maps_is_repeated(home, build):
    # Each map that `decide` makes draws a key, and shifts the keys of all maps after it.
    session = home.start({"probe": "hashmap-order", "again": True})
    home.ok("run", "--max-steps", "6", "--", guest(build))
    is_exact(home, session)
    [impure] = replay(home, "--cold")["impure"]
    assert impure["steps"] == 5
    cold = home.start({"probe": "hashmap-order", "again": True})
    home.ok("run", "--cold", "--max-steps", "6", "--", guest(build))
    is_exact(home, cold, "--cold")
    assert saw(home, session)[0] == saw(home, cold)[0]
    assert saw(home, session)[1] != saw(home, cold)[1]


def test_an_impure_decide_is_repeated_and_named(home):
    session = home.start({"probe": "continue"})
    home.ok("run", "--max-steps", "5", "--", guest("typed-probe"))
    home.ok("run", "--max-steps", "4", "--", guest("typed-probe"))
    home.ok("run", "--cold", "--max-steps", "2", "--", guest("typed-probe"))
    decides = [event["decides"] for event in home.bucket.events(session)[1:]]
    assert decides == [1, 2, 3, 4, 5, 1, 2, 3, 4, 1, 1]
    first = began(home, session)[0]
    assert born(home, session) == [*[first] * 5, *[first + 5] * 4, first + 9, first + 10]
    report = replay(home)
    assert report["identical"] == 11
    # A guess that one instance had made them all is what a fresh one then corrects.
    [impure] = report["impure"]
    assert impure["steps"] == 3 and "`decide` of `typed-probe`" in impure["reason"]
    report = replay(home, "--cold")
    assert report["identical"] == 11
    [impure] = report["impure"]
    assert (impure["version"], impure["steps"]) == (steps(home, session)[1], 4 + 3)
    result = home.run("replay", "--cold")
    assert result.code == DONE and "warning: `decide` of `typed-probe`" in result.err
    # What lies before is run, too, where an instance was older.
    for version in steps(home, session)[1:5]:
        report = replay(home, "-s", f"{session}:{steps(home, session)[4]}", "--from", str(version))
        assert report["impure"] == [] and report["outcome"] == "identical"


def test_forks_of_a_kept_instance(home):
    root = home.start({"probe": "continue"})
    home.ok("run", "--max-steps", "6", "--", guest("typed-probe"))
    made = steps(home, root)
    forked = ["--fork", "-s", f"{root}:{made[3]}", "--max-steps", "3"]
    home.ok("run", *forked, "--", guest("typed-probe"))
    child = json.loads(home.ok("context", "--json"))["session"]
    assert born(home, child) == [0, 0, 0]
    report = replay(home)
    assert (report["identical"], report["impure"]) == (4 + 3, [])


def test_a_killed_loop_is_born_again(home):
    session = home.start({"probe": "continue"})
    loop = home.spawn("run", "--", guest("typed-probe"))
    wait_for(lambda: len(home.bucket.raw(session)) > 5)
    loop.send_signal(signal.SIGKILL)
    loop.wait(10)
    before = born(home, session)
    home.ok("run", "--max-steps", "3", "--", guest("typed-probe"))
    again = began(home, session)[len(before)]
    assert born(home, session) == [*before, again, again, again]
    assert set(before) == {1}
    assert replay(home)["outcome"] == "identical"


def test_pushes_between_steps(home):
    session = home.start({"until": 400})
    loop = home.spawn("run", "--", guest("counter"))
    for number in range(20):
        home.push({"from outside": number, "text": "x" * 100 * number})
        time.sleep(0.02)
    assert loop.wait(60) == DONE
    home.ok("run", "--", guest("counter"))
    log = home.bucket.check(session)
    events = home.bucket.events(session)
    assert [e["from outside"] for e in events if "from outside" in e] == [*range(20)]
    assert len(log) == home.bucket.tip(session)["log"]["count"]
    is_pure(home, session)


def test_a_lost_race_ends_an_instance(home):
    session = home.start({"probe": "continue"})
    loops = [home.spawn("run", "--max-steps", "150", "--", guest("typed-probe")) for _ in range(3)]
    assert {loop.wait(60) for loop in loops} <= {DONE, CONFLICT}
    home.ok("run", "--max-steps", "2", "--", guest("typed-probe"))
    home.bucket.check(session)
    counted = dict.fromkeys(born(home, session), 0)
    events = home.bucket.events(session)[1:]
    for event, version in zip(events, born(home, session), strict=True):
        counted[version] += 1
        assert event["decides"] == counted[version]
    assert replay(home)["outcome"] == "identical"


def test_an_instance_that_holds_too_much_is_replaced(home):
    session = home.start({"probe": "leak", "again": True})
    limit = "memory=8MiB"
    home.ok("run", "--limit", limit, "--max-steps", "20", "--", guest("typed-probe"))
    instances = sorted(set(born(home, session)))
    assert 2 < len(instances) < 10
    for flags in ["--limit", limit], ["--limit", limit, "--cold"], []:
        is_exact(home, session, *flags)
    home.start({"probe": "leak", "again": True, "bytes": 16 << 20})
    home.fails(LIMIT, "run", "--limit", limit, "--max-steps", "20", "--", guest("typed-probe"))


def test_a_trap_ends_an_instance(home):
    session = home.start({"probe": "trap-later", "again": True})
    for _ in range(3):
        home.fails(FAILED, "run", "--", guest("typed-probe"))
    assert saw(home, session) == [1, 2, 3, 4, 5, 6]
    assert born(home, session) == [1, 1, 3, 3, 5, 5]
    is_exact(home, session, "--cold")
    # A guess that goes on from step to step traps, as the first instance did.
    assert replay(home)["identical"] == 6


def test_sleeps_and_wakes(home):
    session = home.start({"probe": "sleep", "ms": 200})
    home.ok("run", "--max-steps", "3", "--", guest("typed-probe"))
    assert born(home, session) == [1, 1, 1]
    assert [e["kind"] for e in home.bucket.events(session)[1:]] == ["wake", "wake"]
    is_pure(home, session)


def test_lines_that_are_no_entries(home):
    # What stands in for an empty log is not how a longer one begins.
    session = home.start()
    home.ok("run", "--max-steps", "4", "--", guest("counter"))
    assert born(home, session) == [0, 1, 1, 1]
    is_pure(home, session)

    def told(*flags):
        root = home.start({})
        loop = ["run", "--lifecycle", *flags, "--max-steps", "4"]
        home.ok(*loop, "--", guest("counter"))
        home.ok(*loop, "--fork", "-s", f"{root}:3", "--", guest("counter"))
        child = json.loads(home.ok("context", "--json"))["session"]
        for session in root, child:
            is_exact_lineage(home, session)
        return home.bucket.events(root), home.bucket.events(child)

    assert told() == told("--cold")


def is_exact_lineage(home, session):
    for flags in [], ["--cold"]:
        report = replay(home, "-s", session, *flags)
        assert (report["outcome"], report["impure"]) == ("identical", [])


def test_steps_of_two_handlers_in_turn(home):
    session = home.start({"probe": "continue"})
    for _ in range(2):
        home.ok("run", "--max-steps", "2", "--", guest("typed-probe"))
        home.ok("run", "--max-steps", "2", "--", guest("counter"))
    assert born(home, session) == [1, 1, 3, 3, 5, 5, 7, 7]
    report = replay(home)
    assert (report["outcome"], report["identical"]) == ("identical", 8)


def test_sessions_run_side_by_side(home):
    sessions = [home.start({"until": 150}) for _ in range(3)]
    failed = []

    def run(session):
        if home.run("run", "-s", session, "--", guest("counter")).code != DONE:
            failed.append(session)

    threads = [threading.Thread(target=run, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for session in sessions:
        assert len(set(born(home, session))) == 1
        is_exact(home, session)
