"""The walk through the CLI reference (tests/e2e/test_reference.py) on each store."""

import os
import subprocess
import sys

import servers


def test_the_reference(store):
    walk = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", servers.ROOT / "tests/e2e/test_reference.py"],
        env={**os.environ, **store.env, "PUGMARK_TEST_BUCKETS": store.bucket()},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert walk.returncode == 0, walk.stdout[-3000:] + walk.stderr[-3000:]
    assert f"[{store.scheme}:" in walk.stdout, walk.stdout
