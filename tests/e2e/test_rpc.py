"""Handlers in RPC mode: a process that stays, called over HTTP on a socket that it was given."""

import gzip
import hashlib
import json
import os
import random
import signal
import time

import pytest

from pug import DONE, FAILED, LIMIT, UNUSABLE, alive, wait_for
from rpc_handlers import PRELUDE, program

# Counts its own calls, and says which process it is.
COUNTER = """
calls = 0
def handle(session):
    global calls
    calls += 1
    seen = len(list(session.read()))
    if seen > 4:
        return session.pause("enough")
    session.write({"pid": os.getpid(), "calls": calls, "seen": seen})
"""


def test_one_process_serves_all_steps_and_ends_with_the_run(home):
    session = home.start({"kind": "first"})
    result = home.run("run", "--rpc", "--", *program(home, COUNTER))
    assert (result.code, result.out) == (DONE, "")
    assert result.err.splitlines()[-1] == "5 steps, paused"
    answers = home.bucket.events(session)[1:]
    assert [answer["calls"] for answer in answers] == [1, 2, 3, 4]
    assert [answer["seen"] for answer in answers] == [1, 2, 3, 4]
    [pid] = {answer["pid"] for answer in answers}
    wait_for(lambda: not alive(pid), 3)
    kinds = {s["step"]["kind"] for s in home.bucket.snapshots(session) if "step" in s}
    assert kinds == {"rpc"}
    home.bucket.check(session)


def test_what_a_handler_is_told(home):
    session = home.start({"n": 1}, flags=("--meta", "user=Zoë 🐾", "--handler", "clerk"))
    code = """
def handle(session):
    assert len(list(session.read())) == 1
    session.write({"agent": session.agent(), "session": session.session_id(),
        "snapshot": session.snapshot(), "metadata": session.metadata(),
        "rpc": os.environ["PUGMARK_RPC_URL"], "env": os.environ["PUGMARK_SESSION_ID"]})
"""
    home.ok("run", "--rpc", "--once", "--", *program(home, code))
    assert home.bucket.events(session)[1] == {
        "agent": "clerk",
        "session": session,
        "snapshot": 1,
        "metadata": {"user": "Zoë 🐾"},
        "rpc": "fd://3",
        "env": session,
    }


def test_several_outputs_pause_and_sleep(home):
    session = home.start({"n": 1})
    code = """
def handle(session):
    events = [obj.event() for obj in session.read()]
    if "wake" in events:
        return session.pause("awake")
    session.write_text("a", name="one")
    session.write_bytes(b"\\x00\\xff" * 1000, name="two", metadata={"k": "v"})
    session.sleep(0.2, "a nap")
"""
    result = home.run("run", "--rpc", "--", *program(home, code))
    assert result.err.splitlines()[-1] == "2 steps, paused"
    one, two = home.bucket.log(session)[1:3]
    assert (one["name"], home.bucket.body(one)) == ("one", b"a")
    assert (two["metadata"], home.bucket.body(two)) == ({"k": "v"}, b"\x00\xff" * 1000)
    assert "sleeping until" in result.err


def test_what_it_prints_is_no_output(home):
    session = home.start("x")
    code = """
def handle(session):
    os.write(1, b"said on standard output\\n")
    session.pause()
"""
    result = home.run("run", "--rpc", "--", *program(home, code))
    assert (result.code, result.out) == (DONE, "")
    assert "said on standard output" in result.err
    assert home.bucket.bodies(session) == [b"x", b""]


def test_a_process_that_ends_between_steps_is_started_again(home):
    session = home.start("x")
    code = """
def handle(session):
    wakes = [obj.event() for obj in session.read()].count("wake")
    session.write({"pid": os.getpid()}, name="pid")
    if wakes == 2:
        return session.pause()
    session.sleep(0.6)
    threading.Timer(0.2, os._exit, [1]).start()
"""
    result = home.run("run", "--rpc", "--", *program(home, code))
    assert result.code == DONE, result.err
    pids = [home.bucket.body(e) for e in home.bucket.log(session) if e.get("name") == "pid"]
    assert len(pids) == len(set(pids)) == 3


@pytest.mark.parametrize(
    "code, expected_code, expected",
    [
        ("def handle(session): os._exit(7)", FAILED, "exited with status 7"),
        ("def handle(session): os.kill(os.getpid(), 9)", FAILED, "ended by signal 9"),
        ("def handle(session): raise ValueError('no')", FAILED, "status 500"),
        ("sys.exit(3)", FAILED, "exited with status 3"),
        ("sys.exit(0)", FAILED, "exited with status 0"),
    ],
    ids=["exit", "signal", "exception", "early", "early success"],
)
def test_failures(home, unchanged, code, expected_code, expected):
    home.start("x")
    unchanged()
    message = home.fails(expected_code, "run", "--rpc", "--", *program(home, code + "\n"))
    assert expected in message


def test_an_exception_is_told_on_standard_error(home):
    home.start("x")
    code = "def handle(session): raise ValueError('no such model')\n"
    assert "no such model" in home.run("run", "--rpc", "--", *program(home, code)).err


def test_an_output_that_cannot_be_used(home, unchanged):
    home.start("x")
    unchanged()
    code = "def handle(session): session.writer.stream.write('hello\\n')\n"
    message = home.fails(FAILED, "run", "--rpc", "--", *program(home, code))
    assert "line 1 of the handler's output is not JSON" in message


