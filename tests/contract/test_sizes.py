"""Sizes that keep the source readable. An exception is a line here with its reason."""

from __future__ import annotations

import ast
import tomllib

import pytest
from tests.contract.source import ROOT, modules, tree

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 8
MAX_COMPLEXITY = 10

LONG_MODULES: dict[str, str] = {}
"""module -> why it is longer."""
LONG_FUNCTIONS: dict[tuple[str, str], str] = {}
"""(module, function) -> why it is longer."""
WIDE_FUNCTIONS: dict[tuple[str, str], str] = {
    ("ceilings.cell", "cell_ceiling"): "the axes of a cell, each by the name that its column has",
}
"""(module, function) -> why it takes more parameters."""


def _functions(name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        n for n in ast.walk(tree(name)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


@pytest.mark.parametrize("name", list(modules()))
def test_modules_are_short(name: str) -> None:
    n_lines = len(modules()[name].read_text(encoding="utf-8").splitlines())
    assert n_lines <= MAX_MODULE_LINES or name in LONG_MODULES


@pytest.mark.parametrize("name", list(modules()))
def test_functions_are_short(name: str) -> None:
    wrong = {
        f.name: f.end_lineno - f.lineno + 1
        for f in _functions(name)
        if f.end_lineno is not None
        and f.end_lineno - f.lineno + 1 > MAX_FUNCTION_LINES
        and (name, f.name) not in LONG_FUNCTIONS
    }
    assert not wrong


def _is_verb(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether click passes the options in: then the parameters are the verb's options, not a design."""
    return any("command" in ast.unparse(d) for d in function.decorator_list)


@pytest.mark.parametrize("name", list(modules()))
def test_functions_take_few_parameters(name: str) -> None:
    wrong = {}
    for function in _functions(name):
        a = function.args
        n = len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs)
        n -= bool(a.args and a.args[0].arg in ("self", "cls"))
        if (
            n > MAX_PARAMETERS
            and not _is_verb(function)
            and (name, function.name) not in WIDE_FUNCTIONS
        ):
            wrong[function.name] = n
    assert not wrong


@pytest.mark.parametrize("name", list(modules()))
def test_modules_say_what_they_know(name: str) -> None:
    if not modules()[name].read_text(encoding="utf-8").strip():
        return
    assert ast.get_docstring(tree(name)), "no module docstring"


def test_complexity_is_held_by_ruff() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"][
        "lint"
    ]
    assert config["mccabe"]["max-complexity"] == MAX_COMPLEXITY
    assert "C90" in config["select"]
    assert "C901" not in config["ignore"]


def test_no_name_says_nothing() -> None:
    empty_words = {"utils", "helpers", "common", "core", "manager", "misc"}
    wrong = [name for name in modules() if empty_words & set(name.replace("_", ".").split("."))]
    assert not wrong


def test_exceptions_are_still_needed() -> None:
    assert set(LONG_MODULES) <= set(modules())
    known = {(name, f.name) for name in modules() for f in _functions(name)}
    assert set(LONG_FUNCTIONS) | set(WIDE_FUNCTIONS) <= known
