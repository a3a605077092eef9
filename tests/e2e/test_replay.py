"""`pugmark replay`: recorded steps run again and compared, byte by byte."""

import base64
import json
import shutil

import pytest

from pug import CORRUPT, DONE, INVALID, PAUSE, Home, digest, guest
from test_replay_digest import converse, opened, payloads  # noqa: F401

DIFFERENT, INCOMPLETE = 20, 21

# What the triage handler says of bugs, and what another build of it says: of the same length, so
# that the one can be put in place of the other.
PROMPT = b"We will try to reproduce this."
CHANGED = b"We shall look into this, soon."


def replay(home, *args, code=DONE):
    """The report of a replay, which has to end with this code."""
    result = home.run("replay", *args, "--json")
    assert result.code == code, f"exit {result.code}\n{result.out}\n{result.err}"
    return json.loads(result.out)


def steps(home, session):
    """The versions that steps made."""
    return [s["version"] for s in home.bucket.snapshots(session) if "step" in s]


def current(home):
    """The current session."""
    return json.loads(home.ok("context", "--json"))["session"]


@pytest.fixture
def count(home):
    """Makes a session in which the counter counts; returns its id."""

    def make(until):
        session = home.start({"until": until})
        home.ok("run", "--", guest("counter"), timeout=600)
        return session

    return make


@pytest.fixture
def changed(home):
    """A build of the triage handler with another prompt."""
    original = guest("triage").read_bytes()
    assert len(PROMPT) == len(CHANGED) and original.count(PROMPT) == 1
    path = home.path / "changed.wasm"
    path.write_bytes(original.replace(PROMPT, CHANGED))
    return path


def issue(number, title, body="It happens."):
    return {
        "action": "opened",
        "issue": {
            "number": number,
            "title": title,
            "body": body,
            "labels": [],
            "user": {"login": "ada", "type": "User"},
            "author_association": "NONE",
        },
        "sender": {"login": "ada", "type": "User"},
    }


def triage(home, *titles):
    """A session in which the triage handler answers issues, one at a time; returns its id."""
    session = home.start()
    for number, title in enumerate(titles, 1):
        home.push(issue(number, title))
        home.ok("run", "--", guest("triage"))
    return session


def test_real_webhooks_in_another_home_and_time_zone(payloads, tmp_path):  # noqa: F811
    home = Home(tmp_path / "home")
    session = converse(home, [guest("triage")], payloads)
    away = Home(tmp_path / "away from home", "Asia/Kathmandu", LANG="de_DE.UTF-8")
    shutil.copytree(home.bucket.path, tmp_path / "copied")
    before = home.bucket.files()
    made = len(steps(home, session))
    for flags in [], ["--cold"], ["--jobs", "1"]:
        out = away.ok("-b", tmp_path / "copied", "replay", "-s", session, *flags)
        assert out == f"{made} steps replayed, identical\n"
    assert home.bucket.files() == before


def test_the_report_as_json(home, count):
    session = count(5)
    assert replay(home) == {
        "session": session,
        "version": 6,
        "outcome": "identical",
        "identical": 5,
        "different": 0,
        "ended_at_first_difference": False,
        "incomplete": [],
        "skipped": [],
        "impure": [],
    }


def test_ranges(home, count):
    session = count(8)
    assert replay(home, "-s", f"{session}:4")["identical"] == 3
    assert replay(home, "--from", "5")["identical"] == 5
    assert replay(home, "-s", f"{session}:6", "--from", "5")["identical"] == 2
    assert replay(home, "--handler", "counter")["identical"] == 8
    assert replay(home, "--handler", "nobody")["identical"] == 0
    home.fails(INVALID, "replay", "--from", "99")


def test_a_session_without_steps(home):
    home.start("x")
    assert home.ok("replay") == "0 steps replayed, identical\n"


