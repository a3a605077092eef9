"""The two sides of the protocol: lines of JSON in, lines of JSON out."""

import json
from binascii import b2a_base64
from typing import Any, Dict, Iterator, Optional, TextIO

from ._objects import Object, RemoteObject

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Reader:
    """Reads objects off a stream of lines."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def read(self) -> Iterator[Object]:
        """Yields an object for each line that is not blank.

        Raises RuntimeError at a line that is no JSON.
        """
        make = RemoteObject._of_line
        for line in self.stream:
            if line.isspace():
                continue
            try:
                made = make(line)
            except json.JSONDecodeError as error:
                raise RuntimeError(f"a line of the input is no JSON: {error}") from error
            yield made


class Writer:
    """Writes objects to a stream, a line each."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self._initialized = False

    def write(self, obj: Object) -> None:
        """Writes an object. Its body goes decompressed, so without an encoding."""
        line: Dict[str, Any] = {"data": b2a_base64(obj.body(), newline=False).decode("ascii")}
        _put(line, name=obj.name(), content_type=obj.content_type())
        _put(line, schema_url=obj.schema_url(), metadata=obj.metadata())
        if obj.fork():
            line["fork"] = True
        self._write_line(line)

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
        """Writes the address of a body, for the host to fetch."""
        line: Dict[str, Any] = {"uri": uri}
        _put(line, name=name, content_type=content_type, content_encoding=content_encoding)
        _put(line, schema_url=schema_url, metadata=metadata, session=session)
        self._write_line(line)

    def _write_line(self, line: Dict[str, Any]) -> None:
        self.stream.write(_encode(line) + "\n")
        self.stream.flush()


def _put(line: Dict[str, Any], **fields: Any) -> None:
    """Adds the fields that are not empty, spelled as the protocol spells them."""
    for name, value in fields.items():
        if value:
            line[name.replace("_", "-")] = value
