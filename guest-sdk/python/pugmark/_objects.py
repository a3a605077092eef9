"""Objects: the entries that a handler reads and those that it writes.

An entry that was read keeps the line it came as, and looks at it only when asked: most of a long
log is never looked at closely.
"""

import json
from binascii import a2b_base64
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Protocol

from . import _bodies

# A line's fields, and the attributes of an `Input` that hold them.
_FIELDS = {
    "url": "url",
    "size": "size",
    "event": "event",
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "schema-url": "schema_url",
    "name": "name",
    "metadata": "metadata",
}

_scan = json.JSONDecoder().scan_once


def parse_json(text: str) -> Any:
    """What `json.loads` gives for a string, without its detours where the text has no surprises."""
    try:
        value, end = _scan(text, 0)
    except (StopIteration, ValueError):
        return json.loads(text)
    if end == len(text) or not text[end:].strip(" \t\n\r"):
        return value
    return json.loads(text)


def parse_json_bytes(body: bytes) -> Any:
    """What `json.loads` gives for bytes: UTF-8, or what their beginning says."""
    head = body[:4]
    if b"\0" in head or head[:1] in (b"\xef", b"\xfe", b"\xff"):
        return json.loads(body)
    return parse_json(body.decode("utf-8", "surrogatepass"))


@dataclass
class Input:
    """One line of the log, as the host sends it."""

    url: str = ""
    size: int = 0
    event: str = ""
    content_type: str = ""
    content_encoding: str = ""
    schema_url: str = ""
    name: str = ""
    metadata: Optional[Dict[str, str]] = None
    data: Optional[bytes] = None

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = {}


@dataclass
class Output:
    """One line that the handler writes: a body in `data`, or the address of one in `uri`."""

    data: bytes = b""
    uri: str = ""
    name: str = ""
    content_type: str = ""
    content_encoding: str = ""
    schema_url: str = ""
    metadata: Optional[Dict[str, str]] = field(default_factory=dict)
    fork: bool = False
    session: str = ""


class Object(Protocol):
    """What all objects can be asked."""

    def body(self) -> bytes:
        """The body, decompressed."""
        ...

    def content_type(self) -> str:
        """The media type; empty if none was given."""
        ...

    def schema_url(self) -> str:
        """Where the body's schema is; empty if none was given."""
        ...

    def name(self) -> str:
        """The name; empty if none was given."""
        ...

    def event(self) -> str:
        """The kind of event that the object came with."""
        ...

    def metadata(self) -> Dict[str, str]:
        """Names and values that the writer gave."""
        ...

    def fork(self) -> bool:
        """Whether it is the seed of a new child session."""
        ...

    def decode_data(self) -> bytes:
        """The same as `body`."""
        ...

    def decode_text(self) -> str:
        """The body as UTF-8 text."""
        ...

    def decode_json(self) -> Any:
        """The body as JSON."""
        ...


class _Decoding:
    """The decoders, for a class that has a `body`."""

    def decode_data(self) -> bytes:
        """The same as `body`."""
        return self.body()

    def decode_text(self) -> str:
        """The body as UTF-8 text."""
        return self.body().decode("utf-8")

    def decode_json(self) -> Any:
        """The body as JSON."""
        return parse_json_bytes(self.body())


# How the host's lines of entries begin, and how they end if they hold the body.
_BEGINNING = '{"event":"push","position":'
_END = '"}\n'
_DATA = ',"data":"'
_NAME = ',"name":"'
_HASH = '"hash":"'
_BEHIND_HASH = len(_HASH) + len("sha256:") + 64 + len('"')