def test_forks_replay_what_they_inherit(home, count):
    root = count(40)
    child = home.ok("fork", "-s", f"{root}:20", "--", home.script("{}", "a.json")).strip()
    home.ok("run", "--max-steps", "10", "--", guest("counter"))
    home.ok("run", "--fork", "-s", f"{child}:5", "--max-steps", "3", "--", guest("counter"))
    grandchild = current(home)
    assert replay(home, "-s", child)["identical"] == 19 + 10
    assert replay(home, "-s", grandchild)["identical"] == 19 + 5 + 3
    assert replay(home, "-s", grandchild, "--cold")["identical"] == 19 + 5 + 3
    assert replay(home, "-s", grandchild, "--from", "0")["identical"] == 3

    shutil.rmtree(home.bucket.folder(root))
    report = replay(home, "-s", grandchild, code=INCOMPLETE)
    assert (report["outcome"], report["identical"]) == ("incomplete", 5 + 3)
    [missing] = report["incomplete"]
    assert (missing["session"], missing["version"]) == (root, 20)
    assert "ancestor is missing" in missing["reason"]


def test_two_thousand_steps_warm_and_cold(home, count):
    count(2000)
    warm = replay(home)
    assert warm["identical"] == 2000
    assert replay(home, "--cold") == warm


def test_pushes_between_steps_and_large_bodies(home):
    session = home.start()
    for number in range(40):
        home.push(issue(number, "Crash", "x" * 3000 if number % 3 else ""))
        if number % 5 == 4:
            home.ok("run", "--", guest("triage"))
    assert replay(home)["identical"] == len(steps(home, session)) == 48
    assert replay(home, "--cold")["identical"] == 48


def test_a_program_in_the_sandbox(home):
    home.start("hello", "world")
    home.ok("run", "--max-steps", "5", "--", guest("wasi-echo"))
    home.push("more")
    home.ok("run", "--max-steps", "5", "--", guest("wasi-echo"))
    report = replay(home)
    assert report["identical"] == len(steps(home, report["session"])) > 1


@pytest.mark.parametrize("probe", ["entropy", "entries", "session", "sleep", "empty", "nan"])
@pytest.mark.parametrize("build", ["typed-probe", "typed-probe-wasip1"])
def test_typed_probes(home, build, probe):
    home.start({"probe": probe}, "x", "y" * 2000)
    for _ in range(3):
        home.ok("run", "--once", "--", guest(build), "an argument")
        home.push("more")
    for flags in [], ["--cold"]:
        report = replay(home, *flags)
        assert (report["identical"], report["impure"]) == (3, [])


@pytest.mark.parametrize("probe", ["random", "hashmap-order", "clocks", "frame"])
def test_program_probes(home, probe):
    home.start({"probe": probe})
    for _ in range(2):
        home.ok("run", "--once", "--", guest("command-probe"))
    assert replay(home)["identical"] == 2


def test_an_empty_log_and_lifecycle_lines(home, count):
    home.start()
    home.ok("run", "--max-steps", "3", "--", guest("counter"))
    assert replay(home)["identical"] == 3
    root = home.start("x")
    home.ok("run", "--lifecycle", "--max-steps", "4", "--", guest("counter"))
    forked = ["--fork", "-s", f"{root}:3", "--lifecycle", "--max-steps", "4"]
    home.ok("run", *forked, "--", guest("counter"))
    for flags in [], ["--cold"]:
        report = replay(home, *flags)
        assert (report["identical"], report["impure"]) == (2 + 4, [])


def test_outputs_for_other_sessions(home):
    other = home.start("first")

    def line(text, **to):
        data = base64.b64encode(text.encode()).decode()
        return json.dumps({"data": data, **to}) + "\n"

    text = line("own") + line("sent", session=other) + line("seed", fork=True)
    home.start({"probe": "raw-stdout", "text": text})
    home.ok("run", "--once", "--", guest("command-probe"))
    assert replay(home)["identical"] == 1


def test_an_impure_decide_is_told_apart(home):
    session = home.start({"probe": "decides"})
    home.ok("run", "--", guest("typed-probe"))
    for text in "ab":
        home.push(text)
        home.ok("run", "--", guest("typed-probe"))
    made = len(steps(home, session))
    report = replay(home)
    assert (report["outcome"], report["identical"]) == ("identical", made)
    [impure] = report["impure"]
    assert impure["steps"] == made - 1
    assert (impure["session"], impure["version"]) == (session, steps(home, session)[1])
    result = home.run("replay")
    assert result.code == DONE and "warning: `decide` of `typed-probe`" in result.err
    assert replay(home, "--cold")["impure"] == []


