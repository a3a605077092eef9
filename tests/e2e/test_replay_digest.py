"""The triage component over real webhook payloads: the same log gives the same outputs, anywhere."""

import json
import shutil

import pytest

from pug import BIN, PAUSE, WEBHOOKS, Home, digest, guest

# Payloads that are no issue's: the handler skips them.
NOISE = 70


@pytest.fixture(scope="module")
def payloads(tmp_path_factory):
    """A folder of real payloads: `noise/` and `issues/`, a file each."""
    index = WEBHOOKS / "package/api.github.com/index.json"
    assert index.exists(), f"{index} is missing: run tests/setup.sh webhooks"
    folder = tmp_path_factory.mktemp("payloads")
    for group in json.loads(index.read_text()):
        kind = "issues" if group["name"] in ("issues", "issue_comment") else "noise"
        (folder / kind).mkdir(exist_ok=True)
        for number, example in enumerate(group["examples"]):
            (folder / kind / f"{group['name']}-{number:02}.json").write_text(json.dumps(example))
    # Not one of them leaves the rules at a loss: a human is needed for this one.
    example = opened(folder)
    example["issue"] |= {"number": 99, "title": "Hm", "body": "I don't know.", "labels": []}
    (folder / "issues/issues-99.json").write_text(json.dumps(example))
    return folder


def opened(folder):
    """The first payload of an issue that was opened."""
    payloads = (
        json.loads(file.read_text()) for file in sorted((folder / "issues").glob("issues-*"))
    )
    return next(payload for payload in payloads if payload["action"] == "opened")


def converse(home, handler, payloads):
    """A session as it grows when webhooks come in; returns its id."""
    session = home.start()
    noise = sorted((payloads / "noise").iterdir())[:NOISE]
    home.ok("push", *noise)
    for payload in sorted((payloads / "issues").iterdir(), reverse=True):
        home.ok("push", payload)
        home.ok("run", "--", *handler)
        if "a human is needed" in home.bucket.bodies(session)[-1].decode():
            home.push({"kind": "reply", "text": f"Thank you for {payload.name}."})
            home.ok("run", "--", *handler)
    return session


@pytest.fixture(scope="module")
def first(tmp_path_factory, payloads):
    home = Home(tmp_path_factory.mktemp("first"))
    return home, converse(home, [guest("triage")], payloads)


def answers(home, session):
    return [
        event
        for event in home.bucket.events(session)
        if isinstance(event, dict) and event.get("kind") == "triage"
    ]


def test_it_triages(first):
    home, session = first
    home.bucket.check(session)
    given = answers(home, session)
    assert len(given) >= 10
    assert all(answer["issue"] in (1, 2, 99) for answer in given)
    assert given[0] == {
        "kind": "triage",
        "issue": 99,
        "labels": ["needs-human"],
        "reply": "Thanks, @Codertocat. A maintainer will look at this.",
    }
    assert given[1] == given[0] | {"labels": [], "reply": "Thank you for issues-99.json."}
    assert {"bug", "documentation"} <= set(given[2]["labels"])
    steps = [s["step"] for s in home.bucket.snapshots(session) if "step" in s]
    assert {step["component"] for step in steps} == {steps[0]["component"]}
    assert "paused" in home.ok("context")


def test_a_fresh_session_gives_the_same_outputs_and_log_digest(first, payloads, tmp_path):
    home, session = first
    again = converse(Home(tmp_path / "home", "America/New_York"), [guest("triage")], payloads)
    other = Home(tmp_path / "home").bucket
    assert other.bodies(again) == home.bucket.bodies(session)
    assert other.log(again) == home.bucket.log(session)
    versions = len(home.bucket.raw(session))
    assert [other.root(again, v) for v in range(versions)] == [
        home.bucket.root(session, v) for v in range(versions)
    ]


