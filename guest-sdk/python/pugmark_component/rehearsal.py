"""The SDK's paths, gone along once at build.

Python adapts code to what it sees when it runs it. Done here, it need not be done, and its memory not
be written to, in each step.
"""

import io
import os
from types import SimpleNamespace

import pugmark

from . import step

# A log with what most logs have; the bodies are in base64.
LINES = (
    '{"event":"push","position":0,"url":"pugmark:sha256:00","size":8,"hash":"sha256:00",'
    '"content-type":"application/json","data":"eyJhIjoxfQo="}\n'
    '{"event":"push","position":1,"url":"pugmark:sha256:00","size":1,"hash":"sha256:00",'
    '"name":"note","content-type":"text/plain","metadata":{"a":"b"},"data":"eA=="}\n'
    '{"event":"wake","position":2,"url":"pugmark:sha256:00","size":2,"hash":"sha256:00",'
    '"content-type":"application/json","data":"e30="}\n'
)

# Python adapts what has run a few times.
TIMES = 16


def rehearse() -> None:
    """Reads and writes in memory; nothing of it is left but what Python has learned."""
    environment = dict(os.environ)
    info = SimpleNamespace(id="", agent="", snapshot=0, metadata=[])
    for _ in range(TIMES):
        step.begin("", info, None)
        session = pugmark.Session(io.StringIO(LINES), io.StringIO())
        for obj in session.read():
            obj.event(), obj.name(), obj.content_type(), obj.metadata()
            obj.decode_json() if obj.content_type() == "application/json" else obj.decode_text()
        for event in pugmark.Session(io.StringIO(LINES), io.StringIO()).events():
            str(event)
        session.load("note")
        session.write({"a": 1}, name="a", metadata={"a": "b"})
        session.write("text", content_type="text/markdown")
        session.write(b"bytes")
        session.pause("later")
        session.sleep(1)
    os.environ.clear()
    os.environ.update(environment)
