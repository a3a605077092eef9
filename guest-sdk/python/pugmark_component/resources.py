"""The files that packages came with, for `importlib.resources` and `pkgutil.get_data`.

They are in memory. A file's path is a name that can be shown and compared, and not opened.
"""

import contextlib
import importlib.resources
import io
import pathlib
from importlib.resources.abc import Traversable


class _Node(Traversable):
    """A place in the tree of a bundle's files."""

    def __init__(self, bundle, path: str):
        self._bundle = bundle
        self._path = path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    def is_file(self) -> bool:
        return self._path in self._bundle.files

    def is_dir(self) -> bool:
        return any(True for _ in self._bundle.files_below(self._path))

    def iterdir(self):
        skip = len(self._path) + 1
        names = {path[skip:].partition("/")[0] for path in self._bundle.files_below(self._path)}
        return (_Node(self._bundle, f"{self._path}/{name}") for name in sorted(names))

    def joinpath(self, *descendants):
        parts = [part for path in descendants for part in str(path).split("/") if part]
        return _Node(self._bundle, "/".join([self._path, *parts]))

    __truediv__ = joinpath

    def read_bytes(self) -> bytes:
        return self._bundle.get_data(self._path)

    def read_text(self, encoding=None, errors=None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def open(self, mode="r", *args, **kwargs):
        file = io.BytesIO(self.read_bytes())
        return file if "b" in mode else io.TextIOWrapper(file, *args, **kwargs)

    def __str__(self) -> str:
        return self._path


class Folder:
    """The reader that `importlib.resources` asks a package's loader for."""

    def __init__(self, bundle, path: str):
        self._root = _Node(bundle, path)

    def files(self):
        return self._root


@contextlib.contextmanager
def _as_file(node: _Node):
    yield pathlib.Path(str(node))


importlib.resources.as_file.register(_Node)(_as_file)
