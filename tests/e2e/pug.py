"""Runs the real binary in a home of its own, and reads a bucket without it."""

import base64
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("PUGMARK_BIN", ROOT / "target/debug/pugmark")).resolve()
GUESTS = Path(os.environ.get("PUGMARK_GUESTS", ROOT / "target/guests/out")).resolve()
WEBHOOKS = Path(os.environ.get("PUGMARK_WEBHOOKS", ROOT / "target/webhooks")).resolve()

PAUSE = "application/vnd.pugmark.pause+text"

# Exit codes, as `pugmark --help` lists them.
DONE, INVALID, NOT_FOUND, CONFLICT, CORRUPT, UNAVAILABLE = 0, 2, 3, 4, 5, 6
FAILED, LIMIT, UNUSABLE, INTERRUPTED = 10, 11, 12, 130

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def guest(name):
    """A component or core module that tests/build-guests.sh has built."""
    path = GUESTS / f"{name}.wasm"
    assert path.exists(), f"{path} is missing: run tests/build-guests.sh"
    return path


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass
class Result:
    """How a command ended; its streams as text."""

    code: int
    out: str
    err: str


class Home:
    """A user with a home directory, and nothing else in the environment but PATH and TZ."""

    def __init__(self, path, timezone="UTC", **extra):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        venv = Path(sys.executable).parent
        self.env = {"PATH": f"{venv}:{os.environ['PATH']}", "HOME": str(self.path)}
        self.env |= {"TZ": timezone, **extra}
        self.prefix = []

    def run(self, *args, stdin=b"", timeout=120, cwd=None, env=None):
        """Runs `pugmark` to its end."""
        if isinstance(stdin, str):
            stdin = stdin.encode()
        done = subprocess.run(
            [*self.prefix, BIN, *map(str, args)],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            cwd=cwd or self.path,
            env=self.env | (env or {}),
        )
        out, err = (
            stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr)
        )
        return Result(done.returncode, out, err)

    def measured(self, *args, timeout=120):
        """Runs `pugmark` to its end; also tells the peak memory in MiB, of its children, too."""
        streams = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        child = self.spawn(*args, stdout=streams[0], stderr=streams[1])
        watchdog = threading.Timer(timeout, child.kill)
        watchdog.start()
        _, status, used = os.wait4(child.pid, 0)
        watchdog.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        for stream in streams:
            stream.seek(0)
        out, err = (stream.read().decode("utf-8", "surrogateescape") for stream in streams)
        return Result(child.returncode, out, err), used.ru_maxrss // 1024

    def ok(self, *args, **options):
        """Runs `pugmark`, which has to succeed; returns what it printed."""
        result = self.run(*args, **options)
        assert result.code == DONE, f"pugmark {args}: exit {result.code}\n{result.err}"
        return result.out

    def fails(self, code, *args, **options):
        """Runs `pugmark`, which has to fail so, quietly on standard output; returns the message."""
        result = self.run(*args, **options)
        assert result.code == code, (
            f"pugmark {args}: exit {result.code}\n{result.out}\n{result.err}"
        )
        assert result.out == ""
        assert "panicked at host/" not in result.err
        assert re.search(r"^error: ", result.err, re.M), result.err
        return result.err

    def spawn(self, *args, env=None, **options):
        """Starts `pugmark` and returns at once."""
        options = {"stdin": subprocess.DEVNULL, "cwd": self.path, **options}
        return subprocess.Popen(
            [*self.prefix, BIN, *map(str, args)], env=self.env | (env or {}), **options
        )

    def start(self, *events, flags=()):
        """A new session, the current one, with these JSON events; returns its id."""
        session = self.ok("start", *flags).strip()
        for event in events:
            self.push(event)
        return session

    def push(self, event, *flags):
        """Pushes a JSON event (or text, or bytes); returns its hash."""
        body = event if isinstance(event, (str, bytes)) else json.dumps(event)
        return self.ok("push", *flags, stdin=body).strip()

    def script(self, text, name="handler.py"):
        """A file with a handler's source; returns its path."""
        path = self.path / name
        path.write_text(text)
        return path

    @functools.cached_property
    def bucket(self):
        return Bucket(self.path / ".pugmark/buckets/default")


