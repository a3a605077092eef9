"""Components from Python with packages of a virtual environment: protobuf in pure Python, and clients of
HTTP, which ask through the host."""

import http.server
import json
import sys
import threading

import pytest

from pug import DONE, PAUSE, ROOT
from python_components import built, python_home

pytestmark = pytest.mark.timeout(900)

SCRIPT = '''
import http.client, json, sys, urllib.error, urllib.request
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, struct_pb2
import iniconfig
import pugmark
import requests
from pugmark import protoipc

def person():
    file = descriptor_pb2.FileDescriptorProto(name="people.proto", package="people", syntax="proto3")
    message = file.message_type.add(name="Person")
    message.field.add(name="name", number=1, type=9, label=1)
    message.field.add(name="more", number=2, type=11, label=1, type_name=".google.protobuf.Struct")
    file.dependency.append("google/protobuf/struct.proto")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("people.Person"))

def messages():
    session = protoipc.Session(pugmark.default_session())
    Person = person()
    more = struct_pb2.Struct()
    # One key: the order of more is chance with protobuf in C.
    more.update({"tags": ["a", 36]})
    for name in ("Ada", "Grace"):
        session.push_message(Person(name=name, more=more), metadata={"n": name})
    packed = any_pb2.Any()
    packed.Pack(more)
    protoipc.push_message(packed)
    found = [m.DESCRIPTOR.full_name for m in session.scan_messages()]
    pugmark.write({"any": found.count("google.protobuf.Any")})

def said(function):
    try:
        return function()
    except (OSError, requests.RequestException) as error:
        return f"{type(error).__name__}: {error}"

def fetched(url):
    with urllib.request.urlopen(url) as answer:
        return [answer.status, answer.headers["x-number"], json.load(answer)]

def posted(url):
    data = json.dumps({"text": "é"}).encode()
    asked = urllib.request.Request(url, data, {"content-type": "application/json", "x-a": "b"})
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)

def streamed(url):
    client = http.client.HTTPConnection(url.split("/")[2])
    client.request("PUT", "/put", body=iter([b"ab", b"cd"]))
    first = json.load(client.getresponse())
    client.request("HEAD", "/head")
    return [first, client.getresponse().read().decode()]

def missing(url):
    try:
        urllib.request.urlopen(url)
    except urllib.error.HTTPError as error:
        return [error.code, json.load(error)["path"]]

def ask(url):
    list(pugmark.read())
    for answer in (
        said(lambda: fetched(url + "/get?x=1")),
        said(lambda: posted(url + "/post")),
        said(lambda: streamed(url)),
        said(lambda: missing(url + "/missing")),
        said(lambda: requests.post(url + "/requests", json={"b": 2}, params={"q": "ä"}).json()),
        said(lambda: requests.Session().get(url + "/session").status_code),
    ):
        pugmark.write({"answer": answer})

def denied():
    for function in (
        lambda: fetched("https://example.com/"),
        lambda: requests.get("https://example.com/").text,
    ):
        pugmark.write({"answer": said(function)})

if sys.argv[1] == "messages":
    messages()
elif sys.argv[1] == "ask":
    ask(sys.argv[2])
else:
    denied()
pugmark.pause("end")
'''


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    asked = 0

    def do_GET(self):
        type(self).asked += 1
        if self.headers.get("transfer-encoding") == "chunked":
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(pieces)
        else:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
        fields = {k.lower(): v for k, v in self.headers.items()}
        said = {"method": self.command, "path": self.path, "body": body.decode(), "a": fields.get("x-a")}
        data = json.dumps(said).encode()
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("content-length", str(len(data)))
        self.send_header("x-number", "7")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_POST = do_PUT = do_HEAD = do_GET

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    Echo.asked = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def author(tmp_path):
    return python_home(tmp_path / "author")


@pytest.fixture
def component(author):
    folder = author.path / "agent"
    folder.mkdir()
    (folder / "packages.py").write_text(SCRIPT)
    return built(author, folder, "packages.py", "--venv", ROOT / "target/venv")


def run(home, *argv, flags=()):
    session = home.start({})
    result = home.run("run", "--once", *flags, "--", *argv)
    assert result.code == DONE, result.err
    return home.bucket.log(session)[1:], home.bucket.bodies(session)[1:]


def test_protobuf_messages_are_the_same(author, component):
    script = author.path / "agent/packages.py"
    as_process = run(author, sys.executable, script, "messages")
    as_component = run(author, component, "messages")
    assert as_process == as_component
    entries, _ = as_component
    assert [entry.get("name") for entry in entries].count("people.proto") == 1
    assert sum("messageType=people.Person" in e.get("content-type", "") for e in entries) == 2


def test_ordinary_clients_ask_through_the_host(author, component, server):
    script = author.path / "agent/packages.py"
    url = f"http://{server}"
    _, as_process = run(author, sys.executable, script, "ask", url)
    asked, Echo.asked = Echo.asked, 0
    _, as_component = run(author, component, "ask", url, flags=["--allow-http", server])
    assert as_component == as_process
    assert asked == Echo.asked == 7
    [fetched, posted, streamed, missing, by_requests, status] = [
        json.loads(body)["answer"] for body in as_component[:-1]
    ]
    assert fetched[:2] == [200, "7"] and fetched[2]["path"] == "/get?x=1"
    assert (posted["body"], posted["a"]) == ('{"text": "\\u00e9"}', "b")
    assert (streamed[0]["body"], streamed[1]) == ("abcd", "")
    assert missing == [404, "/missing"]
    assert by_requests["path"] == "/requests?q=%C3%A4"
    assert status == 200
    # The record has the answers: nobody is asked again.
    assert "1 step replayed, identical" in author.ok("replay")
    assert Echo.asked == 7


def test_what_is_not_allowed_is_an_exception_that_says_so(author, component):
    entries, bodies = run(author, component, "denied")
    assert entries[-1]["content-type"] == PAUSE
    for body in bodies[:-1]:
        assert "`pugmark run --allow-http example.com` allows it" in json.loads(body)["answer"]
