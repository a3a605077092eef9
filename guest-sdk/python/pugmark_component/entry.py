"""What componentize-py makes a component of.

Importing this module is the build. Then memory is kept as it is, and every step starts from there:
with `Run.run`.
"""

import componentize_py_types  # noqa: F401
import gc
import importlib
import json
import os
import pkgutil
import sys
import weakref  # noqa: F401
from importlib.machinery import PathFinder

sys.dont_write_bytecode = True

from pugmark_component import memory, step  # noqa: E402

step.prepare_streams()

from pugmark_component.build import Build, report  # noqa: E402
from pugmark_component.rehearsal import rehearse  # noqa: E402
from wit_world import exports  # noqa: E402
from wit_world import imports  # noqa: E402
from wit_world.imports import objects, session  # noqa: E402


def _build():
    with open("/0/build.json", encoding="utf-8") as file:
        config = json.load(file)
    build = None
    try:
        build = Build(config)
        program = build.run()
    except BaseException as error:
        report(config, error, build)
        raise SystemExit("the build ended; its report says why") from error
    rehearse()
    report(config, None, build)
    return program


def _forget_files():
    """Leaves nothing that would look for a file in a step, where there are none."""
    sys.path[:] = []
    sys.path_importer_cache.clear()
    sys.meta_path.remove(PathFinder)


# componentize-py looks all of these up when this module is through, and then nothing is found.
for _module in pkgutil.iter_modules(imports.__path__):
    importlib.import_module(f"{imports.__name__}.{_module.name}")

_program = _build()
_forget_files()
gc.collect()
gc.freeze()
_fillers = memory.fill_holes()


class Run(exports.Run):
    """The export `wasi:cli/run`."""

    def run(self) -> None:
        """Makes a step."""
        step.begin(_program.path, session.get(), objects.read)
        code = step.run(_program)
        if code:
            # No cleaning up: the instance ends with the step.
            os._exit(code)