def record_kept_instance(home, session):
    """Makes of a session of the probe `decides` what one would be that kept its instance."""
    snapshots, made = home.bucket.snapshots(session), steps(home, session)
    born = snapshots[made[0]]["step"]["snapshot"]
    for saw, version in enumerate(made, 1):
        body = json.dumps({"probe": "decides", "saw": saw}, separators=(",", ":")).encode()
        place = snapshots[version]["step"]["n"]
        entry = {"hash": digest(body), "size": len(body), "content-type": "application/json"}
        entry["data"] = base64.b64encode(body).decode()
        snapshots[version]["objects"][0] = entry
        for snapshot in snapshots[version:]:
            snapshot["log"]["tail"][place] = entry
    for version in made:
        step = snapshots[version]["step"]
        log = json.dumps(snapshots[step["snapshot"]]["log"], separators=(",", ":"))
        step |= {"log": digest(log.encode()), "born": born}
    files = sorted((home.bucket.folder(session) / "snapshots").glob("*.json"), reverse=True)
    for file, snapshot in zip(files, snapshots, strict=True):
        file.write_text(json.dumps(snapshot, separators=(",", ":")) + "\n")


def test_steps_of_a_kept_instance_are_repeated_as_recorded(home):
    session = home.start({"probe": "decides"})
    home.ok("run", "--", guest("typed-probe"))
    for text in "ab":
        home.push(text)
        home.ok("run", "--", guest("typed-probe"))
    record_kept_instance(home, session)
    report = replay(home)
    assert (report["identical"], report["impure"]) == (3, [])
    report = replay(home, "--cold")
    assert report["identical"] == 3
    [impure] = report["impure"]
    assert (impure["version"], impure["steps"]) == (steps(home, session)[1], 2)


def test_another_build_differs_first_where_its_prompt_is_used(home, changed):
    session = triage(home, "A typo", "Crash on start", "How do I?", "It does not work", "Typo")
    entries = home.bucket.snapshots(session)
    told = [s["version"] for s in entries if PROMPT in b"".join(map(home.bucket.body, s["objects"]))]
    assert len(told) == 2

    report = replay(home, "--with", changed, code=DIFFERENT)
    made = len(steps(home, session))
    assert report["with"] == str(changed)
    assert (report["identical"], report["different"]) == (made - 2, 2)
    assert report["ended_at_first_difference"] is False
    first = report["first_difference"]
    assert (first["session"], first["version"]) == (session, told[0])
    assert first["handler"] == "triage"
    assert first["changes"] == [
        {
            "op": "changed",
            "path": "/outputs/0/body/reply",
            "from": f"Thanks, @ada! {PROMPT.decode()}",
            "to": f"Thanks, @ada! {CHANGED.decode()}",
        }
    ]
    assert first["recorded"]["ended"] == "no"
    assert first["replayed"]["outputs"][0]["body"]["issue"] == 2

    result = home.run("replay", "--with", changed)
    assert result.code == DIFFERENT
    lines = result.out.splitlines()
    assert lines[0] == f"{session}:{told[0]}  step by triage differs"
    assert "/outputs/0/body/reply: " in lines[1]
    assert lines[-1] == f"2 of {made} steps replayed differ"
    assert replay(home, "--with", guest("triage"))["different"] == 0
    assert replay(home, "--with", changed, "--cold", code=DIFFERENT) == report


def test_a_build_that_fails_or_does_something_else_entirely(home):
    session = triage(home, "Crash", "Typo")
    report = replay(home, "--with", guest("typed-probe"), code=DIFFERENT)
    assert report["different"] == len(steps(home, session))
    assert "no such probe" in report["first_difference"]["replayed"]["failed"]
    report = replay(home, "--with", guest("wasi-echo"), code=DIFFERENT)
    assert report["different"] > 0
    home.fails(3, "replay", "--with", "missing.wasm")