class RemoteObject(_Decoding):
    """An entry of the log."""

    def __init__(self, input_record: Input):
        self._text = ""
        self._fields: Optional[Dict[str, Any]] = {
            name: getattr(input_record, attribute) for name, attribute in _FIELDS.items()
        }
        self._body: Optional[bytes] = None

    @classmethod
    def _of_line(cls, text: str) -> "RemoteObject":
        """An object of a line of JSON. A line of the host's own is not looked into before it has to
        be; others are checked at once."""
        made = cls.__new__(cls)
        made._text = text
        made._body = None
        untouched = text.startswith(_BEGINNING) and text.endswith(_END) and _HASH in text
        made._fields = None if untouched else parse_json(text)
        return made

    @property
    def _line(self) -> Dict[str, Any]:
        if self._fields is None:
            self._fields = parse_json(self._text)
        return self._fields

    @property
    def _input(self) -> Input:
        line = self._line
        return Input(**{to: line[name] for name, to in _FIELDS.items() if name in line})

    def body(self) -> bytes:
        """The body, decompressed. Read once."""
        if self._body is None:
            self._body = self._inline() or _bodies.read(self._line)
        return self._body

    def _inline(self) -> Optional[bytes]:
        """The body off the line's end, where it is written out and not compressed.

        `data` is the last field. Base64 has no quotes, and a quote within another field's text has
        a backslash before it, so what looks like the last field is it.
        """
        text = self._text
        if self._fields is not None or '"content-encoding"' in text:
            return None
        at = text.rfind(_DATA)
        if at < 0 or text.find('"', at + len(_DATA)) != len(text) - len(_END):
            return None
        return a2b_base64(text[at + len(_DATA) : -len(_END)])

    def content_type(self) -> str:
        """The media type; empty if none was given."""
        return self._line.get("content-type", "")

    def schema_url(self) -> str:
        """Where the body's schema is; empty if none was given."""
        return self._line.get("schema-url", "")

    def name(self) -> str:
        """The name; empty if none was given."""
        if self._fields is None:
            name = self._written_name()
            if name is not None:
                return name
        return self._line.get("name", "")

    def _written_name(self) -> Optional[str]:
        """The name off the line; None if it has to be looked for more closely. It stands behind the
        hash, whose length is known; before them, nothing is free text."""
        text = self._text
        at = text.find(_HASH) + _BEHIND_HASH
        if not text.startswith(_NAME, at):
            return ""
        at += len(_NAME)
        name = text[at : text.find('"', at)]
        return None if "\\" in name else name

    def event(self) -> str:
        """The kind of event: `push`, `wake`, `start` or `fork`."""
        return "push" if self._fields is None else self._fields.get("event", "")

    def metadata(self) -> Dict[str, str]:
        """Names and values that the writer gave."""
        return self._line.get("metadata") or {}

    def fork(self) -> bool:
        """False: what is in the log seeds no child."""
        return False

    def __str__(self) -> str:
        return self.name() or self._line.get("url") or "<remote object>"

    def __repr__(self) -> str:
        return f"RemoteObject(body={self.body()}, content_type={self.content_type()})"


class LocalObject(_Decoding):
    """Something that the handler made."""

    def __init__(self, output_record: Output, event: str = "push"):
        self._output = output_record
        self._event = event
        self._body: Optional[bytes] = None

    def body(self) -> bytes:
        """The body, decompressed if `content_encoding` says that it is compressed."""
        if self._body is None:
            output = self._output
            self._body = _bodies.decompress(output.data, output.content_encoding)
        return self._body

    def content_type(self) -> str:
        """The media type; empty if none was given."""
        return self._output.content_type

    def schema_url(self) -> str:
        """Where the body's schema is; empty if none was given."""
        return self._output.schema_url

    def name(self) -> str:
        """The name; empty if none was given."""
        return self._output.name

    def event(self) -> str:
        """The kind of event; `push` unless said otherwise."""
        return self._event

    def metadata(self) -> Dict[str, str]:
        """Names and values that go with it."""
        return self._output.metadata or {}

    def fork(self) -> bool:
        """Whether it is the seed of a new child session."""
        return self._output.fork

    def __str__(self) -> str:
        return self.name() or "<local object>"


def is_object(value: Any) -> bool:
    """Whether a value can be asked what objects are asked."""
    asked = ("body", "name", "content_type", "metadata")
    return all(callable(getattr(value, name, None)) for name in asked)


def local_object(
    value: Any,
    name: str = "",
    content_type: Optional[str] = None,
    content_encoding: str = "",
    schema_url: str = "",
    metadata: Optional[Dict[str, str]] = None,
) -> LocalObject:
    """An object of a plain value: text, bytes, or else what JSON has."""
    if isinstance(value, str):
        data, natural = value.encode("utf-8"), "text/plain"
    elif isinstance(value, (bytes, bytearray)):
        data, natural = bytes(value), "application/octet-stream"
    elif value is None or isinstance(value, (dict, list, int, float, bool)):
        data, natural = json.dumps(value).encode("utf-8"), "application/json"
    else:
        kind = type(value).__name__
        raise TypeError(f"a {kind} cannot be written: give text, bytes, a value of JSON or an object")
    output = Output(
        data=data,
        name=name,
        content_type=content_type or natural,
        content_encoding=content_encoding,
        schema_url=schema_url,
        metadata=metadata or {},
    )
    return LocalObject(output)
