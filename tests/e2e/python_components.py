"""Builds components from Python, each once for as long as nothing changes that it is made of."""

import hashlib
import json
import os
import shutil
from pathlib import Path

from pug import DONE, ROOT, Home

CACHE = ROOT / "target/python-components"
COMPONENTIZE = ROOT / "target/venv-componentize/bin"


def python_home(path):
    """A home that has componentize-py on PATH, and shares what was compiled with the others."""
    home = Home(path, XDG_CACHE_HOME=str(CACHE / "compiled"))
    home.env["PATH"] = f"{COMPONENTIZE}:{home.env['PATH']}"
    return home


def key_of(folder, script, flags):
    """A digest of all that a component is made of, but for the toolchain's version."""
    made_of = hashlib.sha256(json.dumps([script, [str(flag) for flag in flags]]).encode())
    sdk = [ROOT / "guest-sdk/python", ROOT / "wit", ROOT / "host/cli/src/commands/build/python"]
    for root in [Path(folder), *sdk]:
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.suffix not in (".pyc", ".wasm", ".md"):
                made_of.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return made_of.hexdigest()[:16]


def built(home, folder, script, *flags):
    """The component of `script`, a file in `folder` and the only handler there."""
    assert COMPONENTIZE.is_dir(), "componentize-py is missing: run tests/setup.sh componentize"
    name = Path(script).stem
    kept = CACHE / f"{name}-{key_of(folder, script, flags)}" / f"{name}.wasm"
    if not kept.exists():
        output = Path(folder) / f"{name}.wasm"
        result = home.run("build", script, *flags, "--json", cwd=folder, timeout=600)
        assert result.code == DONE, result.err
        assert json.loads(result.out)["size"] == output.stat().st_size
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        shutil.move(output, partial)
        partial.rename(kept)
    return kept
