"""Recorded effects: what a handler asks by HTTP is asked once, whatever happens, and never again."""

import base64
import fcntl
import json
import os
import signal
import subprocess

import pytest

from pug import CONFLICT, DONE, FAILED, INVALID, Home, guest, wait_for
from http_servers import Server

DIFFERENT, INCOMPLETE = 20, 21


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


def probe(home, server, name, **arguments):
    """A session whose handler is to probe; returns its id."""
    return home.start({"probe": name, **arguments})


def run(home, server, *flags, handler="http-probe", **options):
    return home.run("run", "--allow-http", server.place, *flags, "--", guest(handler), **options)


def saw(home, session):
    """What the probe saw, of which the last step tells."""
    return home.bucket.events(session)[-1]["saw"]


def steps(home, session):
    return [s for s in home.bucket.snapshots(session) if "step" in s]


def trace(home, session):
    return home.bucket.tip(session).get("trace")


def killed(home, session, server, *flags, when, handler="http-probe"):
    """Runs the handler until it hangs, and kills it."""
    server.hang.clear()
    process = home.spawn(
        "run", "--allow-http", server.place, *flags, "--", guest(handler),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(when, 30)
    finally:
        process.kill()
        process.wait(10)
    server.hang.set()


def killed_between(home, session, server, handler):
    """Kills a run that has an answer, and has not committed.

    The handler logs something then, and nobody reads it: so there it stands.
    """
    before = len(steps(home, session))
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"." * size)
    process = home.spawn(
        "run", "--allow-http", server.place, "--", guest(handler),
        stdout=subprocess.DEVNULL, stderr=writer,
    )
    wait_for(lambda: trace(home, session), 30)
    assert process.poll() is None and len(steps(home, session)) == before
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    os.close(reader)
    os.close(writer)


def replayed(home, *args, code=DONE):
    result = home.run("replay", *args, "--json")
    assert result.code == code, f"exit {result.code}\n{result.out}\n{result.err}"
    return json.loads(result.out)


def test_an_answer_is_recorded(home, server):
    session = probe(home, server, "get", url=server.url("/a?b=c"), headers={"X-A": "b"}, body="hi")
    assert run(home, server).code == DONE
    body = saw(home, session)["body"]
    assert json.loads(body) == {"number": 1}
    [step] = steps(home, session)
    [effect] = step["step"]["effects"]
    assert effect["request"] == {
        "method": "GET",
        "url": server.url("/a?b=c"),
        "headers": [["x-a", "b"]],
        "size": 2,
        "data": base64.b64encode(b"hi").decode(),
    }
    assert effect["response"]["status"] == 200
    assert base64.b64decode(effect["response"]["data"]).decode() == body
    # What it got is durable one version before, and over with the step.
    before = home.bucket.snapshots(session)[step["version"] - 1]
    assert before["trace"]["effects"] == [effect]
    assert (before["kind"], before["objects"], before["format"]["write"]) == ("provisional", [], 3)
    assert "trace" not in step
    home.bucket.check(session)
    home.ok("verify")
    server.stop()
    assert replayed(home)["identical"] == 1
    assert len(server.requests) == 1


def test_a_step_that_is_killed_goes_on_with_its_answers(home, server):
    """The first answer is there, the second request hangs; kill; another run."""
    first, second = server.url("/a"), server.url("/hang")
    session = probe(home, server, "twice", url=first, then=second)
    killed(home, session, server, when=lambda: server.paths() == ["/a", "/hang"])
    assert len(trace(home, session)["effects"]) == 1
    home.push({"later": 1})
    result = run(home, server, "--once")
    assert result.code == DONE, result.err
    assert "going on with an interrupted step: 1 of its answers are recorded" in result.err
    assert server.paths() == ["/a", "/hang", "/hang"]
    events = home.bucket.events(session)
    # What was pushed meanwhile stands behind the outputs of the step, which had not seen it.
    assert "saw" in events[1] and events[2] == {"later": 1}
    assert [json.loads(answer["body"])["number"] for answer in events[1]["saw"]] == [1, 3]
    assert steps(home, session)[0]["step"]["n"] == 1
    home.bucket.check(session)
    home.ok("verify")


def test_killed_after_the_answer_and_before_the_commit(home, server, tmp_path):
    """The model is asked once; a replay asks nobody, and nor does one without any network."""
    # Compiled before, so that nothing but the handler has anything to say.
    probe(home, server, "none")
    assert run(home, server).code == FAILED
    session = probe(home, server, "told", url=server.url("/a"))
    killed_between(home, session, server, "http-probe")
    assert run(home, server).code == DONE
    assert server.paths() == ["/a"]
    assert json.loads(saw(home, session)["body"]) == {"number": 1}
    server.stop()
    for flags in [[], ["--cold"]]:
        assert replayed(home, *flags)["identical"] == 1
    home.ok("bundle", session, "-o", tmp_path / "run.pug")
    elsewhere = Home(tmp_path / "elsewhere")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        elsewhere.prefix = ["unshare", "-rn"]
    assert replayed(elsewhere, tmp_path / "run.pug")["identical"] == 1
    assert server.paths() == ["/a"]
    home.bucket.check(session)


