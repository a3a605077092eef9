"""Handlers in the bucket: named versions of components, and sessions that are run with their own."""

import json
import shutil
import threading

import pytest

from pug import INVALID, NOT_FOUND, UNUSABLE, Home, digest, guest

ONE, TWO = "counter", "typed-probe"


@pytest.fixture
def other(tmp_path, home):
    """Another user on another machine, who reaches the bucket and has none of the files."""
    home.ok("context")
    return Home(tmp_path / "other", PUGMARK_BUCKET=f"file://{home.bucket.path}/")


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def add(home, name, wasm):
    return json.loads(home.ok("handlers", "add", name, guest(wasm), "--json"))


def components(home, session):
    """What the session's steps ran."""
    return [s["step"]["component"] for s in home.bucket.snapshots(session) if "step" in s]


def test_versions_are_listed_and_never_change(home):
    first = add(home, "count", ONE)
    assert (first["version"], first["added"]) == (1, True)
    stored = home.bucket.object(first["digest"])
    assert len(stored) == first["size"]
    again = add(home, "count", ONE)
    assert (again["version"], again["added"]) == (1, False)
    second = add(home, "count", TWO)
    assert (second["version"], second["added"]) == (2, True)
    third = add(home, "count", ONE)
    assert (third["version"], third["digest"]) == (3, first["digest"])
    add(home, "another", TWO)
    listed = lines(home.ok("handlers", "--json"))
    brief = [(v["name"], v["version"], v["digest"], v["latest"]) for v in listed]
    one, two = first["digest"], second["digest"]
    assert brief == [
        ("another", 1, two, True),
        ("count", 1, one, False),
        ("count", 2, two, False),
        ("count", 3, one, True),
    ]
    text = home.ok("handlers").splitlines()
    assert text[1].split()[:2] == ["count@1", one]
    assert [line.endswith("  latest") for line in text] == [True, False, False, True]
    record = home.bucket.path / "handlers/count/fffffffffffffffe.json"
    kept = json.loads(record.read_bytes())
    assert (kept["name"], kept["version"], kept["component"]) == ("count", 1, one)


def test_a_removed_version_leaves_its_number(home):
    one, two = add(home, "count", ONE)["digest"], add(home, "count", TWO)["digest"]
    removed = lines(home.ok("handlers", "rm", "count@2", "--json"))
    assert [(v["version"], v["digest"]) for v in removed] == [(2, two)]
    assert [v["version"] for v in lines(home.ok("handlers", "--json"))] == [1]
    assert add(home, "count", TWO)["version"] == 3
    home.ok("handlers", "rm", f"count@{one[:15]}")
    home.ok("handlers", "rm", "count")
    assert home.ok("handlers") == ""
    error = home.fails(NOT_FOUND, "handlers", "rm", "count")
    assert "this bucket has no handler `count`" in error
    assert home.ok("verify") == ""


def test_names_and_files_are_checked(home):
    for name in ["a/b", "", "-x", "ä", "a b"]:
        assert "cannot name a handler" in home.fails(
            INVALID, "handlers", "add", "--", name, guest(ONE)
        )
    home.fails(UNUSABLE, "handlers", "add", "count", home.script("print()"))
    home.fails(NOT_FOUND, "handlers", "add", "count", "absent.wasm")
    assert home.ok("handlers") == ""
    add(home, "count", ONE)
    for text in ["count@", "count@newest", "count@sha256:12"]:
        assert "is no version" in home.fails(INVALID, "start", "--handler", text)


def test_a_session_runs_its_own_handler_from_anywhere(home, other):
    """Added from a file on one home, run from another that has no such file."""
    component = add(home, "count", ONE)["digest"]
    session = home.start({"until": 3}, flags=["--handler", "count"])
    manifest = home.bucket.manifest(session)
    assert (manifest["handler"], manifest["component"]) == ("count", component)
    other.ok("run", "-s", session)
    assert [event.get("count") for event in home.bucket.events(session)] == [None, 1, 2]
    steps = [s["step"] for s in home.bucket.snapshots(session) if "step" in s]
    assert [(step["handler"], step["component"]) for step in steps] == [("count", component)] * 3
    assert not list(other.path.rglob("*.wasm"))
    # What was compiled is at hand: now the object itself is not read again.
    [cached] = [f for f in (other.path / ".cache").rglob("*") if component[7:23] in f.name][:1]
    assert cached.is_file()
    other.ok("replay", "-s", session)


def test_a_pinned_session_stays_and_another_follows(home):
    one = add(home, "count", ONE)["digest"]
    pinned = home.start({"until": 1}, flags=["--handler", "count"])
    by_version = home.start({"until": 1}, flags=["--handler", "count@1"])
    by_digest = home.start({"until": 1}, flags=["--handler", f"count@{one[:20]}"])
    follows = home.start({"until": 1}, flags=["--handler", "count@latest"])
    assert "component" not in home.bucket.manifest(follows)
    two = add(home, "count", "triage")["digest"]
    late = home.start({"until": 1}, flags=["--handler", "count@1"])
    for session in pinned, by_version, by_digest, follows, late:
        home.ok("run", "-s", session)
    assert components(home, pinned) == components(home, by_version) == [one]
    assert components(home, by_digest) == components(home, late) == [one]
    assert components(home, follows) == [two]
    # The name is said again: it is the session's own. With a version it is that one.
    home.ok("run", "-s", pinned, "--handler", "count")
    home.ok("run", "-s", pinned, "--handler", "count@latest")
    home.ok("run", "-s", pinned, "--handler", "count@1")
    home.ok("run", "-s", pinned, "--", guest("triage"))
    assert components(home, pinned) == [one, one, two, one, two]


