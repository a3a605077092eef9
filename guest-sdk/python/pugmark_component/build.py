"""The build's part of a component's life: holds the modules, imports what the script will import.

What is said about the build goes to a file, as JSON: notes, or the error it ended with.
"""

import ast
import importlib
import json
import linecache
import sys
import traceback
import types
from typing import Dict, List, Optional

from pugmark import _stage

from . import bundle as bundles
from .bundle import Bundle, NativeModule, Root
from .imports import Import, imports_of

# What Python imports only when it comes to it, and what most scripts come to.
_LATE = (
    "_strptime",
    "traceback",
    "linecache",
    "encodings.ascii",
    "encodings.latin_1",
    "encodings.utf_8_sig",
    "encodings.idna",
    "json",
    "random",
)


class Refused(Exception):
    """Why no component can be made."""

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.hint = hint


class Program:
    """A script, ready to be run."""

    def __init__(self, path: str, source: bytes):
        self.path = path
        try:
            # The file's own features count, and not those of this module.
            self.tree = ast.parse(source, path)
            self.code = compile(source, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise Refused(f"{path}, line {error.lineno}: {error.msg}") from error
        lines = importlib.util.decode_source(source).splitlines(keepends=True)
        # Without a time of change, it is never looked for on disk.
        linecache.cache[path] = (len(source), None, lines, path)
        self.module = types.ModuleType("__main__")
        self.module.__file__ = path
        self.module.__builtins__ = sys.modules["builtins"]
        del self.module.__doc__


class Build:
    """One build, and what is said about it."""

    def __init__(self, config: Dict):
        self.config = config
        self.notes: List[str] = []
        self.bundle = Bundle([Root(**root) for root in config["roots"]])

    def run(self) -> Program:
        """Makes all ready for `step.run`."""
        with open(self.config["source"], "rb") as file:
            source = file.read()
        program = Program(self.config["script"], source)
        bundles.install(self.bundle)
        if self.config["http"]:
            outgoing = importlib.import_module("pugmark_component.outgoing")
            outgoing.install(importlib.import_module("socket"))
        _stage.building = True
        for name in _LATE:
            importlib.import_module(name)
        for wanted in imports_of(program.tree):
            self._import(wanted, program.path)
        for name in list(self.bundle.modules):
            self._import_later_ones(name)
        self.bundle.seal()
        _stage.building = False
        return program

    def _import(self, wanted: Import, path: str) -> None:
        """Imports what a statement asks for, as far as it can be done now."""
        before = set(sys.modules)
        try:
            module = importlib.import_module(wanted.module)
            if wanted.member and not hasattr(module, wanted.member) and hasattr(module, "__path__"):
                importlib.import_module(f"{wanted.module}.{wanted.member}")
        except NativeModule as error:
            if wanted.needed:
                raise self._native(wanted, path, error) from error
        except ImportError as error:
            if wanted.needed:
                raise self._missing(wanted, path, error) from error
        except _stage.NoSessionYet as reason:
            self._defer(before, wanted, str(reason))
        except Exception as error:
            self._defer(before, wanted, f"{type(error).__name__}: {error}")

    def _import_later_ones(self, name: str) -> None:
        """Imports what functions of a module beside the script import."""
        module = self.bundle.modules[name]
        if not module.local or module.packed is None or name not in sys.modules:
            return
        package = name if module.is_package else name.rpartition(".")[0]
        for wanted in imports_of(ast.parse(module.source()), package):
            wanted.needed = False
            self._import(wanted, module.path)

    def _defer(self, before: set, wanted: Import, reason: str) -> None:
        """Forgets what an import has begun, so that a step begins it anew."""
        for name in set(sys.modules) - before:
            if name in self.bundle.modules:
                del sys.modules[name]
        self.notes.append(
            f"`{wanted.module}` is imported in each step, not once at build: {reason}"
        )

    def _native(self, wanted: Import, path: str, error: NativeModule) -> Refused:
        package = (error.name or wanted.module).partition(".")[0]
        return Refused(
            f"`{package}`, imported in {path}, line {wanted.line}, is no pure Python: {error}",
            "the sandbox runs WebAssembly only; use a package without machine code, or run the "
            "script as a process: `pugmark run -- python …`",
        )

    def _missing(self, wanted: Import, path: str, error: ImportError) -> Refused:
        native = next(iter(self.bundle.natives.values()), None)
        hint = "name its package in a file for --requirements, or give a --venv that has it"
        if (error.name or "").partition(".")[0] in sys.stdlib_module_names:
            hint = "the Python of components does not have it: there are no threads, processes, sockets or devices to use"
        elif native:
            hint += f"; `{native}` beside it is machine code, which the sandbox does not run"
        return Refused(f"{path}, line {wanted.line}: {error}", hint)


def report(config: Dict, error: Optional[BaseException], build: Optional[Build]) -> None:
    """Says how the build went."""
    said = {"notes": build.notes if build else []}
    if isinstance(error, Refused):
        said["error"] = {"reason": str(error), "hint": error.hint}
    elif error is not None:
        text = "".join(traceback.format_exception(error)).strip()
        said["error"] = {"reason": text, "hint": ""}
    with open(config["report"], "w", encoding="utf-8") as file:
        json.dump(said, file)