def test_a_request_of_time_and_random_is_the_same_again(home, server):
    """Clock and random numbers are those of the attempt, whatever was pushed since."""
    session = probe(home, server, "entropy", url=server.url("/once"))
    # The first request is answered, the second hangs.
    killed(home, session, server, when=lambda: len(server.requests) == 2)
    assert len(trace(home, session)["effects"]) == 1
    home.push({"later": 1})
    assert run(home, server, "--once").code == DONE
    first, made, again = [body for _, _, _, body in server.requests]
    assert first == b"first" and made == again and made.endswith(b" 1")
    assert replayed(home)["identical"] == 1


def test_a_trace_is_of_one_handler(home, server):
    """Another component, other arguments or a process start over; the same goes on."""
    session = probe(home, server, "twice", url=server.url("/a"), then=server.url("/hang"))
    killed(home, session, server, when=lambda: len(server.requests) == 2)
    result = run(home, server, "--once", handler="chat")
    assert result.code == DONE, result.err
    assert "what an interrupted step had recorded is dropped" in result.err
    assert trace(home, session) is None

    session = probe(home, server, "twice", url=server.url("/b"), then=server.url("/hang"))
    killed(home, session, server, when=lambda: len(server.requests) == 4)
    home.ok("run", "--once", "--", "sh", "-c", "cat >/dev/null; echo '{\"data\":\"MQ==\"}'")
    assert trace(home, session) is None
    home.bucket.check(session)
    home.ok("verify")


def test_a_failure_that_would_come_again_drops_what_led_to_it(home, server):
    session = probe(home, server, "fail", url=server.url("/a"))
    for asked in (1, 2):
        result = run(home, server)
        assert result.code == FAILED and "told so" in result.err
        assert len(server.requests) == asked
        assert trace(home, session) is None
    # A limit may be raised: what was got within it is kept.
    session = probe(home, server, "spin", url=server.url("/b"))
    for _ in (1, 2):
        result = run(home, server, "--timeout", "1s")
        assert result.code == 11 and "over the time limit of 1000 ms" in result.err
        assert server.paths()[2:] == ["/b"]
    assert len(trace(home, session)["effects"]) == 1
    home.bucket.check(session)
    home.ok("verify")