def test_a_fork_is_pinned_as_its_parent_is(home):
    one = add(home, "count", ONE)["digest"]
    parent = home.start({"until": 2}, flags=["--handler", "count"])
    add(home, "count", "triage")
    seed = home.script("{}", "seed.json")
    child = home.ok("fork", seed).strip()
    assert home.bucket.manifest(child)["component"] == one
    home.ok("run")
    assert components(home, child) == [one]
    home.ok("run", "--fork", "-s", parent)
    [third] = {s["session"] for s in lines(home.ok("sessions", "--json"))} - {parent, child}
    assert home.bucket.manifest(third)["component"] == one
    assert components(home, third) == [one, one]


def test_run_starts_a_session_with_one(home):
    one = add(home, "count", ONE)["digest"]
    for flag, pin in ("count", one), ("count@latest", None), ("count@1", one):
        home.ok("run", "--start", "--once", "--handler", flag)
        session = json.loads(home.ok("context", "--json"))["session"]
        manifest = home.bucket.manifest(session)
        assert (manifest["handler"], manifest.get("component")) == ("count", pin)
        assert components(home, session) == [one]


def test_one_that_is_not_there_is_told_with_those_that_are(home):
    home.start({"until": 1}, flags=["--handler", "count"])
    error = home.fails(NOT_FOUND, "run")
    assert "this bucket has no handler `count`" in error
    assert "pugmark handlers add count FILE.wasm" in error
    add(home, "triage", ONE)
    error = home.fails(NOT_FOUND, "run")
    assert "it has triage" in error
    error = home.fails(NOT_FOUND, "start", "--handler", "triage@2")
    assert "no handler `triage@2`" in error and "it has triage@1" in error
    home.fails(NOT_FOUND, "run", "--start", "--handler", "count")
    # A name for `run --handler` may be any; where the bucket has others, a typing error is told.
    started = home.run("start", "--handler", "my agent")
    assert started.code == 0 and "`my agent` is no handler of this bucket" in started.err
    assert "no handler `my agent`" in home.fails(NOT_FOUND, "run")
    home.ok("run", "--handler", f"my agent={guest(ONE)}", "--once")
    home.ok("start")
    assert "there is no handler to run" in home.fails(INVALID, "run")


def test_a_session_without_a_name_takes_one_of_the_bucket(home):
    one = add(home, "count", ONE)["digest"]
    session = home.start({"until": 1})
    home.ok("run", "--handler", "count")
    assert components(home, session) == [one]
    asks = home.start({"until": 1}, flags=["--handler", "count"])
    error = home.fails(NOT_FOUND, "run", "-s", asks, "--handler", "triage=true")
    assert "the session asks for the handler `count`" in error


def test_what_is_pinned_outlives_its_name(home):
    add(home, "count", ONE)
    dropped = add(home, "count", TWO)["digest"]
    session = home.start({"until": 2}, flags=["--handler", "count@1"])
    home.ok("handlers", "rm", "count")
    home.ok("gc", "--delete", "--grace", "0s")
    assert not (home.bucket.path / "objects" / dropped).exists()
    home.ok("run")
    assert home.bucket.events(session) == [{"until": 2}, {"count": 1}]
    assert home.ok("verify") == ""


def test_verify_tells_what_is_missing(home):
    component = add(home, "count", ONE)["digest"]
    session = home.start(flags=["--handler", "count"])
    (home.bucket.path / "objects" / component).unlink()
    found = lines(home.run("verify", "--json").out)
    told = {(f.get("session"), f["damage"]) for f in found}
    assert told == {(session, "lost"), (None, "lost")}
    shutil.rmtree(home.path / ".cache")
    assert "is missing" in home.fails(NOT_FOUND, "run")


def test_a_bundle_has_what_its_session_is_pinned_to(home, other):
    component = add(home, "count", ONE)["digest"]
    session = home.start({"until": 1}, flags=["--handler", "count"])
    home.ok("bundle", "-o", "run.pug")
    elsewhere = home.path / "elsewhere"
    elsewhere.mkdir()
    home.ok("-b", elsewhere, "unbundle", "run.pug")
    assert (elsewhere / "objects" / component).exists()
    assert home.ok("-b", elsewhere, "verify") == ""
    home.ok("-b", elsewhere, "run", "-s", session)


def test_many_who_add_at_once_get_numbers_of_their_own(home):
    names = ["counter", "typed-probe", "triage", "typed-probe-max", "wasi-echo"]
    for name in names:
        home.ok("inspect", guest(name))
    made = []
    threads = [
        threading.Thread(target=lambda name=name: made.append(add(home, "agent", name)))
        for name in names
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(version["version"] for version in made) == [1, 2, 3, 4, 5]
    listed = {v["version"]: v["digest"] for v in lines(home.ok("handlers", "--json"))}
    assert listed == {v["version"]: v["digest"] for v in made}


def test_a_module_is_kept_as_it_runs(home):
    added = add(home, "echo", "wasi-echo")
    assert added["digest"] != digest(guest("wasi-echo").read_bytes())
    inspected = json.loads(home.ok("inspect", guest("wasi-echo"), "--json"))
    assert (inspected["digest"], inspected["size"]) == (added["digest"], added["size"])


def test_shells_complete_them(home):
    add(home, "count", ONE)
    words = ["pugmark", "start", "--handler", "co"]
    asks = {"PUGMARK_COMPLETE": "bash", "_CLAP_COMPLETE_INDEX": "3", "_CLAP_IFS": "\n"}
    offered = home.ok("--", *words, env=asks).split("\n")
    assert set(offered) == {"count", "count@latest", "count@1"}
