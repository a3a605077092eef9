"""`--lifecycle`: lines that tell a handler where its session was started and forked."""

import json

import pytest

from pug import guest
from rpc_handlers import PRELUDE, program

EVENTS = """
def handle(session):
    told = [str(event) for event in session.events()]
    session.write(told, name="told")
    session.pause()
"""

BODIES = """
def handle(session):
    session.write([[obj.event(), obj.decode_json()] for obj in session.read()], name="told")
    session.pause()
"""

MODES = {
    "command": lambda home, code: (
        [],
        ["python", home.script(PRELUDE + code + "\nhandle(pugmark.default_session())\n")],
    ),
    "rpc": lambda home, code: (["--rpc"], program(home, code)),
}


@pytest.fixture(params=MODES)
def mode(request):
    return MODES[request.param]


def told(home, session):
    entries = [entry for entry in home.bucket.log(session) if entry.get("name") == "told"]
    return json.loads(home.bucket.body(entries[-1]))


def test_start_and_fork(home, mode):
    root = home.start({"n": 1})
    home.push({"n": 2})
    flags, handler = mode(home, BODIES)
    start = ["start", {"kind": "start"}]
    home.ok("run", "--lifecycle", *flags, "--", *handler)
    assert told(home, root) == [start, ["push", {"n": 1}], ["push", {"n": 2}]]

    seed = home.path / "seed.json"
    seed.write_text('{"n":3}')
    child = home.ok("fork", "-s", f"{root}:1", seed).strip()
    home.ok("run", "--lifecycle", *flags, "--", *handler)
    fork = ["fork", {"kind": "fork", "session": root, "version": 1}]
    assert told(home, child) == [start, ["push", {"n": 1}], fork, ["push", {"n": 3}]]
    steps = [s["step"] for s in home.bucket.snapshots(child) if "step" in s]
    assert all(step["lifecycle"] is True for step in steps)
    home.bucket.check(child)


def test_events_of_the_sdk(home, mode):
    root = home.start({"n": 1})
    flags, handler = mode(home, EVENTS)
    home.ok("run", "--fork", "--lifecycle", *flags, "--", *handler)
    child = home.ok("context").splitlines()[1].split()[1]
    assert child != root
    assert told(home, child) == ["start", "push", "fork"]


def test_without_it_the_stream_is_the_log(home, mode):
    root = home.start({"n": 1})
    flags, handler = mode(home, EVENTS)
    home.ok("run", "--fork", *flags, "--", *handler)
    child = home.ok("context").splitlines()[1].split()[1]
    assert told(home, child) == ["push"]
    assert "lifecycle" not in home.bucket.tip(child)["step"]
    assert home.bucket.log(root) == home.bucket.log(child)[:1]


def test_in_the_sandbox(home):
    """The guest looks at the last line: with `--lifecycle` that is the fork, which it does not echo."""
    root = home.start({"kind": "input", "text": "hi"})
    for flags, answer in ([], b'{"kind":"echo","text":"HI"}'), (["--lifecycle"], b"nothing to echo"):
        home.ok("run", "--fork", "-s", root, *flags, "--once", "--", guest("wasi-echo"))
        child = home.ok("context").splitlines()[1].split()[1]
        assert home.bucket.bodies(child)[1] == answer
        step = home.bucket.tip(child)["step"]
        assert step.get("lifecycle", False) is bool(flags)
        assert list(step).index("abi") == list(step).index("snapshot") + 2 + bool(flags)
