"""A step's part of a component's life: the script runs, from its first line to its last."""

import atexit
import io
import os
import sys
import time
from json import dumps

from pugmark import _bodies

# The input is taken in pieces of this size, in bytes.
READ_BYTES = 256 * 1024

# A large object is read in pieces of this size, in bytes.
OBJECT_BYTES = 1024 * 1024


def prepare_streams() -> None:
    """Makes the standard streams as scripts expect them. Done once, at build."""
    raw = io.FileIO(0, "r", closefd=False)
    sys.stdin = io.TextIOWrapper(
        io.BufferedReader(raw, READ_BYTES), encoding="utf-8", errors="strict"
    )
    sys.stdin._CHUNK_SIZE = READ_BYTES
    sys.__stdin__ = sys.stdin


def run(program) -> int:
    """Runs a script as `__main__`, and returns its exit code."""
    sys.modules["__main__"] = program.module
    try:
        exec(program.code, program.module.__dict__)
        code = 0
    except SystemExit as end:
        code = _code_of(end)
    except BaseException as error:
        _show(error)
        code = 1
    return _end(code)


def begin(script: str, info, read_object) -> None:
    """Tells Python and the SDK what step this is. componentize-py has seeded `random` before."""
    # A process has these from its environment, and its script's path as first argument.
    sys.argv[:1] = [script]
    metadata = dict(info.metadata)
    os.environ.update(
        PUGMARK_SESSION_ID=info.id,
        PUGMARK_AGENT_ID=info.agent,
        PUGMARK_SESSION_METADATA=dumps(metadata),
        PUGMARK_SNAPSHOT=str(info.snapshot),
    )
    pugmark = sys.modules["pugmark"]
    session = pugmark.default_session()
    session._session_id, session._agent, session._metadata = info.id, info.agent, metadata
    _bodies.fetch = _fetcher(read_object)
    logging = sys.modules.get("logging")
    if logging is not None:
        logging._startTime = time.time_ns()


def _fetcher(read_object):
    def fetch(url: str, size: int) -> bytes:
        digest = url.removeprefix("pugmark:")
        if digest == url:
            raise OSError(f"{url} cannot be read in the sandbox: there is no network")
        pieces = [
            read_object(digest, offset, min(OBJECT_BYTES, size - offset))
            for offset in range(0, size, OBJECT_BYTES)
        ]
        return b"".join(pieces)

    return fetch


def _code_of(end: SystemExit) -> int:
    """The exit code that Python gives for `sys.exit(…)`."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    sys.stderr.write(f"{end.code}\n")
    return 1


def _show(error: BaseException) -> None:
    """Prints a traceback that begins in the script."""
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _end(code: int) -> int:
    """What Python does when a program ends."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:
        _show(error)
        return code or 1
    return code
