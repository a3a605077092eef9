"""HTTP servers that stand between the client and a store, or in place of one. All on loopback."""

import contextlib
import http.client
import http.server
import random
import re
import socket
import threading
import time
import urllib.parse
from dataclasses import dataclass

import s3


@dataclass
class Request:
    """A request, read to its end."""

    method: str
    target: str
    headers: dict
    body: bytes

    @property
    def path(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.target).path)

    @property
    def query(self):
        text = urllib.parse.urlsplit(self.target).query
        return dict(urllib.parse.parse_qsl(text, keep_blank_values=True))

    @property
    def creates(self):
        return self.method == "PUT" and self.headers.get("if-none-match") == "*"


class Cut(Exception):
    """The connection is to be cut, after this many bytes of `answer`, if there is one."""

    def __init__(self, answer=None):
        self.answer = answer


class Server(http.server.ThreadingHTTPServer):
    """Answers each request with what `respond(request)` returns: status, headers, body."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, respond):
        self.respond = respond
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """A client that went away is none of our business."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_one_request(self):
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        request = Request(self.command, self.path, headers, body)
        try:
            self.answer(*self.server.respond(request))
        except Cut as cut:
            if cut.answer:
                self.answer(*cut.answer, half=True)
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, status, headers, body, half=False):
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}"]
        dropped = ("content-length", "transfer-encoding", "connection", "keep-alive")
        lines += [f"{name}: {value}" for name, value in headers.items() if name.lower() not in dropped]
        length = headers.get("content-length", len(body)) if self.command == "HEAD" else len(body)
        if status not in (204, 304):
            lines.append(f"content-length: {length}")
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        sent = head + (b"" if self.command == "HEAD" else body)
        self.wfile.write(sent[: len(head) + len(body) // 2] if half else sent)
        self.wfile.flush()

    def log_message(self, *_):
        """Nothing is printed."""


@contextlib.contextmanager
def serving(respond):
    """Serves until the end of the block; gives the server."""
    server = Server(respond)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def forward(endpoint, request, connections=threading.local()):  # noqa: B008
    """Hands a request on as it is, and returns the answer. The host that was signed stays."""
    url = urllib.parse.urlsplit(endpoint)
    kept = connections.__dict__.setdefault("kept", {})
    for attempt in (1, 2):
        connection = kept.get(endpoint)
        if connection is None:
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
            kept[endpoint] = connection
        try:
            connection.request(request.method, request.target, request.body, request.headers)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, headers, response.read()
        except (http.client.HTTPException, OSError):
            connection.close()
            del kept[endpoint]
            if attempt == 2:
                raise


class Recorder:
    """Hands everything on and keeps what was asked."""

    def __init__(self, endpoint):
        self.upstream, self.seen = endpoint, []

    def __call__(self, request):
        self.seen.append(request)
        return forward(self.upstream, request)

    def take(self):
        """What was asked since the last time: methods with the kind of thing that they are about."""
        seen, self.seen = self.seen, []
        return [f"{request.method} {kind(request)}" for request in seen]


def kind(request):
    if "list-type" in request.query:
        return "list"
    for name in ("snapshots", "objects", "refs", "probe", "children", "manifest.json"):
        if f"/{name}" in request.path:
            return name
    return request.path


FAULTS = ("503", "429", "500", "500-after", "409", "cut-before", "cut-after", "cut-within", "slow")


class Faults:
    """Hands on most requests, and does to the others what networks and servers do to them."""

    def __init__(self, endpoint, seed, per_mille, in_a_row=3):
        self.upstream, self.per_mille, self.in_a_row = endpoint, per_mille, in_a_row
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.row, self.count, self.done = 0, 0, dict.fromkeys(FAULTS, 0)

    def draw(self, request):
        with self.lock:
            self.count += 1
            if self.row >= self.in_a_row or self.random.random() * 1000 >= self.per_mille:
                self.row = 0
                return None
            self.row += 1
            fault = self.random.choice(FAULTS)
            if fault == "409" and not request.creates:
                fault = "503"
            self.done[fault] += 1
            return fault

    def __call__(self, request):
        match self.draw(request):
            case None:
                return forward(self.upstream, request)
            case "503":
                return error(503, "SlowDown")
            case "429":
                return error(429, "TooManyRequests")
            case "500":
                return error(500, "InternalError")
            case "500-after":
                forward(self.upstream, request)
                return error(500, "InternalError")
            case "409":
                return error(409, "ConditionalRequestConflict")
            case "cut-before":
                raise Cut
            case "cut-after":
                forward(self.upstream, request)
                raise Cut
            case "cut-within":
                raise Cut(forward(self.upstream, request))
            case "slow":
                time.sleep(self.random.random() / 2)
                return forward(self.upstream, request)


def error(status, code):
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return status, {"content-type": "application/xml"}, body.encode()


class Google:
    """Google's interface on an S3 store: its precondition becomes S3's. Keys are static ones."""

    def __init__(self, endpoint):
        self.upstream = endpoint

    def __call__(self, request):
        headers = {}
        if request.headers.get("x-goog-if-generation-match") == "0":
            headers["if-none-match"] = "*"
        if "range" in request.headers:
            headers["range"] = request.headers["range"]
        url = urllib.parse.urlsplit(self.upstream)
        signed = s3.sign(url, request.method, request.path, request.query, request.body)
        target, more = signed
        again = Request(request.method, target, {**more, **headers}, request.body)
        again.headers["content-length"] = str(len(request.body))
        status, found, body = forward(self.upstream, again)
        found.setdefault("x-goog-generation", "1")
        return status, found, body


class Careless:
    """An S3 store that ignores conditions, as some do."""

    def __init__(self, honours=False):
        self.keys, self.honours, self.lock = {}, honours, threading.Lock()

    def __call__(self, request):
        path = request.path
        with self.lock:
            match request.method:
                case "PUT":
                    if self.honours and request.creates and path in self.keys:
                        return error(412, "PreconditionFailed")
                    self.keys[path] = request.body
                    return 200, {"etag": '"e"'}, b""
                case "DELETE":
                    self.keys.pop(path, None)
                    return 204, {}, b""
                case "POST" if "delete" in request.query:
                    for key in re.findall(r"<Key>(.*?)</Key>", request.body.decode()):
                        self.keys.pop(f"{path.rstrip('/')}/{key}", None)
                    return 200, {}, b"<DeleteResult></DeleteResult>"
                case "GET" if "list-type" in request.query:
                    return 200, {}, self.listing(request)
                case _ if path in self.keys:
                    found = {"etag": '"e"', "last-modified": "Sat, 31 Jan 2026 12:00:00 GMT"}
                    found["content-length"] = str(len(self.keys[path]))
                    return 200, found, self.keys[path]
        return error(404, "NoSuchKey")

    def listing(self, request):
        bucket = request.path.rstrip("/") + "/"
        keys = [key.removeprefix(bucket) for key in sorted(self.keys)]
        keys = [key for key in keys if key.startswith(request.query.get("prefix", ""))]
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-31T12:00:00.000Z</LastModified>"
            f"<Size>1</Size></Contents>"
            for key in keys[: int(request.query.get("max-keys", 1000))]
        )
        return f"<ListBucketResult>{entries}</ListBucketResult>".encode()
