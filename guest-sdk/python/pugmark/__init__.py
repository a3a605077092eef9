"""The SDK for handlers, as it is inside a component.

It has the names, signatures and behaviour of the package `pugmark` on PyPI, so that a script for
that one runs here unchanged. A handler reads the session's log and decides what comes next:

    import pugmark

    log = list(pugmark.read())
    match log[-1].decode_json() if log else None:
        case {"kind": "question", "text": text}:
            pugmark.write({"kind": "answer", "text": text[::-1]})
        case _:
            pugmark.pause("nothing to answer")

The functions below work on one session, the step's own. Importing this module sends `print` to
standard error, because standard output carries the handler's outputs.
"""

import builtins
import sys
from contextlib import contextmanager
from typing import IO, Any, Dict, Iterator, Optional, Union

from ._events import Event, ForkEvent, PushEvent, StartEvent, WakeEvent
from ._objects import Input, LocalObject, Object, Output, RemoteObject
from ._session import Session
from ._state import State
from ._streams import Reader, Writer

__version__ = "0.1.0"

_print = builtins.print


def print(*args: Any, **kwargs: Any) -> Any:
    """Python's `print`, to standard error unless a file is given."""
    kwargs.setdefault("file", sys.stderr)
    return _print(*args, **kwargs)


builtins.print = print

_default_session = Session()
stdin = _default_session.reader
stdout = _default_session.writer


def default_session() -> Session:
    """The session that the functions of this module work on."""
    return _default_session


def events() -> Iterator[Event]:
    """Yields an event for each object of the log of a kind that has one."""
    return _default_session.events()


def read() -> Iterator[Object]:
    """Yields the log's objects in order."""
    return _default_session.read()


def write(
    value: Any,
    *,
    name: str = "",
    content_type: Optional[str] = None,
    content_encoding: str = "",
    schema_url: str = "",
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Appends an object as it is, or a plain value as text, bytes or JSON."""
    _default_session.write(
        value,
        name=name,
        content_type=content_type,
        content_encoding=content_encoding,
        schema_url=schema_url,
        metadata=metadata,
    )


def write_text(
    text: str,
    *,
    name: str = "",
    content_type: str = "text/plain",
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Appends text."""
    _default_session.write_text(text, name=name, content_type=content_type, metadata=metadata)


def write_json(
    data: Any,
    *,
    name: str = "",
    content_type: str = "application/json",
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Appends a value as JSON."""
    _default_session.write_json(data, name=name, content_type=content_type, metadata=metadata)


def write_bytes(
    data: Union[bytes, bytearray],
    *,
    name: str = "",
    content_type: str = "application/octet-stream",
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Appends bytes."""
    _default_session.write_bytes(data, name=name, content_type=content_type, metadata=metadata)


def write_remote(
    uri: str,
    *,
    name: str = "",
    content_type: str = "",
    content_encoding: str = "",
    schema_url: str = "",
    metadata: Optional[Dict[str, str]] = None,
    session: str = "",
) -> None:
    """Appends a body that the host fetches. In the sandbox the host refuses that: the step fails."""
    _default_session.write_remote(
        uri,
        name=name,
        content_type=content_type,
        content_encoding=content_encoding,
        schema_url=schema_url,
        metadata=metadata,
        session=session,
    )


def state() -> State:
    """All objects of the log, by name and in order."""
    return _default_session.state()


def load(name: str) -> Optional[Object]:
    """The last object of a name; None if there is none."""
    return _default_session.load(name)


def load_text(name: str) -> Optional[str]:
    """The last object of a name as text; None if there is none."""
    return _default_session.load_text(name)


def load_json(name: str) -> Any:
    """The last object of a name as a value of JSON; None if there is none."""
    return _default_session.load_json(name)


def load_bytes(name: str) -> Optional[bytes]:
    """The last object of a name as bytes; None if there is none."""
    return _default_session.load_bytes(name)


def store(object: Object) -> None:
    """Appends an object."""
    _default_session.store(object)


@contextmanager
def open(
    name: str,
    content_type: Optional[str] = None,
    content_encoding: Optional[str] = None,
    schema_url: Optional[str] = None,
    metadata: Optional[Dict[str, str]] = None,
) -> Iterator[IO[bytes]]:
    """Yields a file with the last body of a name; what it was changed to is appended."""
    with _default_session.open(name, content_type, content_encoding, schema_url, metadata) as file:
        yield file


def pause(reason: str = "") -> None:
    """Has the session rest, after this step, until something is pushed."""
    _default_session.pause(reason)


def sleep(seconds: float, reason: str = "") -> None:
    """Has the session rest, after this step, for some time or until something is pushed."""
    _default_session.sleep(seconds, reason)


def session_id() -> Optional[str]:
    """The session's id."""
    return _default_session.session_id()


def agent() -> Optional[str]:
    """The handler's name."""
    return _default_session.agent()


def metadata() -> Dict[str, str]:
    """The metadata of the session's manifest."""
    return _default_session.metadata()


@contextmanager
def traced_execution() -> Iterator[None]:
    """Does nothing here: no trace reaches into the sandbox."""
    with _default_session.traced_execution():
        yield