def test_the_first_of_several_builds_that_differs(home, changed):
    triage(home, "A typo", "Crash on start")
    builds = [guest("triage"), guest("triage-wasip1"), changed, guest("counter")]
    report = replay(home, "--bisect", *builds, code=DIFFERENT)
    assert report["first"] == str(changed)
    assert [build["outcome"] for build in report["builds"]] == ["identical"] * 2 + ["different"]
    assert report["not_tried"] == [str(builds[3])]
    result = home.run("replay", "--bisect", *builds)
    words = [line.split()[0] for line in result.out.splitlines()[:4]]
    assert words == ["identical", "identical", "differs", "not"]
    report = replay(home, "--bisect", *builds[:2])
    assert (report["first"], report["not_tried"]) == (None, [])


def test_a_missing_component_is_incomplete(home, count):
    count(3)
    [component] = {
        s["step"]["component"] for s in home.bucket.snapshots(current(home)) if "step" in s
    }
    (home.bucket.path / "objects" / component).unlink()
    report = replay(home, code=INCOMPLETE)
    assert (report["outcome"], report["identical"]) == ("incomplete", 0)
    [incomplete] = report["incomplete"]
    assert incomplete["steps"] == 3
    assert incomplete["reason"] == f"component {component} is not in this bucket"
    assert replay(home, "--with", guest("counter"))["identical"] == 3


def test_a_damaged_component_is_named(home, count):
    session = count(3)
    component = home.bucket.tip(session)["step"]["component"]
    file = home.bucket.path / "objects" / component
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert component in home.fails(CORRUPT, "replay")


def test_a_checkpoint_that_does_not_fit_the_log_is_named(home, count):
    session = count(3)
    files = sorted((home.bucket.folder(session) / "snapshots").glob("*.json"), reverse=True)
    snapshot = json.loads(files[2].read_bytes())
    body = b'{"count":7}'
    snapshot["objects"][0] |= {"hash": digest(body), "data": base64.b64encode(body).decode()}
    files[2].write_text(json.dumps(snapshot, separators=(",", ":")) + "\n")
    assert files[2].name in home.fails(CORRUPT, "replay")


def test_a_record_of_another_log_is_named(home, count):
    session = count(3)
    files = sorted((home.bucket.folder(session) / "snapshots").glob("*.json"), reverse=True)
    text = files[3].read_text()
    log = json.loads(text)["step"]["log"]
    files[3].write_text(text.replace(log, digest(b"other")))
    assert files[3].name in home.fails(CORRUPT, "replay")


def test_a_step_that_meets_a_limit_is_incomplete(home, count):
    count(3)
    for flags in [], ["--cold"]:
        report = replay(home, "--limit", "memory=64KiB", *flags, code=INCOMPLETE)
        assert [found["steps"] for found in report["incomplete"]] == [3]
        assert "memory limit" in report["incomplete"][0]["reason"]


ECHO = """
import base64, json, sys
lines = [json.loads(line) for line in sys.stdin]
text = WORD + str(len(lines))
print(json.dumps({"data": base64.b64encode(text.encode()).decode()}))
print(json.dumps({"data": "", "content-type": "%s"}))
""" % PAUSE


def test_processes_run_only_where_a_command_is_given(home):
    home.start("a")
    script = home.script(ECHO.replace("WORD", "'n='"), "echo.py")
    other = home.script(ECHO.replace("WORD", "'m='"), "other.py")
    home.ok("run", "--handler", f"echo=python -S {script}")
    home.ok("run", "--max-steps", "2", "--", guest("counter"))
    script.rename(home.path / "moved.py")
    report = replay(home)
    assert (report["outcome"], report["identical"]) == ("identical", 2)
    [skipped] = report["skipped"]
    assert (skipped["steps"], skipped["reason"]) == (1, "`echo` is a process")
    (home.path / "moved.py").rename(script)

    command = f"echo=python -S {script}"
    report = replay(home, "--process", command)
    assert (report["identical"], report["skipped"]) == (3, [])
    report = replay(home, "--process", f"echo=python -S {other}", code=DIFFERENT)
    assert report["first_difference"]["changes"] == [
        {"op": "changed", "path": "/outputs/0/body", "from": "n=1", "to": "m=1"}
    ]
    home.fails(INVALID, "replay", "--process", f"echo={guest('counter')}")


def test_help_lists_the_exit_codes(home):
    assert "21 not all could be replayed" in home.ok("--help")
    for flag in ("--with", "--bisect", "--cold", "--process", "--from", "--jobs"):
        assert flag in home.ok("replay", "--help")
