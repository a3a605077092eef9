"""Subprocess handlers that are written against the public Python SDK."""

import importlib.metadata
import json
import re
import time

import pytest

from pug import DONE, PAUSE, ROOT, wait_for

EXAMPLES = ROOT / "examples/echo-python"


def readme_handler():
    """The minimal handler, word for word from the README that comes with the SDK."""
    readme = importlib.metadata.metadata("pugmark").get_payload()
    return re.search(r"## Minimal handler.*?```python\n(.*?)```", readme, re.S)[1]


def sdk(home, code, name="handler.py"):
    return ["python", home.script("import pugmark\n" + code, name)]


def test_the_sdk_is_the_one_that_has_to_work():
    assert importlib.metadata.version("pugmark") == "0.16.7"
    example = (EXAMPLES / "agent.py").read_text()
    assert readme_handler().strip() in example


def test_the_readmes_handler_unchanged(home):
    session = home.start({"kind": "input", "text": "hello"})
    handler = home.script(readme_handler())
    assert home.run("run", "--once", "--", "python", handler).code == DONE
    assert home.bucket.events(session)[1:] == [{"kind": "echo", "text": "HELLO"}]
    assert home.ok("cat").splitlines()[0].replace(" ", "") == '{"kind":"input","text":"hello"}'
    assert home.run("run", "--", "python", handler).err.splitlines()[-1] == "1 step, paused"
    assert home.bucket.bodies(session)[-1] == b"nothing to echo"
    home.bucket.check(session)


def test_a_conversation_with_pause_and_resume(home):
    handler = ["python", EXAMPLES / "conversation.py"]
    home.ok("run", "--start", "--", *handler)
    session = home.ok("context").splitlines()[1].split()[1]
    for answer in ["Ada", "at eight", "three"]:
        assert "paused" in home.ok("context")
        home.push({"kind": "answer", "text": answer})
        assert "due" in home.ok("context")
        assert home.run("run", "--", *handler).err.splitlines()[-1] == "2 steps, paused"
    events = home.bucket.events(session)
    assert [event["kind"] for event in events] == ["question", "answer"] * 3 + ["booking"]
    assert events[-1] == {"kind": "booking", "name": "Ada", "time": "at eight", "guests": "three"}
    pauses = [e for e in home.bucket.log(session) if e.get("content-type") == PAUSE]
    bodies = [home.bucket.body(pause) for pause in pauses]
    assert bodies == [b"waiting for an answer"] * 3 + [b"the table is booked"]
    home.bucket.check(session)


