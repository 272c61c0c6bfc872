"""The package's source as syntax trees, for the contract tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "llamasweep"


@cache
def modules() -> dict[str, Path]:
    """Dotted name below llamasweep ("sweep.cell", "" for the package itself) -> file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(name: str) -> ast.Module:
    """Syntax tree of a module."""
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _walk(
    node: ast.AST, *, is_typing: bool, is_lazy: bool
) -> Iterator[tuple[ast.stmt, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, is_typing, is_lazy
        inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from _walk(
            child, is_typing=is_typing or _is_type_checking(child), is_lazy=is_lazy or inside
        )


class Import:
    """One imported module: its full name, the line, and whether it is only for types or inside a function."""

    def __init__(self, name: str, line: int, *, is_typing: bool, is_lazy: bool) -> None:
        self.name, self.line, self.is_typing, self.is_lazy = name, line, is_typing, is_lazy

    @property
    def top(self) -> str:
        return self.name.split(".")[0]

    @property
    def ours(self) -> str | None:
        """Dotted name below llamasweep, None for a foreign module."""
        if self.top != "llamasweep":
            return None
        return self.name.removeprefix("llamasweep").removeprefix(".")


def imports(name: str) -> list[Import]:
    """Everything that a module imports; `from a import b` counts as a.b where that is a module of ours."""
    found: list[Import] = []
    for node, is_typing, is_lazy in _walk(tree(name), is_typing=False, is_lazy=False):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert isinstance(node, ast.ImportFrom)
            assert node.level == 0, f"{name}: line {node.lineno}: relative import"
            base = node.module or ""
            names = [
                f"{base}.{alias.name}"
                if f"{base}.{alias.name}".removeprefix("llamasweep.") in modules()
                else base
                for alias in node.names
            ]
        found += [
            Import(n, node.lineno, is_typing=is_typing, is_lazy=is_lazy)
            for n in dict.fromkeys(names)
        ]
    return found
