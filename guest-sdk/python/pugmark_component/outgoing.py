"""Connections for `http.client` and what is built on it, where there are no sockets.

A connection takes what a client writes, and when a request is whole, has the host make it; what comes
back is laid out as the client would have read it off a socket. Only components that import HTTP have
this; whether a request is allowed is the host's to say.
"""

import io
import socket
import ssl
from typing import List, Optional, Tuple

from componentize_py_types import Err, Ok
from wit_world.imports import http_types, outgoing_handler
from wit_world.imports.streams import StreamError_Closed

Headers = List[Tuple[str, bytes]]

# What concerns the connection alone. The host has one of its own.
OF_THE_CONNECTION = frozenset(
    (
        "connection",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "upgrade",
    )
)

# The most that is written or read at a time, in bytes.
PIECE = 4096
READ = 65536

METHODS = {
    name: getattr(http_types, f"Method_{name.capitalize()}")
    for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH")
}


class Connection:
    """What stands where a client has its socket."""

    def __init__(self, host: str, port: int, timeout):
        self.host = host
        self.port = port
        self.timeout = timeout
        self.is_secure = False
        self.sent = bytearray()
        self.answer: Optional[bytes] = None

    def secure(self) -> "Connection":
        """Has requests be made over TLS."""
        self.is_secure = True
        return self

    # What clients do with sockets.

    def sendall(self, data, flags=0) -> None:
        """Takes a piece of a request; with the last one, the request is made."""
        self.sent += data
        request = parse(self.sent)
        if request is not None:
            self.sent.clear()
            self.answer = self._ask(*request)

    def send(self, data, flags=0) -> int:
        """The same as `sendall`."""
        self.sendall(data)
        return len(data)

    def makefile(self, mode="r", buffering=None, **kwargs):
        """The answer, to be read. Whoever asks for a file to write to writes to the connection."""
        if "w" in mode:
            raise io.UnsupportedOperation("write to the connection itself")
        if self.answer is None:
            raise ConnectionError("the request is not whole yet")
        answer, self.answer = self.answer, None
        return io.BytesIO(answer)

    def settimeout(self, timeout) -> None:
        """Remembered; how long a step may take is the host's to say."""
        self.timeout = timeout

    def gettimeout(self):
        """What was set."""
        return self.timeout

    def setsockopt(self, *args) -> None:
        """Nothing to set."""

    def getpeername(self):
        """Whom the client wanted to talk to."""
        return self.host, self.port

    def getpeercert(self, binary_form=False):
        """The host has checked it."""
        return b"" if binary_form else {}

    def selected_alpn_protocol(self):
        """HTTP/1.1, as far as a client is concerned."""
        return None

    def version(self):
        """The host's to choose."""
        return "TLSv1.3"

    def shutdown(self, how) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""
        self.sent.clear()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    # The request.

    def _ask(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        scheme = "https" if self.is_secure else "http"
        usual = self.port == (443 if self.is_secure else 80)
        name = f"[{self.host}]" if ":" in self.host else self.host
        authority = name if usual else f"{name}:{self.port}"
        try:
            response = exchange(method, scheme, authority, target, headers, body)
            return laid_out(method, *response)
        except Err as error:
            raise failure(error.value, f"{scheme}://{authority}", self.host) from None


def parse(sent: bytearray) -> Optional[Tuple[str, str, Headers, bytes]]:
    """A request, if all of it is there: method, target, fields and body."""
    head, separator, body = bytes(sent).partition(b"\r\n\r\n")
    if not separator:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    if method == "CONNECT":
        raise OSError("a tunnel cannot be made in the sandbox: it has no sockets")
    pairs = [line.partition(":") for line in lines]
    fields = [(name.strip().lower(), value.strip().encode("latin-1")) for name, _, value in pairs]
    given = dict(fields)
    if given.get("transfer-encoding", b"").lower() == b"chunked":
        whole = from_chunks(body)
        if whole is None:
            return None
        body = whole
    elif len(body) < int(given.get("content-length", b"0")):
        return None
    kept = [(name, value) for name, value in fields if name not in OF_THE_CONNECTION]
    return method, target, kept, body


def from_chunks(data: bytes) -> Optional[bytes]:
    """A body that was sent in chunks, if the last one is there."""
    whole = []
    while True:
        line, separator, data = data.partition(b"\r\n")
        if not separator:
            return None
        size = int(line.partition(b";")[0], 16)
        if size == 0:
            return b"".join(whole) if data.endswith(b"\r\n") else None
        if len(data) < size + 2:
            return None
        whole.append(data[:size])
        data = data[size + 2 :]


def exchange(method, scheme, authority, target, headers: Headers, body: bytes):
    """Makes a request, and returns status, fields and body of the answer."""
    fields = http_types.Fields.from_list(headers)
    request = http_types.OutgoingRequest(fields)
    known = METHODS.get(method)
    request.set_method(known() if known else http_types.Method_Other(method))
    is_secure = scheme == "https"
    request.set_scheme(http_types.Scheme_Https() if is_secure else http_types.Scheme_Http())
    request.set_authority(authority)
    request.set_path_with_query(target)
    outgoing = request.body()
    future = outgoing_handler.handle(request, None)
    if body:
        with outgoing.write() as stream:
            for at in range(0, len(body), PIECE):
                stream.blocking_write_and_flush(body[at : at + PIECE])
    http_types.OutgoingBody.finish(outgoing, None)
    with future.subscribe() as ready:
        ready.block()
    answered = future.get()
    if not isinstance(answered, Ok):
        raise Err(None)
    if not isinstance(answered.value, Ok):
        raise answered.value
    response = answered.value.value
    return response.status(), response.headers().entries(), read(response)


def read(response) -> bytes:
    """The whole body of an answer."""
    pieces = []
    with response.consume() as incoming, incoming.stream() as stream:
        while True:
            try:
                pieces.append(stream.blocking_read(READ))
            except Err as error:
                if isinstance(error.value, StreamError_Closed):
                    return b"".join(pieces)
                raise ConnectionError("the answer ended early") from None


def laid_out(method: str, status: int, headers: Headers, body: bytes) -> bytes:
    """An answer as it would come over a connection that is closed behind it."""
    lines = [b"HTTP/1.1 %d " % status]
    own = {"connection", "transfer-encoding"} | (set() if method == "HEAD" else {"content-length"})
    lines += [
        name.encode("latin-1") + b": " + bytes(value)
        for name, value in headers
        if name.lower() not in own
    ]
    if method != "HEAD" and status not in (204, 304):
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*lines, b"connection: close", b"", body])


