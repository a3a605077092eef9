"""The modules that a component holds, and the finder that serves them.

A component has no files. While it is built, files are there, and the finder reads them; `seal` then
takes in what may still be asked for, packed, and forgets the files. What is imported at build stays
as it is in memory; the rest is compiled when a step asks for it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import zlib
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from .resources import Folder

NATIVE = (".so", ".pyd", ".dylib")

# Data that a package may want to read at run time is held up to this size a file, in bytes.
LARGEST_FILE = 1024 * 1024


class NativeModule(ImportError):
    """A module of machine code, which the sandbox does not run."""

    def __init__(self, name: str, path: str):
        super().__init__(f"{name} is machine code ({path})", name=name, path=path)


# Modules that something of this package is put into when they have been loaded.
_ADAPTED = {
    "asyncio": "pugmark_component.loop",
    "requests.adapters": "pugmark_component.outgoing",
    "urllib3.util.connection": "pugmark_component.outgoing",
}


@dataclass
class Root:
    """A folder that modules are found in, while a component is built."""

    # Where it is.
    folder: str
    # What paths in tracebacks begin with.
    label: str
    # Whether all of it is held, or only the packages that something was imported from.
    whole: bool
    # Whether it is the script's own.
    local: bool

    def shown(self, path: str) -> str:
        """A file of this folder, as tracebacks show it."""
        return self.label + path[len(self.folder) + 1 :]


@dataclass
class Module:
    """A module's source, packed."""

    path: str
    is_package: bool
    packed: Optional[bytes]
    # Whether it stands beside the script.
    local: bool

    def source(self) -> str:
        """Its text; the encoding that it declares counts."""
        raw = zlib.decompress(self.packed) if self.packed is not None else b""
        return importlib.util.decode_source(raw)


