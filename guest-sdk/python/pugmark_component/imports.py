"""The imports that a script's text asks for, wherever they stand in it."""

import ast
from dataclasses import dataclass
from typing import Iterator, List, Union

# Statements whose bodies may never run, or run where a failure is expected.
_CONDITIONAL = (
    ast.If,
    ast.Try,
    ast.TryStar,
    ast.With,
    ast.For,
    ast.While,
    ast.Match,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
)


@dataclass
class Import:
    """One name that is imported."""

    # The module.
    module: str
    # What is taken from it: perhaps a module of its own. Empty if it is the module itself.
    member: str
    # Whether the script cannot go on without it.
    needed: bool
    line: int


def imports_of(tree: ast.Module, package: str = "") -> List[Import]:
    """All imports of a module, in order. `package` is what relative ones start from."""
    return list(_walk(tree, package, True))


def _walk(node: ast.AST, package: str, needed: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, "", needed, child.lineno)
        elif isinstance(child, ast.ImportFrom):
            module = _absolute(child, package)
            if module and module != "__future__":
                for alias in child.names:
                    member = "" if alias.name == "*" else alias.name
                    yield Import(module, member, needed, child.lineno)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for statement in child.orelse:
                yield from _walk(ast.Module([statement], []), package, False)
        else:
            inner = needed and not isinstance(child, _CONDITIONAL)
            yield from _walk(child, package, inner)


def _absolute(statement: ast.ImportFrom, package: str) -> str:
    """The whole name of the module that a statement imports from; empty if it has none."""
    if not statement.level:
        return statement.module or ""
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - statement.level + 1]
    if not kept:
        return ""
    return ".".join(kept + ([statement.module] if statement.module else []))


def _is_type_checking(test: Union[ast.expr, None]) -> bool:
    """Whether a condition holds for type checkers only."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