def test_the_same_source_as_a_subprocess_gives_the_same_log_digest(first, payloads, tmp_path):
    home, session = first
    native = Home(tmp_path / "home")
    again = converse(native, [BIN.parent / "triage"], payloads)
    assert native.bucket.root(again) == home.bucket.root(session)
    assert native.bucket.snapshots(again)[3]["step"]["kind"] == "process"


def test_bucket_and_component_copied_to_another_home_and_time_zone(first, payloads, tmp_path):
    home, session = first
    away = Home(tmp_path / "away from home", "Asia/Kathmandu", LANG="de_DE.UTF-8")
    shutil.copytree(home.bucket.path, tmp_path / "copied")
    away.ok("-b", tmp_path / "copied", "switch", session)
    assert away.ok("cat") == home.ok("cat", "-s", session)
    assert away.ok("log", "-A", "-s", session) == home.ok("log", "-A", "-s", session)
    again = Home(tmp_path / "another home", "Asia/Kathmandu")
    shutil.copy(guest("triage"), again.path / "mine.wasm")
    log = home.bucket.log(session)
    component = home.bucket.tip(session)["step"]["component"]
    fresh = converse(again, ["./mine.wasm"], payloads)
    assert again.bucket.log(fresh) == log
    assert again.bucket.root(fresh) == home.bucket.root(session)
    assert again.bucket.tip(fresh)["step"]["component"] == component


def test_copies_of_a_session_go_on_in_the_same_way(first, payloads, tmp_path):
    home, session = first
    payload = sorted((payloads / "issues").iterdir())[0]
    roots = []
    for timezone in ("UTC", "Pacific/Apia"):
        user = Home(tmp_path / timezone, timezone)
        shutil.copytree(home.bucket.path, user.bucket.path)
        user.ok("push", "-s", session, payload)
        user.ok("run", "-s", session, "--", guest("triage"))
        roots.append(user.bucket.root(session))
    assert roots[0] == roots[1] != home.bucket.root(session)


def test_a_fork_at_version_2_diverges_there_and_shares_all_before(payloads, tmp_path):
    home = Home(tmp_path / "home")
    session = home.start()
    home.ok("push", *sorted((payloads / "noise").iterdir())[:NOISE])
    payload = opened(payloads)
    home.push(payload, "--name", "opened.json")
    home.ok("run", "--", guest("triage"))
    before = home.bucket.files("objects")
    parent = home.bucket.snapshots(session)

    payload["issue"] |= {
        "title": "How do I add an option?",
        "body": "Is there a way?",
        "labels": [],
    }
    (home.path / "edited.json").write_text(json.dumps(payload))
    child = home.ok("fork", "-s", f"{session}:2", "edited.json").strip()
    home.ok("run", "--", guest("triage"))

    here, there = home.bucket.log(session), home.bucket.log(child)
    assert there[:71] == here[:71] == home.bucket.log(session, 2)
    assert home.bucket.body(there[71]) == (home.path / "edited.json").read_bytes()
    [mine], [theirs] = answers(home, session), answers(home, child)
    assert "question" not in mine["labels"] and "question" in theirs["labels"]
    assert mine["reply"] != theirs["reply"]
    assert here[-1]["content-type"] == there[-1]["content-type"] == PAUSE

    levels = [
        snapshot["log"]["levels"] for snapshot in (parent[2], parent[-1], home.bucket.tip(child))
    ]
    assert levels[0] == levels[1] == levels[2] and len(levels[0][0]) == 2
    added = set(home.bucket.files("objects")) - set(before)
    assert added == {"objects/" + digest((home.path / "edited.json").read_bytes())}
    assert home.bucket.manifest(child)["parent"] == {
        "session": session,
        "version": 2,
        "snapshot": digest(home.bucket.raw(session)[2]),
    }
    assert home.bucket.snapshots(session) == parent
    home.bucket.check(child)
    tree = home.ok("log").splitlines()
    assert tree[0].startswith(session)
    assert tree[1].startswith(f"└─ {child}  forked at v2  ")
