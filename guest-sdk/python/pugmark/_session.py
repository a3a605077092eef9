"""A session: what is read from it, and what is written to it."""

import io
import json
import os
import sys
from contextlib import contextmanager
from typing import IO, Any, Dict, Iterator, Optional, TextIO, Union

from . import _stage
from ._events import Event, event_of
from ._objects import Input, LocalObject, Object, Output, RemoteObject, is_object, local_object
from ._state import State
from ._streams import Reader, Writer

PAUSE = "application/vnd.pugmark.pause+text"

# Values of these very types are no objects, whatever they could be asked.
_PLAIN = frozenset((dict, list, str, bytes, bytearray, int, float, bool, type(None)))


def _metadata_of_environment() -> Dict[str, str]:
    text = os.environ.get("PUGMARK_SESSION_METADATA", "")
    try:
        return json.loads(text) if text else {}
    except json.JSONDecodeError:
        return {}


class Session:
    """Reads a log from one stream and writes outputs to another."""

    def __init__(
        self,
        reader_stream: Optional[TextIO] = None,
        writer_stream: Optional[TextIO] = None,
        agent: Optional[str] = None,
        session_id: Optional[str] = None,
        snapshot: Optional[int] = None,
        metadata: Optional[Dict[str, str]] = None,
    ):
        """Streams are standard input and output unless given; the rest comes from the environment
        (`PUGMARK_AGENT_ID`, `PUGMARK_SESSION_ID`, `PUGMARK_SESSION_METADATA`)."""
        self.reader = Reader(reader_stream or sys.stdin)
        self.writer = Writer(writer_stream or sys.stdout)
        self._state = State()
        environment = os.environ.get
        self._session_id = (
            environment("PUGMARK_SESSION_ID", "") if session_id is None else session_id
        )
        self._agent = environment("PUGMARK_AGENT_ID", "") if agent is None else agent
        self._snapshot = snapshot
        self._metadata = _metadata_of_environment() if metadata is None else metadata

    def events(self) -> Iterator[Event]:
        """Reads on, and yields an event for each object of a kind that has one."""
        for obj in self.read():
            event = event_of(obj)
            if event is not None:
                yield event

    def read(self) -> Iterator[Object]:
        """Yields the log's objects in order, from where reading stopped before."""
        _stage.need_session("read")
        append = self._state.append
        for obj in self.reader.read():
            if obj.event() == "memory":
                self._add_memory(obj._line.get("url", ""))
                continue
            append(obj)
            yield obj

    def _add_memory(self, url: str) -> None:
        if url.endswith("/"):
            self._state.add_memory_namespace(url.split("/")[-2] + "/", url)

    def write(
        self,
        value: Any,
        *,
        name: str = "",
        content_type: Optional[str] = None,
        content_encoding: str = "",
        schema_url: str = "",
        metadata: Optional[Dict[str, str]] = None,
    ) -> None:
        """Writes an object as it is, or a plain value as text, bytes or JSON."""
        _stage.need_session("write")
        if type(value) not in _PLAIN and is_object(value):
            obj = value
        else:
            obj = local_object(value, name, content_type, content_encoding, schema_url, metadata)
        self.writer.write(obj)
        self._state.append(obj)

    def write_text(
        self,
        text: str,
        *,
        name: str = "",
        content_type: str = "text/plain",
        metadata: Optional[Dict[str, str]] = None,
    ) -> None:
        """Writes text."""
        self.write(text, name=name, content_type=content_type, metadata=metadata)

    def write_json(
        self,
        data: Any,
        *,
        name: str = "",
        content_type: str = "application/json",
        metadata: Optional[Dict[str, str]] = None,
    ) -> None:
        """Writes a value as JSON."""
        self.write(data, name=name, content_type=content_type, metadata=metadata)

    def write_bytes(
        self,
        data: Union[bytes, bytearray],
        *,
        name: str = "",
        content_type: str = "application/octet-stream",
        metadata: Optional[Dict[str, str]] = None,
    ) -> None:
        """Writes bytes."""
        self.write(bytes(data), name=name, content_type=content_type, metadata=metadata)

    def write_remote(
        self,
        uri: str,
        *,
        name: str = "",
        content_type: str = "",
        content_encoding: str = "",
        schema_url: str = "",
        metadata: Optional[Dict[str, str]] = None,
        session: str = "",
    ) -> None:
        """Writes the address of a body, for the host to fetch. The sandbox's host refuses that."""
        _stage.need_session("write_remote")
        self.writer.write_remote(
            uri,
            name=name,
            content_type=content_type,
            content_encoding=content_encoding,
            schema_url=schema_url,
            metadata=metadata,
            session=session,
        )

    def state(self) -> State:
        """Reads to the end of the log, and returns all of its objects."""
        for _ in self.read():
            pass
        return self._state

    def load(self, name: str) -> Optional[Object]:
        """The last object of a name; None if there is none."""
        state = self.state()
        url = state.get_memory_url(name)
        if url:
            return RemoteObject(Input(url=url, name=name))
        return state[name] if name in state else None

    def load_text(self, name: str) -> Optional[str]:
        """The last object of a name as text; None if there is none."""
        obj = self.load(name)
        return None if obj is None else obj.decode_text()

    def load_json(self, name: str) -> Any:
        """The last object of a name as a value of JSON; None if there is none."""
        obj = self.load(name)
        return None if obj is None else obj.decode_json()

    def load_bytes(self, name: str) -> Optional[bytes]:
        """The last object of a name as bytes; None if there is none."""
        obj = self.load(name)
        return None if obj is None else obj.decode_data()

    def store(self, obj: Object) -> None:
        """Writes an object."""
        self.write(obj)

    def pause(self, reason: str = "") -> None:
        """Has the session rest, after this step, until something is pushed."""
        self.write(LocalObject(Output(data=reason.encode("utf-8"), content_type=PAUSE)))

    def sleep(self, seconds: float, reason: str = "") -> None:
        """Has the session rest, after this step, for some time or until something is pushed."""
        duration = {"duration": f"{seconds:.2f}s"}
        data = reason.encode("utf-8")
        self.write(LocalObject(Output(data=data, content_type=PAUSE, metadata=duration)))

    def session_id(self) -> Optional[str]:
        """The session's id; None outside of one."""
        _stage.need_session("session_id")
        return self._session_id or None

    def agent(self) -> Optional[str]:
        """The handler's name; None outside of a session."""
        _stage.need_session("agent")
        return self._agent or None

    def snapshot(self) -> Optional[int]:
        """The version that the step began on, where the host says so to a script: in RPC mode."""
        _stage.need_session("snapshot")
        return self._snapshot

    def metadata(self) -> Dict[str, str]:
        """The metadata of the session's manifest."""
        _stage.need_session("metadata")
        return self._metadata

    @contextmanager
    def traced_execution(self) -> Iterator[None]:
        """Does nothing here: no trace reaches into the sandbox."""
        yield

    @contextmanager
    def open(
        self,
        name: str,
        content_type: Optional[str] = None,
        content_encoding: Optional[str] = None,
        schema_url: Optional[str] = None,
        metadata: Optional[Dict[str, str]] = None,
    ) -> Iterator[IO[bytes]]:
        """Yields a file in memory with the last body of a name; if it is another one at the end of
        the block, that is written."""
        obj = self.load(name)
        before = obj.body() if obj else b""
        with io.BytesIO(before) as file:
            yield file
            after = file.getvalue()
        if after != before:
            output = Output(
                data=after,
                name=name or "",
                content_type=content_type or "",
                content_encoding=content_encoding or "",
                schema_url=schema_url or "",
                metadata=metadata or {},
            )
            self.store(LocalObject(output))
