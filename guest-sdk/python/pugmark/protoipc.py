"""Protobuf messages as objects of a session.

Needs the package `protobuf`, which a component holds if its requirements name it. A message goes as
`application/protobuf; messageType=NAME` with the schema `type.googleapis.com/NAME`; before the first
of a file, the file's descriptor goes the same way, so that whoever reads the log can decode it.
"""

from typing import Callable, Dict, Iterator, Optional

try:
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        message,
        message_factory,
        symbol_database,
    )
    from google.protobuf.descriptor import FileDescriptor
except ImportError as error:
    raise ImportError(
        "pugmark.protoipc needs the package `protobuf`: name it in the file that "
        "`pugmark build --requirements` is given"
    ) from error

from . import LocalObject, Object, Output, Session as PugmarkSession, State
from . import state as pugmark_state
from . import write as pugmark_write

PROTOBUF_MEDIA_TYPE = "application/protobuf"
_URL_PREFIX = "type.googleapis.com/"
_DESCRIPTOR = "google.protobuf.FileDescriptorProto"
_BUILT_IN = {
    _DESCRIPTOR: descriptor_pb2.FileDescriptorProto,
    "google.protobuf.Any": any_pb2.Any,
}


def _content_type(name: str) -> str:
    return f"{PROTOBUF_MEDIA_TYPE}; messageType={name}" if name else PROTOBUF_MEDIA_TYPE


def _is_message(obj: Object) -> bool:
    media_type = obj.content_type().partition(";")[0].strip().lower()
    return media_type == PROTOBUF_MEDIA_TYPE and bool(obj.schema_url())


def _class_of(name: str, types: symbol_database.SymbolDatabase) -> Optional[type]:
    """The class of a message type; None if nobody has described it."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    try:
        return message_factory.GetMessageClass(types.pool.FindMessageTypeByName(name))
    except KeyError:
        return None


def scan_messages(
    state: Optional[State] = None,
    types: Optional[symbol_database.SymbolDatabase] = None,
) -> Iterator[message.Message]:
    """Yields the messages among the objects of `state`, decoded.

    Descriptors are taken in and not yielded; messages that no descriptor describes are left out.
    Raises RuntimeError at one that cannot be decoded.
    """
    types = types or symbol_database.Default()
    for obj in pugmark_state() if state is None else state:
        if not _is_message(obj):
            continue
        name = obj.schema_url().rpartition("/")[2]
        message_class = _class_of(name, types)
        if message_class is None:
            continue
        decoded = message_class()
        try:
            decoded.ParseFromString(obj.body())
        except Exception as error:
            raise RuntimeError(f"a message of type {name} cannot be decoded: {error}") from error
        if name == _DESCRIPTOR:
            _learn(decoded, types)
        else:
            yield decoded


def _learn(descriptor: descriptor_pb2.FileDescriptorProto, types: symbol_database.SymbolDatabase) -> None:
    """Takes a file in. One that is known already, or contradicts what is known, changes nothing."""
    try:
        types.pool.AddSerializedFile(descriptor.SerializeToString())
    except Exception:
        return


def push_message(
    msg: message.Message,
    state: Optional[State] = None,
    types: Optional[symbol_database.SymbolDatabase] = None,
    registered: Optional[set[str]] = None,
    write: Optional[Callable[[Object], None]] = None,
    *,
    fork: bool = False,
    session: str = "",
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Writes a message, and before it the descriptors that are not in `registered` yet."""
    if state is None:
        # As the SDK does: what is written afterwards stands behind the whole log.
        pugmark_state()
    registered = set() if registered is None else registered
    write = write or pugmark_write
    _push_files(msg.DESCRIPTOR.file, registered, write)
    name = msg.DESCRIPTOR.full_name
    output = Output(
        data=msg.SerializeToString(),
        content_type=_content_type(name),
        schema_url=_URL_PREFIX + name,
        metadata=dict(metadata or {}),
        fork=fork,
        session=session,
    )
    write(LocalObject(output))


def _push_files(file: FileDescriptor, registered: set[str], write: Callable[[Object], None]) -> None:
    """Writes a file's descriptor behind those of the files that it imports, each once. Those of
    protobuf itself are known everywhere."""
    if file.name in registered or file.name.startswith("google/protobuf/"):
        return
    registered.add(file.name)
    for imported in file.dependencies:
        _push_files(imported, registered, write)
    descriptor = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(descriptor)
    output = Output(
        data=descriptor.SerializeToString(),
        name=file.name,
        content_type=_content_type(_DESCRIPTOR),
        schema_url=_URL_PREFIX + _DESCRIPTOR,
        metadata={
            "package": file.package or "",
            "path": file.name or "",
            "syntax": descriptor.syntax or "proto3",
        },
    )
    write(LocalObject(output))


class Session:
    """A session that messages are read from and written to; each descriptor is written once."""

    def __init__(self, pugmark_session: Optional[PugmarkSession] = None):
        self.pugmark_session = pugmark_session or PugmarkSession()
        self._registered = {
            obj.name()
            for obj in self.pugmark_session.state()
            if obj.schema_url() == _URL_PREFIX + _DESCRIPTOR
        }

    def push_message(
        self,
        msg: message.Message,
        types: Optional[symbol_database.SymbolDatabase] = None,
        *,
        fork: bool = False,
        session: str = "",
        metadata: Optional[Dict[str, str]] = None,
    ) -> None:
        """Writes a message."""
        push_message(
            msg,
            state=self.pugmark_session._state,
            types=types,
            registered=self._registered,
            write=self.pugmark_session.write,
            fork=fork,
            session=session,
            metadata=metadata,
        )

    def scan_messages(
        self, types: Optional[symbol_database.SymbolDatabase] = None
    ) -> Iterator[message.Message]:
        """Yields the session's messages, decoded."""
        return scan_messages(self.pugmark_session.state(), types)
