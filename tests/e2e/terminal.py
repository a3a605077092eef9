"""Runs the real binary on a terminal of its own."""

import os
import pty
import select
import subprocess
import time

from pug import BIN


def on_terminal(home, *args, env=None, answer=None, timeout=60):
    """Runs `pugmark` with all its streams on a terminal; returns its exit code and what it showed.

    `answer` is typed once something was shown.
    """
    screen, terminal = pty.openpty()
    env = home.env | {"TERM": "xterm", "PAGER": "cat"} | (env or {})
    process = subprocess.Popen(
        [BIN, *map(str, args)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=env,
        cwd=home.path,
        start_new_session=True,
    )
    os.close(terminal)
    shown, deadline = b"", time.monotonic() + timeout
    try:
        while True:
            assert time.monotonic() < deadline, f"still running; it showed {shown!r}"
            ready, _, _ = select.select([screen], [], [], 0.1)
            if not ready:
                continue
            try:
                piece = os.read(screen, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
            if answer is not None:
                os.write(screen, answer)
                answer = None
        code = process.wait(timeout=10)
    finally:
        process.kill()
        process.wait()
        os.close(screen)
    return code, shown.decode().replace("\r\n", "\n")
