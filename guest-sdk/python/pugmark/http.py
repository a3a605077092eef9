"""Handlers written for RPC mode, as functions of a session.

In the sandbox nobody calls: each step is a run of its own. `serve` therefore calls the handler once,
with the session of the step, and returns. A `WSGIPugmark` that is called by a WSGI server of the
program's own works as it does elsewhere.
"""

import json
from io import StringIO
from typing import Any, Callable, Dict, Iterable, Optional, Protocol
from urllib.parse import parse_qs

from . import Session, _stage, default_session

PUGMARK_RPC_URL_ENV = "PUGMARK_RPC_URL"
SESSION_METADATA_HEADER = "X-Pugmark-Session-Metadata"

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class Handler(Protocol):
    """A function that makes one step of a session."""

    def __call__(self, session: Session): ...


def _respond(start_response: Callable, status: int, text: str) -> Iterable[bytes]:
    body = text.encode("utf-8")
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
    ]
    start_response(f"{status} {_REASONS[status]}", headers)
    return [body]


class WSGIPugmark:
    """A handler as a WSGI application: `GET /` is healthy, `POST /` is a step."""

    def __init__(self, handler: Handler):
        self.handler = handler

    def __call__(self, environ: Dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "/") not in ("", "/"):
            return _respond(start_response, 404, "Not Found")
        method = environ.get("REQUEST_METHOD", "GET")
        if method == "GET":
            return self.handle_health(start_response)
        if method == "POST":
            return self.handle_run(environ, start_response)
        return _respond(start_response, 405, "Method Not Allowed")

    def handle_run(self, environ: Dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        """Makes a step of the request's body, and answers with its outputs."""
        header = environ.get("HTTP_" + SESSION_METADATA_HEADER.upper().replace("-", "_"), "")
        try:
            metadata: Optional[Dict[str, str]] = json.loads(header) if header else None
        except json.JSONDecodeError:
            return _respond(start_response, 400, "the header with the metadata is no JSON")
        query = parse_qs(environ.get("QUERY_STRING", ""))
        agent, session_id, snapshot = (
            query.get(name, [""])[0] for name in ("agent", "session", "snapshot")
        )
        length = environ.get("CONTENT_LENGTH", "")
        body = environ["wsgi.input"].read(*([int(length)] if length else []))
        outputs = StringIO()
        session = Session(
            reader_stream=StringIO(body.decode("utf-8")),
            writer_stream=outputs,
            agent=agent or None,
            session_id=session_id or None,
            snapshot=int(snapshot) if snapshot else None,
            metadata=metadata,
        )
        with session.traced_execution():
            self.handler(session)
        return _respond(start_response, 200, outputs.getvalue())

    def handle_health(self, start_response: Callable) -> Iterable[bytes]:
        """Answers that all is well."""
        return _respond(start_response, 200, "OK")


def serve(app: WSGIPugmark, host: str = "127.0.0.1", port: int = 0) -> None:
    """Has the handler of `app` make this step. Host and port matter only elsewhere."""
    _stage.need_session("http.serve")
    handler = getattr(app, "handler", None)
    if handler is None:
        raise TypeError("in the sandbox only a WSGIPugmark can be served: there is nobody to call others")
    session = default_session()
    with session.traced_execution():
        handler(session)


def serve_from_fd(app: WSGIPugmark, fd: int = 3) -> None:
    """The same as `serve`."""
    serve(app)
