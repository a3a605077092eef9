"""The SDK that is put into components, against the one on PyPI: the same names and signatures."""

import io
import json
import os
import random
import subprocess
import sys

import pytest
import zstandard

from pug import ROOT

SDK = ROOT / "guest-sdk/python"

# Prints every public name of the modules with its signature, and those of classes' methods.
SURFACE = """
import importlib, inspect, json

def of(thing):
    if inspect.isclass(thing):
        return {
            name: of(member)
            for name, member in inspect.getmembers(thing, inspect.isfunction)
            if (not name.startswith("_") or name == "__init__")
        }
    parameters = inspect.signature(thing).parameters.values()
    return [[p.name, str(p.kind), repr(p.default)] for p in parameters]

surface = {}
for name in ["pugmark", "pugmark.http", "pugmark.protoipc"]:
    module = importlib.import_module(name)
    for key, value in vars(module).items():
        own = getattr(value, "__module__", "") or ""
        if own.startswith("pugmark") and not key.startswith("_") and callable(value):
            surface[f"{name}.{key}"] = of(value)
    surface[name] = sorted(k for k in vars(module) if k in ("stdin", "stdout", "__version__"))
print(json.dumps(surface))
"""


def run(script, ours, stdin=b""):
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    if ours:
        env["PYTHONPATH"] = str(SDK)
    done = subprocess.run(
        [sys.executable, "-c", script], input=stdin, capture_output=True, env=env, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_every_public_name_has_the_same_signature():
    # The SDK's own `print` was there before: what a script prints of itself goes to its stdout.
    script = SURFACE.replace("print(", "import sys; sys.stdout.write(")
    theirs = json.loads(run(script, ours=False))
    ours = json.loads(run(script, ours=True))
    assert len(theirs) > 40
    # Where theirs has a class from another package in its module, ours need not.
    assert {name: ours.get(name) for name in theirs} == theirs


READ = """
import sys, json, io, pugmark
seen = []
for obj in pugmark.read():
    seen.append([obj.name(), obj.event(), obj.content_type(), obj.schema_url(), obj.metadata(), str(obj), obj.fork()])
state = pugmark.state()
seen.append([len(state), sorted(k for k in ["a", "b", 'q"x', "é"] if k in state)])
pugmark.write({"a": [1, 2.5, "é"]}, name="n", metadata={"k": "v"})
pugmark.write("text", content_type="text/markdown", schema_url="s")
pugmark.write(bytearray(b"x"))
pugmark.write(None)
pugmark.write_remote("s3://b/o", name="r", session="x")
pugmark.pause("why")
pugmark.sleep(1.5)
for value in [object(), {1, 2}]:
    try:
        pugmark.write(value)
    except TypeError as error:
        seen.append("TypeError")
print(len(seen))
sys.stderr.write(json.dumps(seen))
sys.stdout.write(json.dumps(seen))
"""


def test_lines_are_read_and_written_alike():
    hash = "sha256:" + "0" * 64
    lines = [
        '{"event":"push","position":0,"url":"http://x/%s","size":1,"hash":"%s","name":"a","data":"eA=="}' % (hash, hash),
        '{"event":"push","position":1,"url":"http://x/%s","size":1,"hash":"%s","metadata":{"name":"b","data":"eA=="}}' % (hash, hash),
        '{"event":"push","position":2,"url":"http://x/%s","size":1,"hash":"%s","name":"q\\"x","content-type":"text/plain","schema-url":"u","metadata":{"data":"no"},"data":"eA=="}' % (hash, hash),
        "",
        '{"event":"wake","position":3,"url":"http://x/1","size":2,"name":"é","data":"e30="}',
        '{"event":"push","url":"","size":0}',
        '{"event":"memory","url":"http://x/memory/"}',
    ]
    stdin = "\n".join(lines).encode() + b"\n"
    assert run(READ, ours=True, stdin=stdin) == run(READ, ours=False, stdin=stdin)


@pytest.fixture(scope="module")
def zstd():
    """The decompressor, without the package that it is part of."""
    sys.path.insert(0, str(SDK))
    before, kept = {n: m for n, m in sys.modules.items() if n.startswith("pugmark")}, print
    try:
        import builtins

        for name in before:
            del sys.modules[name]
        from pugmark import _zstd

        builtins.print = kept
        yield _zstd
    finally:
        sys.path.remove(str(SDK))
        for name in [n for n in sys.modules if n.startswith("pugmark")]:
            del sys.modules[name]
        sys.modules.update(before)


def bodies(seed):
    source = random.Random(seed)
    words = [source.randbytes(source.randrange(1, 9)) for _ in range(300)]
    for size in (0, 1, 5, 1000, 5000, 60_000):
        yield source.randbytes(size)
        yield b"a" * size
        yield b"".join(source.choice(words) for _ in range(size // 4))
        yield bytes(int(source.gauss(100, 8)) & 255 for _ in range(size))
        yield bytes(min(255, int(source.expovariate(0.3))) for _ in range(size))
        yield json.dumps([{"kind": "input", "i": i} for i in range(size // 20)]).encode()


def test_zstd_is_decompressed(zstd):
    for body in bodies(1):
        for level, checksum in ((1, False), (3, True), (19, False)):
            made = zstandard.ZstdCompressor(level=level, write_checksum=checksum)
            packed = made.compress(body)
            assert zstd.decompress(packed) == body
            stream = io.BytesIO()
            with made.stream_writer(stream, closefd=False) as writer:
                writer.write(body)
            skipped = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
            assert zstd.decompress(stream.getvalue() + skipped + packed) == body * 2


def test_damaged_zstd_is_an_error_and_nothing_else(zstd):
    source = random.Random(2)
    packed = zstandard.compress(json.dumps([{"i": i * i} for i in range(400)]).encode())
    for cut in range(1, len(packed)):
        with pytest.raises(ValueError):
            zstd.decompress(packed[:cut])
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
        try:
            zstd.decompress(bytes(damaged))
        except ValueError:
            pass