def test_two_runs_at_once_make_one_step(home, server):
    """One is told that the other was first, and no recorded request is made again."""
    session = probe(home, server, "twice", url=server.url("/hang"), then=server.url("/a"))
    server.hang.clear()
    running = [
        home.spawn("run", "--allow-http", server.place, "--", guest("http-probe"),
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    wait_for(lambda: len(server.requests) == 2, 30)
    server.hang.set()
    codes = sorted(process.wait(30) for process in running)
    errors = "".join(process.stderr.read().decode() for process in running)
    assert codes == [DONE, CONFLICT], errors
    assert server.paths().count("/a") == 1
    assert "another" in errors
    assert len(steps(home, session)) == 1
    home.bucket.check(session)
    home.ok("verify")


def test_waiting_is_not_the_handlers_time(home, server):
    session = probe(home, server, "get", url=server.url("/slow/2.5"))
    assert run(home, server, "--timeout", "1s").code == DONE
    assert saw(home, session)["status"] == 200


def test_another_build_asks_something_else(home, server, tmp_path):
    session = home.start({"kind": "model", "url": server.url(), "model": "small"},
                         {"kind": "user", "text": "Hello"})
    result = home.run("run", "--allow-http", server.place, "--", guest("chat"))
    assert result.code == DONE, result.err
    assert home.bucket.events(session)[-1] == {"kind": "assistant", "text": "Answer 1 to 'Hello'"}
    server.stop()
    assert replayed(home)["identical"] == 1
    original = guest("chat").read_bytes()
    changed = tmp_path / "changed.wasm"
    assert original.count(b"/v1/chat/completions") == 1
    changed.write_bytes(original.replace(b"/v1/chat/completions", b"/v2/chat/completions"))
    report = replayed(home, "--with", changed, code=DIFFERENT)
    assert "its URL is" in json.dumps(report) and "/v2/chat" in json.dumps(report)
    assert "its URL is" in home.run("replay", "--with", changed).out


def test_what_is_missing_is_incomplete(home, server):
    session = probe(home, server, "get", url=server.url("/big/5000"))
    assert run(home, server).code == DONE
    [step] = steps(home, session)
    hash = step["step"]["effects"][0]["response"]["hash"]
    (home.bucket.path / "objects" / hash).unlink()
    replayed(home, code=INCOMPLETE)
    assert hash in home.run("verify").out


def test_bodies_of_a_trace_are_not_collected(home, server):
    session = probe(home, server, "twice", url=server.url("/big/5000"), then=server.url("/hang"))
    killed(home, session, server, when=lambda: len(server.requests) == 2)
    [effect] = trace(home, session)["effects"]
    assert effect["response"]["size"] == 5000 and "data" not in effect["response"]
    home.ok("gc", "--delete", "--grace", "0s")
    assert home.bucket.object(effect["response"]["hash"]) == b"x" * 5000
    text = home.ok("log", "-A")
    assert "a step under way, 1 answer recorded" in text
    rows = [json.loads(line) for line in home.ok("log", "-A", "--json").splitlines()]
    assert [row["trace"] for row in rows if "trace" in row] == [1]
    # It goes on from a bundle, too.
    bundle = home.path / "run.pug"
    home.ok("bundle", session, "-o", bundle)
    other = Home(home.path / "other")
    other.ok("unbundle", bundle)
    other.ok("switch", session)
    assert run(other, server).code == DONE
    assert server.paths() == ["/big/5000", "/hang", "/hang"]


def test_the_conversation_of_an_agent(home, server):
    """Turn after turn, with a model that says something else each time."""
    session = home.start({"kind": "model", "url": server.url(), "model": "small"})
    for turn in range(3):
        home.push({"kind": "user", "text": f"turn {turn}"})
        assert home.run("run", "--allow-http", server.place, "--", guest("chat")).code == DONE
    texts = [e["text"] for e in home.bucket.events(session) if e["kind"] == "assistant"]
    assert texts == [f"Answer {n + 1} to 'turn {n}'" for n in range(3)]
    asked = [json.loads(body)["messages"] for _, _, _, body in server.requests]
    assert [len(messages) for messages in asked] == [1, 3, 5]
    server.stop()
    assert replayed(home)["identical"] == 3


def test_an_agent_that_is_killed_pays_once(home, server):
    """Killed with the model's reply in hand, and somebody speaks meanwhile."""
    session = home.start({"kind": "model", "url": server.url(), "model": "small"},
                         {"kind": "user", "text": "one"})
    assert run(home, server, handler="chat").code == DONE
    home.push({"kind": "user", "text": "two"})
    killed_between(home, session, server, "chat")
    assert len(server.requests) == 2
    home.push({"kind": "user", "text": "three"})
    assert run(home, server, handler="chat").code == DONE
    assert [e["text"] for e in home.bucket.events(session)[1:]] == [
        "one", "Answer 1 to 'one'", "two", "Answer 2 to 'two'", "three", "Answer 3 to 'three'",
    ]
    assert len(server.requests) == 3
    home.bucket.check(session)
    server.stop()
    assert replayed(home)["identical"] == len(steps(home, session))


def test_an_instance_that_is_kept_asks_in_each_step(home, server):
    """Pushed to while it waits, a loop makes a second step on the same instance."""
    session = probe(home, server, "get", url=server.url("/hang"))
    process = home.spawn("run", "--allow-http", server.place, "--", guest("http-probe"),
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: server.requests, 30)
    home.push({"later": 1})
    server.hang.set()
    assert process.wait(30) == DONE
    first, second = [step["step"] for step in steps(home, session)]
    assert (first["born"], second["born"]) == (first["snapshot"], first["snapshot"])
    assert [len(step["effects"]) for step in (first, second)] == [1, 1]
    server.stop()
    for flags in [[], ["--cold"]]:
        assert replayed(home, *flags)["identical"] == 2
    home.bucket.check(session)


def test_a_program_asks_too(home, server):
    session = home.start([server.url("/a"), server.url("/hang")])
    killed(home, session, server, when=lambda: len(server.requests) == 2, handler="command-http")
    assert run(home, server, handler="command-http").code == DONE
    assert server.paths() == ["/a", "/hang", "/hang"]
    assert [json.loads(answer["body"])["number"] for answer in saw(home, session)] == [1, 3]
    assert replayed(home)["identical"] == 1


@pytest.mark.parametrize("args", [
    ["--allow-http", "http://x"], ["--allow-http", "*.example.com"], ["--allow-http", "0.0.0.0"],
    ["--allow-http", "a.example", "--secret", "a.example"],
    ["--allow-http", "a.example", "--secret", "b.example=PATH"],
    ["--allow-http", "a.example", "--secret", "a.example=NO_SUCH_VARIABLE"],
    ["--secret", "a.example=PATH"], ["--limit", "http-time=0s"],
])
def test_what_cannot_be_allowed_is_said_so(home, args):
    home.start({"probe": "get"})
    home.fails(INVALID, "run", *args, "--", guest("http-probe"))