class Bucket:
    """Reads a bucket's files as `docs/storage-layout.md` says they are, checking all digests."""

    def __init__(self, path):
        self.path = Path(path)
        self.nodes = {}

    def folder(self, session):
        [folder] = self.path.glob(f"sessions/year=*/month=*/day=*/hour=*/{session}")
        return folder

    def manifest(self, session):
        return json.loads((self.folder(session) / "manifest.json").read_bytes())

    def raw(self, session):
        """The bytes of all snapshots, oldest first; fails unless the versions are contiguous."""
        # A writer that was killed may leave a file that it was still writing: `….json#1`.
        files = sorted((self.folder(session) / "snapshots").glob("*.json"), reverse=True)
        expected = [f"{2**64 - 1 - version:016x}.json" for version in range(len(files))]
        assert [file.name for file in files] == expected
        return [file.read_bytes() for file in files]

    def snapshots(self, session):
        return [json.loads(line) for line in self.raw(session)]

    def tip(self, session):
        return self.snapshots(session)[-1]

    def root(self, session, version=-1):
        """The log's root digest: over the exact bytes of the snapshot's field `log`."""
        return digest(field(self.raw(session)[version], "log"))

    def object(self, hash):
        data = (self.path / "objects" / hash).read_bytes()
        assert digest(data) == hash
        return data

    def log(self, session, version=-1):
        """All entries, oldest first."""
        return self.entries(self.snapshots(session)[version])

    def entries(self, snapshot):
        """All entries of a snapshot's log, oldest first."""
        vector = snapshot["log"]
        entries = []
        for level in reversed(range(len(vector["levels"]))):
            for node in vector["levels"][level]:
                entries += self.entries_below(node, level)
        entries += vector["tail"]
        assert len(entries) == vector["count"]
        return entries

    def entries_below(self, node, level):
        lines = self.nodes.get(node) or [
            json.loads(line) for line in self.object(node).splitlines()
        ]
        self.nodes[node] = lines
        assert len(lines) == 32
        if level == 0:
            return lines
        return [entry for child in lines for entry in self.entries_below(child, level - 1)]

    def body(self, entry):
        data = base64.b64decode(entry["data"]) if "data" in entry else self.object(entry["hash"])
        assert (digest(data), len(data)) == (entry["hash"], entry["size"])
        return data

    def bodies(self, session, version=-1):
        return [self.body(entry) for entry in self.log(session, version)]

    def events(self, session, version=-1):
        """The JSON bodies of all entries but pauses."""
        entries = self.log(session, version)
        return [json.loads(self.body(e)) for e in entries if e.get("content-type") != PAUSE]

    def check(self, session):
        """Fails unless versions, digests, times and every step's place in the log are right."""
        raws, log = self.raw(session), None
        for version, raw in enumerate(raws):
            snapshot = json.loads(raw)
            assert (snapshot["session"], snapshot["version"]) == (session, version)
            entries, last = self.entries(snapshot), snapshot["last"]
            if version == 0:
                log = entries[: len(entries) - len(snapshot["objects"])]
            else:
                before = json.loads(raws[version - 1])
                assert snapshot["parent"] == digest(raws[version - 1])
                assert snapshot["created"] >= before["created"]
                assert snapshot["nonce"] != before["nonce"]
            step, n = snapshot.get("step"), len(log)
            if step:
                assert last["version"] == version
                n = step["n"]
                assert step["log"] == digest(field(raws[step["snapshot"]], "log"))
                assert (last["n"], last["k"]) == (n, len(snapshot["objects"]))
            log = log[:n] + snapshot["objects"] + log[n:]
            assert entries == log
        return log

    def files(self, below=""):
        """Name and digest of every file."""
        found = {}
        for file in sorted((self.path / below).rglob("*")):
            if file.is_file():
                found[str(file.relative_to(self.path))] = digest(file.read_bytes())
        return found


def alive(pid):
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=10):
    """Waits until `condition()` holds; fails if it does not come to hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def field(raw, name):
    """The exact bytes of a field of a JSON object."""
    text, decoder = raw.decode(), json.JSONDecoder()
    position = 1
    while True:
        key, position = decoder.raw_decode(text, position)
        assert text[position] == ":"
        _, end = decoder.raw_decode(text, position + 1)
        if key == name:
            return text[position + 1 : end].encode()
        assert text[end] == ",", f"no field {name}"
        position = end + 1


def normalised(text):
    """Ids, times and hashes replaced by their order of appearance: `<id 1>`, `<time>`, `<hash 1>`."""
    seen = {}

    def replace(match):
        kind = match.lastgroup
        if kind == "time":
            return "<time>"
        known = seen.setdefault(kind, [])
        if match[0] not in known:
            known.append(match[0])
        return f"<{kind} {known.index(match[0]) + 1}>"

    pattern = f"(?P<id>{UUID})|(?P<time>{TIME})|(?P<hash>sha256:[0-9a-f]{{64}})"
    return re.sub(pattern, replace, text)
