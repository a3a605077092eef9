"""Handlers at an address: each step is an HTTP call to whoever serves there."""

import base64
import contextlib
import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pug import FAILED, INVALID, LIMIT, UNUSABLE, wait_for
from rpc_handlers import PRELUDE

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@contextlib.contextmanager
def serving(answer):
    """Serves steps with `answer(request)`, which returns a status and a body."""
    calls = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            assert "Transfer-Encoding" not in self.headers
            body = self.rfile.read(int(self.headers["Content-Length"]))
            calls.append((self.path, dict(self.headers.items()), body))
            status, text = answer(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", calls
    finally:
        server.shutdown()
        server.server_close()


def output(text, **fields):
    return json.dumps({"data": base64.b64encode(text.encode()).decode(), **fields}) + "\n"


PAUSE = output("enough", **{"content-type": "application/vnd.pugmark.pause+text"})


def test_the_call(home):
    session = home.start({"n": 1}, flags=("--meta", "user=Zoë"))
    with serving(lambda body: (200, output('{"said":1}') + PAUSE)) as (url, calls):
        home.ok("run", "--", f"{url}/agents/triage?key=s3cret", env={"TRACEPARENT": PARENT, "TRACESTATE": "a=b"})
    assert home.bucket.events(session) == [{"n": 1}, {"said": 1}]
    [(path, headers, body)] = calls
    assert path == f"/agents/triage?key=s3cret&agent=triage&session={session}&snapshot=1"
    headers = {name.lower(): value for name, value in headers.items()}
    assert json.loads(headers["x-pugmark-session-metadata"]) == {"user": "Zoë"}
    assert headers["x-pugmark-step-key"] == f"{session}:0"
    assert headers["tracestate"] == "a=b"
    trace, span = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", headers["traceparent"]).groups()
    assert trace == PARENT.split("-")[1] and span != PARENT.split("-")[2]
    [line] = body.splitlines()
    entry = json.loads(line)
    assert json.loads(base64.b64decode(entry["data"])) == {"n": 1}
    step = home.bucket.tip(session)["step"]
    assert (step["kind"], step["handler"]) == ("http", "triage")
    assert b"s3cret" not in b"".join(home.bucket.raw(session))


def test_a_loop_and_its_step_keys(home):
    session = home.start({"n": 1})
    answers = iter([output('{"n":2}'), output('{"n":3}'), PAUSE])
    with serving(lambda body: (200, next(answers))) as (url, calls):
        home.ok("run", "--", url)
    keys = [headers["x-pugmark-step-key"] for _, headers, _ in calls]
    assert keys == [f"{session}:0", f"{session}:2", f"{session}:3"]
    spans = {headers["traceparent"].split("-")[1] for _, headers, _ in calls}
    assert len(spans) == 1
    assert len({headers["traceparent"] for _, headers, _ in calls}) == 3


def test_a_long_log_has_a_length(home):
    session = home.start()
    for part in range(4):
        names = []
        for number in range(600):
            name = f"e{part}-{number}"
            (home.path / name).write_text("x" * 900)
            names.append(name)
        home.ok("push", *names)
    with serving(lambda body: (200, output(str(len(body.splitlines()))) + PAUSE)) as (url, _):
        home.ok("run", "--", url)
    assert home.bucket.bodies(session)[-2] == b"2400"


@pytest.mark.parametrize(
    "status, text, expected",
    [
        (500, "no model\x1b[31m", r"status 500: no model\\+u\{1b\}"),
        (404, "", r"status 404"),
        (204, "", r"status 204"),
        (302, "", r"status 302.*\n.*redirections are not followed"),
        (200, "hello", r"line 1 of the handler's output is not JSON"),
    ],
)
def test_other_answers(home, unchanged, status, text, expected):
    home.start("x")
    unchanged()
    with serving(lambda body: (status, text)) as (url, _):
        message = home.fails(FAILED, "run", "--", url)
    assert re.search(expected, message), message


def test_nobody_there(home, unchanged):
    home.start("x")
    unchanged()
    with serving(lambda body: (200, "")) as (url, _):
        pass
    assert "cannot reach the handler" in home.fails(UNUSABLE, "run", "--", url)


def test_no_answer_in_time(home, unchanged):
    home.start("x")
    unchanged()
    waiting = threading.Event()

    def answer(body):
        waiting.wait(20)
        return 200, ""

    with serving(answer) as (url, _):
        message = home.fails(LIMIT, "run", "--timeout", "500ms", "--", url)
        waiting.set()
    assert "had not answered after 500ms" in message


def test_secrets_in_an_address_are_not_shown(home):
    home.start("x")
    with serving(lambda body: (500, "")) as (url, _):
        url = url.replace("http://", "http://user:pa55@") + "/?key=s3cret"
        message = home.fails(FAILED, "run", "--", url)
    assert "pa55" not in message and "s3cret" not in message


def test_arguments_have_no_place(home):
    home.start("x")
    home.fails(INVALID, "run", "--", "http://127.0.0.1:1/", "--verbose")


def test_handlers_by_name(home):
    session = home.start({"n": 1}, flags=("--handler", "far"))
    with serving(lambda body: (200, PAUSE)) as (url, calls):
        home.ok("run", "--handler", "near=false", "--handler", f"far={url}/x")
    assert "agent=far" in calls[0][0]
    assert home.bucket.tip(session)["step"]["handler"] == "far"


def test_the_sdk_at_an_address(home):
    session = home.start({"n": 1})
    large = "x" * 5000
    home.push(large)
    code = """
import wsgiref.simple_server
def handle(session):
    first, second = session.read()
    assert first.decode_json() == {"n": 1}
    session.write({"agent": session.agent(), "snapshot": session.snapshot(), "size": len(second.body())})
    session.pause()
server = wsgiref.simple_server.make_server("127.0.0.1", 0, http.WSGIPugmark(handle))
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
"""
    served = subprocess.Popen(
        ["python", home.script(PRELUDE + code, "served.py")], cwd=home.path, env=home.env
    )
    try:
        wait_for((home.path / "port").exists)
        port = (home.path / "port").read_text()
        home.ok("run", "--", f"http://127.0.0.1:{port}")
    finally:
        served.kill()
        served.wait()
    assert json.loads(home.bucket.bodies(session)[2]) == {
        "agent": "127.0.0.1",
        "snapshot": 2,
        "size": 5000,
    }