def test_named_objects_and_state(home):
    session = home.start({"lang": "en"})
    home.push({"lang": "de"}, "--name", "config")
    home.push({"lang": "fr"}, "--name", "config")
    handler = sdk(
        home,
        """
state = pugmark.state()
assert "config" in state and "other" not in state
assert state["config"].decode_json() == {"lang": "fr"}
assert pugmark.load_json("config") == {"lang": "fr"}
pugmark.write_text("Ünïcode", name="reply", content_type="text/markdown", metadata={"a": "1"})
pugmark.write_json({"answer": 42}, name="result")
pugmark.write_bytes(bytes(range(256)), name="bin")
pugmark.write("x", name="schema", schema_url="type.googleapis.com/a.B")
pugmark.pause()
""",
    )
    home.ok("run", "--", *handler)
    text, answer, binary, schema, pause = home.bucket.log(session)[3:]
    assert (text["name"], text["content-type"], text["metadata"]) == (
        "reply",
        "text/markdown",
        {"a": "1"},
    )
    assert home.bucket.body(text).decode() == "Ünïcode"
    assert (answer["name"], json.loads(home.bucket.body(answer))) == ("result", {"answer": 42})
    assert (binary["name"], home.bucket.body(binary)) == ("bin", bytes(range(256)))
    assert (schema["name"], schema["schema-url"]) == ("schema", "type.googleapis.com/a.B")
    assert pause["content-type"] == PAUSE
    assert len({s["version"] for s in home.bucket.snapshots(session) if s.get("step")}) == 1


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 2 * 2**20, 9 * 2**20])
def test_bodies_of_any_bytes_and_size(home, size):
    session = home.start()
    body = bytes(n * 7 % 256 for n in range(256)) * (size // 256 + 1)
    home.push(body[:size], "--content-type", "application/octet-stream")
    handler = sdk(
        home,
        """
[obj] = pugmark.read()
pugmark.write_bytes(obj.body()[::-1], name="back")
pugmark.pause()
""",
    )
    home.ok("run", "--", *handler)
    entry, back = home.bucket.log(session)[:2]
    assert home.bucket.body(back) == body[:size][::-1]
    assert ("data" in entry, "data" in back) == (size < 1024, size < 1024)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_compressed_bodies(home, encoding, size):
    """They are stored as they were written, and the SDK unpacks them."""
    session = home.start()
    pack = {"gzip": "gzip.compress(body)", "zstd": "zstandard.compress(body)"}[encoding]
    home.ok(
        "run",
        "--once",
        "--",
        "python",
        home.script(f"""
import base64, gzip, json, os, zstandard
body = os.urandom({size}) * 2
open("body", "wb").write(body)
packed = base64.b64encode({pack}).decode()
print(json.dumps({{"data": packed, "content-encoding": "{encoding}", "name": "packed"}}))
"""),
    )
    home.ok("run", "--once", "--", *sdk(home, "pugmark.write(pugmark.load_bytes('packed'))\n"))
    packed, told = home.bucket.log(session)
    assert packed["content-encoding"] == encoding
    assert home.bucket.body(told) == (home.path / "body").read_bytes() != home.bucket.body(packed)
    assert "content-encoding" not in told


def test_print_goes_to_standard_error(home):
    session = home.start([1])
    handler = sdk(home, "list(pugmark.read())\npugmark.print('a diagnostic')\npugmark.write(2)\n")
    result = home.run("run", "--once", "--", *handler)
    assert (result.code, result.out) == (DONE, "")
    assert "a diagnostic\n" in result.err
    assert home.bucket.events(session) == [[1], 2]


def test_events(home):
    handler = sdk(
        home,
        """
kinds = [str(type(event).__name__) for event in pugmark.events()]
pugmark.write(kinds)
pugmark.sleep(0.2, reason="soon")
""",
    )
    session = home.start()
    home.ok("run", "--max-steps", "3", "--", *handler)
    events = [e for e in home.bucket.events(session) if isinstance(e, list)]
    assert events == [
        ["StartEvent"],
        ["PushEvent", "WakeEvent"],
        ["PushEvent", "WakeEvent", "PushEvent", "WakeEvent"],
    ]
    home.bucket.check(session)


def test_start_line_of_an_empty_log_has_a_json_body(home):
    home.start()
    handler = sdk(home, "pugmark.write([o.decode_json() for o in pugmark.read()], name='told')\n")
    home.ok("run", "--once", "--", *handler)
    [[start]] = [json.loads(line) for line in home.ok("cat").splitlines()]
    assert start["kind"] == "start"


def test_a_sleep_in_a_loop_ends_by_itself(home):
    session = home.start([1])
    handler = sdk(
        home,
        """
events = [o.decode_json() for o in pugmark.read()]
if len(events) == 1:
    pugmark.sleep(1.5, reason="a nap")
else:
    pugmark.write(events[-1])
    pugmark.pause("awake")
""",
    )
    begun = time.monotonic()
    result = home.run("run", "--", *handler)
    assert 1.5 <= time.monotonic() - begun < 10
    assert result.err.splitlines()[-1] == "2 steps, paused"
    nap = home.bucket.snapshots(session)[2]
    assert nap["last"]["ended"] == "sleep"
    wake = home.bucket.log(session)[2]
    assert (wake["event"], wake["content-type"]) == ("wake", "application/json")
    told = home.bucket.events(session)[-1]
    assert (told["kind"], told["time"]) == ("wake", nap["last"]["wake"])
    assert f"sleeping until {nap['last']['wake']}" in result.err
    home.bucket.check(session)


def test_a_sleep_under_once_is_left_for_later(home):
    session = home.start([1])
    handler = sdk(
        home,
        "n = len(list(pugmark.read()))\npugmark.sleep(0.7) if n == 1 else pugmark.pause(str(n))\n",
    )
    begun = time.monotonic()
    result = home.run("run", "--once", "--", *handler)
    assert time.monotonic() - begun < 0.7 + 0.5
    tip = home.bucket.tip(session)
    assert tip["last"]["ended"] == "sleep"
    assert result.err.splitlines()[-1] == f"1 step, sleeping until {tip['last']['wake']}"
    time.sleep(0.8)
    home.ok("run", "--once", "--", *handler)
    assert [e.get("event", "push") for e in home.bucket.log(session)] == [
        "push",
        "push",
        "wake",
        "push",
    ]
    assert home.bucket.bodies(session)[-1] == b"2"


def test_a_push_wakes_a_sleeping_loop(home):
    session = home.start([1])
    handler = sdk(
        home,
        "n = len(list(pugmark.read()))\npugmark.sleep(100) if n == 1 else pugmark.pause('up')\n",
    )
    loop = home.spawn("run", "--", *handler)
    try:
        wait_for(lambda: len(home.bucket.raw(session)) == 3)
        home.push([2])
        assert loop.wait(timeout=10) == DONE
    finally:
        loop.kill()
    assert home.bucket.bodies(session)[-1] == b"up"
    assert home.bucket.events(session) == [[1], [2]]