class Bundle(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads modules."""

    def __init__(self, roots: List[Root]):
        self.roots = roots
        self.modules: Dict[str, Module] = {}
        self.natives: Dict[str, str] = {}
        self.files: Dict[str, bytes] = {}

    # The finder.

    def find_spec(self, fullname, path=None, target=None):
        """Where a module is, if it is here."""
        module = self.modules.get(fullname) or self._look(fullname)
        if module is None:
            if fullname in self.natives:
                raise NativeModule(fullname, self.natives[fullname])
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname, self, origin=module.path, is_package=module.is_package
        )
        spec.has_location = module.packed is not None
        if module.is_package:
            spec.submodule_search_locations = [os.path.dirname(module.path)]
        return spec

    def _look(self, name: str) -> Optional[Module]:
        """Finds a module among the files, as long as there are some."""
        relative = name.replace(".", "/")
        for root in self.roots:
            whole = f"{root.folder}/{relative}"
            for path, is_package in ((f"{whole}/__init__.py", True), (f"{whole}.py", False)):
                if os.path.isfile(path):
                    return self._hold(name, root, path, is_package)
            native = _native_beside(whole)
            if native:
                self.natives[name] = root.shown(native)
                return None
            if os.path.isdir(whole) and _has_modules(whole):
                module = Module(root.shown(f"{whole}/__init__.py"), True, None, root.local)
                self.modules[name] = module
                return module
        return None

    def _hold(self, name: str, root: Root, path: str, is_package: bool) -> Module:
        with open(path, "rb") as file:
            packed = zlib.compress(file.read(), 9)
        module = Module(root.shown(path), is_package, packed, root.local)
        self.modules[name] = module
        return module

    # The loader.

    def create_module(self, spec):
        """Nothing special."""
        return None

    def exec_module(self, module):
        """Runs a module's code."""
        if self.modules[module.__name__].packed is not None:
            exec(self.get_code(module.__name__), module.__dict__)
        if module.__name__ in _ADAPTED:
            adapt = importlib.import_module(_ADAPTED[module.__name__])
            adapt.install(module)

    def get_code(self, fullname):
        """Compiles a module; errors and tracebacks name its path."""
        module = self._held(fullname)
        return compile(module.source(), module.path, "exec", dont_inherit=True)

    def get_source(self, fullname):
        """A module's text, which tracebacks quote."""
        return self._held(fullname).source()

    def is_package(self, fullname):
        """Whether a module holds others."""
        return self._held(fullname).is_package

    def get_data(self, path):
        """A file that a package came with."""
        if path not in self.files:
            raise FileNotFoundError(f"no file {path} is in this component")
        return zlib.decompress(self.files[path])

    def get_resource_reader(self, fullname):
        """The files of a package, for `importlib.resources`."""
        module = self._held(fullname)
        if not module.is_package:
            return None
        return Folder(self, os.path.dirname(module.path))

    def files_below(self, folder: str) -> Iterator[str]:
        """Paths of the files that are held below a folder."""
        return (path for path in self.files if path.startswith(folder + "/"))

    def _held(self, name: str) -> Module:
        module = self.modules.get(name)
        if module is None:
            raise ImportError(f"no module {name} is in this component", name=name)
        return module

    # The end of the build.

    def seal(self) -> None:
        """Takes in what may still be asked for, and forgets the files."""
        used = {name.partition(".")[0] for name in self.modules}
        for root in self.roots:
            for name, path in _entries(root.folder):
                if root.whole or name.partition(".")[0] in used:
                    self._take_in(root, path)
        self.roots = []

    def _take_in(self, root: Root, path: str) -> None:
        for file in _files(path):
            relative = file[len(root.folder) + 1 :]
            name, is_package = _module_name(relative)
            if name:
                if name not in self.modules and name not in sys.modules:
                    self._hold(name, root, file, is_package)
            elif not relative.endswith(NATIVE) and os.path.getsize(file) <= LARGEST_FILE:
                with open(file, "rb") as data:
                    self.files.setdefault(root.shown(file), zlib.compress(data.read(), 9))


def _module_name(relative: str) -> Tuple[str, bool]:
    """The module that a file of a root is, and whether it is a package; empty for what is none."""
    if not relative.endswith(".py"):
        return "", False
    parts = relative[: -len(".py")].split("/")
    is_package = parts[-1] == "__init__"
    if is_package:
        parts.pop()
    return (".".join(parts), is_package) if all(map(str.isidentifier, parts)) else ("", False)


def _entries(folder: str) -> Iterator[Tuple[str, str]]:
    """Names and paths in a folder, ordered, without what is no module or package."""
    for name in sorted(os.listdir(folder)):
        if name.endswith((".dist-info", ".egg-info", ".pth")) or name in _NEVER:
            continue
        yield name, f"{folder}/{name}"


# Installed beside packages, or part of the standard library, and of no use in a component.
_NEVER = frozenset(
    "__pycache__ pip setuptools pkg_resources _distutils_hack wheel bin site-packages test idlelib tkinter "
    "turtledemo turtle.py ensurepip venv pydoc_data lib2to3 curses ctypes antigravity.py this.py "
    "_pyrepl pty.py tty.py config-3.14-wasm32-wasi _ios_support.py _android_support.py "
    "_aix_support.py _apple_support.py _osx_support.py LICENSE.txt".split()
)


def _files(path: str) -> Iterator[str]:
    """All files at or below a path, ordered."""
    if not os.path.isdir(path):
        yield path
        return
    for name in sorted(os.listdir(path)):
        if name != "__pycache__":
            yield from _files(f"{path}/{name}")


def _native_beside(whole: str) -> Optional[str]:
    """A file of machine code that would be this module."""
    folder, _, name = whole.rpartition("/")
    if not os.path.isdir(folder):
        return None
    found = (
        entry
        for entry in sorted(os.listdir(folder))
        if entry.startswith(name + ".") and entry.endswith(NATIVE)
    )
    first = next(found, None)
    return first and f"{folder}/{first}"


def _has_modules(folder: str) -> bool:
    """Whether a folder without `__init__.py` is a package all the same."""
    return any(_module_name(path[len(folder) + 1 :])[0] for path in _files(folder))


def install(bundle: Bundle) -> None:
    """Has imports ask the bundle, before Python's own finder of files."""
    sys.meta_path.insert(2, bundle)