def failure(code, origin: str, host: str) -> OSError:
    """The exception that a client would see if it had a socket."""
    name = type(code).__name__.rpartition("ErrorCode_")[2].replace("_", "").lower()
    if name == "httprequestdenied":
        return PermissionError(
            f"the request to {origin} was denied: `pugmark run --allow-http {host}` allows it"
        )
    if name in ("dnserror", "dnstimeout"):
        return socket.gaierror(socket.EAI_NONAME, f"{host} has no address")
    if name == "connectionrefused":
        return ConnectionRefusedError(f"nobody listens at {origin}")
    if name == "tlscertificateerror":
        return ssl.SSLCertVerificationError(f"the certificate of {origin} is not trusted")
    if name.startswith("tls"):
        return ssl.SSLError(f"no secure connection to {origin} can be made")
    if name.endswith("timeout"):
        return TimeoutError(f"{origin} does not answer in time")
    if name.startswith("connection"):
        return ConnectionResetError(f"the connection to {origin} ended early")
    return OSError(f"the request to {origin} failed: {name or 'it is not allowed'}")


def connect(address, timeout=None, *args, **kwargs) -> Connection:
    """Stands where `socket.create_connection` stood."""
    return Connection(address[0], int(address[1]), timeout)


def _checked_by_the_host(*args, **kwargs) -> None:
    """Stands where `requests` looks for a file of certificates: the host has its own."""


def install(module) -> None:
    """Has the clients that take their sockets from a module take connections of this kind."""
    if module.__name__ == "requests.adapters":
        module.HTTPAdapter.cert_verify = _checked_by_the_host
    else:
        module.create_connection = connect
