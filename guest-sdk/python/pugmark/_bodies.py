"""Bodies of the log's entries: off their lines, or from the host, and decompressed."""

import gzip
from binascii import a2b_base64
from typing import Any, Callable, Dict, Optional

# Reads a body that its line does not hold, by the line's `url` and `size`. Set where a step begins;
# there is none elsewhere.
fetch: Optional[Callable[[str, int], bytes]] = None


def read(line: Dict[str, Any]) -> bytes:
    """The body of an entry, decompressed. Lines without an address have none."""
    data = line.get("data")
    if data is not None:
        body = a2b_base64(data)
    elif line.get("url"):
        body = _fetch(line["url"], line.get("size", 0))
    else:
        return b""
    encoding = line.get("content-encoding")
    return decompress(body, encoding) if encoding else body


def _fetch(url: str, size: int) -> bytes:
    if fetch is None:
        raise RuntimeError(f"the body at {url} cannot be read outside of a component")
    return fetch(url, size)


def decompress(body: bytes, encoding: str) -> bytes:
    """The body as it was before it was encoded. Encodings that are not known leave it as it is."""
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "zstd":
        from . import _zstd

        return _zstd.decompress(body)
    return body