def test_a_time_out(home, unchanged):
    home.start("x")
    unchanged()
    code = """
def handle(session):
    open("pid", "w").write(str(os.getpid()))
    time.sleep(60)
"""
    begun = time.monotonic()
    message = home.fails(LIMIT, "run", "--rpc", "--timeout", "3s", "--", *program(home, code))
    assert "still running after 3s" in message and "--timeout" in message
    assert time.monotonic() - begun < 20
    assert not alive(int((home.path / "pid").read_text()))


def test_a_program_that_does_not_serve(home, unchanged):
    home.start("x")
    unchanged()
    message = home.fails(LIMIT, "run", "--rpc", "--timeout", "500ms", "--", "sleep", "60")
    assert "did not answer `GET /` within 500ms" in message and "WSGIPugmark" in message
    home.fails(UNUSABLE, "run", "--rpc", "--", "no-such-program")
    assert "exited with status 0" in home.fails(FAILED, "run", "--rpc", "--", "true")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_run(home, unchanged, sent):
    home.start("x")
    unchanged()
    code = """
def handle(session):
    open("pid.new", "w").write(str(os.getpid()))
    os.rename("pid.new", "pid")
    time.sleep(60)
"""
    running = home.spawn("run", "--rpc", "--", *program(home, code))
    wait_for((home.path / "pid").exists)
    pid = int((home.path / "pid").read_text())
    running.send_signal(sent)
    running.wait(timeout=10)
    try:
        wait_for(lambda: not alive(pid), 3)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


# Both modes, and what real programs do.

DIGESTS = """
def handle(session):
    digests = []
    for obj in session.read():
        digests.append([obj.name(), hashlib.sha256(obj.body()).hexdigest()])
    session.write(digests, name="digests")
    session.pause()
"""

PROTOBUF = """
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
file = descriptor_pb2.FileDescriptorProto(name="tests/note.proto", package="tests", syntax="proto3")
field = file.message_type.add(name="Note").field.add(name="text", number=1, type=9, label=1)
Note = message_factory.GetMessageClass(
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString()).message_types_by_name["Note"])
def handle(session):
    typed = protoipc.Session(session)
    # The SDK finds no class for types of one's own with this version of protobuf.
    found = list(typed.scan_messages())
    notes = [Note.FromString(obj.body()).text for obj in session.state()
             if obj.schema_url() == "type.googleapis.com/tests.Note"]
    assert [m.type_url for m in found] == [f"type.googleapis.com/n{n}" for n in range(len(found))]
    assert all(m.value == bytes(range(256)) * 10 for m in found)
    assert notes == [f"note {n}" for n in range(len(found))]
    if len(found) == 3:
        typed.push_message(Note(text="to a child"), fork=True)
        return session.pause("three of them")
    name = f"type.googleapis.com/n{len(found)}"
    typed.push_message(any_pb2.Any(type_url=name, value=bytes(range(256)) * 10))
    typed.push_message(Note(text=f"note {len(found)}"))
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


def test_protobuf_messages(home, mode):
    session = home.start()
    flags, handler = mode(home, PROTOBUF)
    result = home.run("run", *flags, "--", *handler)
    assert result.err.splitlines()[-1] == "4 steps, paused", result.err
    entries = home.bucket.log(session)
    schemas = [e.get("schema-url", "").removeprefix("type.googleapis.com/") for e in entries]
    assert schemas.count("google.protobuf.Any") == schemas.count("tests.Note") == 3
    assert schemas.count("google.protobuf.FileDescriptorProto") == 1
    types = {e["content-type"] for e in entries if e.get("schema-url")}
    assert all(t.startswith("application/protobuf; messageType=") for t in types)
    home.bucket.check(session)
    [child] = [file.name for file in (home.bucket.folder(session) / "children").iterdir()]
    assert home.bucket.bodies(child)[-1] == b"\n\nto a child"


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_compressed_bodies(home, mode, encoding, size):
    import zstandard

    session = home.start()
    body = random.Random(size).randbytes(size // 2) * 2
    packed = gzip.compress(body) if encoding == "gzip" else zstandard.compress(body)
    # The command line has no flag for an encoding; a handler has a field.
    (home.path / "packed").write_bytes(packed)
    line = home.script(
        f"""
import base64
data = base64.b64encode(open("packed", "rb").read()).decode()
print('{{"data":"' + data + '","content-encoding":"{encoding}","name":"it"}}')
""",
        "packer.py",
    )
    home.ok("run", "--once", "--", "python", "-S", line)
    flags, handler = mode(home, DIGESTS)
    home.ok("run", *flags, "--", *handler)
    [digests] = [json.loads(home.bucket.body(e)) for e in home.bucket.log(session) if e.get("name") == "digests"]
    assert digests == [["it", hashlib.sha256(body).hexdigest()]]


def test_two_hundred_entries_of_mixed_sizes_up_to_64_mib(home, mode):
    session = home.start()
    sizes = [0, 1, 1023, 1024, 1025, 65_536, 1 << 20, (1 << 20) + 1, 9_999_999, 64 << 20]
    chance = random.Random(7)
    sizes += [int(10 ** chance.uniform(0, 5)) for _ in range(200 - len(sizes))]
    chance.shuffle(sizes)
    expected, files = [], []
    for number, size in enumerate(sizes):
        body = chance.randbytes(size)
        name = f"f{number:03}"
        (home.path / name).write_bytes(body)
        files.append(name)
        expected.append([name, hashlib.sha256(body).hexdigest()])
    home.ok("push", "--content-type", "application/octet-stream", *files)
    flags, handler = mode(home, DIGESTS)
    home.ok("run", *flags, "--", *handler)
    [entry] = [e for e in home.bucket.log(session) if e.get("name") == "digests"]
    assert json.loads(home.bucket.body(entry)) == expected
