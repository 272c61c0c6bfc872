"""Who may know whom, held by walking the syntax trees."""

from __future__ import annotations

import ast
import sys

import pytest
from tests.contract.source import imports, modules, tree

PURE = (
    ("errors", "units"),
    ("gguf", "gguf.facts", "gguf.ggml_types", "gguf.mixture"),
    ("ceilings",),
    ("sweep",),
    ("results",),
    ("stats",),
)
"""Rooms (or modules) that touch nothing outside; each may import its own floor and those before it."""

GROUND = ("cache", "file_lock", "sweep_file")
"""Modules that touch the world and that every edge may know: where things are kept, one owner at a time, a sweep on disk."""

EDGES = ("gguf", "engines", "builds", "machine", "telemetry", "store", "report")
"""Rooms that touch the world. They know the pure rooms and not each other."""

THIRD_PARTY_IN_PURE = {
    "sweep.document": {"yaml"},  # parses text that is handed to it; `sweep_file` opens the file
    "sweep.schema": {"pydantic", "pydantic_core"},
    "stats": {"numpy"},
}

TOUCHES_THE_WORLD = {
    "asyncio", "ctypes", "fcntl", "glob", "http", "io", "locale", "logging", "mmap", "multiprocessing", "os", "platform",
    "resource", "secrets", "select", "shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile",
    "threading", "time", "urllib",
}  # fmt: skip

FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "exit", "quit", "breakpoint"}
CLOCK_METHODS = {"now", "utcnow", "today"}
FILE_METHODS = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "exists",
    "is_file",
    "stat",
    "iterdir",
}

OWN_PROCESS = ("run.launch", "drivers.__main__")
"""Modules that are programs of their own, started by another one: they have a stderr and an exit code."""

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("ceilings.devices", "read_text"): "its own table, which is part of the package",
}
"""(module, what it imports or calls) -> why that is right."""


def _room(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def _floor(name: str) -> int | None:
    """Index of the pure floor of a module, None if it is not pure."""
    for index, entries in enumerate(PURE):
        for entry in entries:
            if name == entry or (entry != "gguf" and name.startswith(entry + ".")):
                return index
    return None


def _pure() -> list[str]:
    return [name for name in modules() if _floor(name) is not None]


def _is_excepted(module: str, what: str) -> bool:
    return (module, what) in EXCEPTIONS


def _allowed_third_party(name: str) -> set[str]:
    return {
        package
        for place, packages in THIRD_PARTY_IN_PURE.items()
        if name == place or name.startswith(place + ".")
        for package in packages
    }


@pytest.mark.parametrize("name", _pure())
def test_pure_rooms_import_nothing_that_touches_the_world(name: str) -> None:
    wrong = [
        f"line {i.line}: {i.name}"
        for i in imports(name)
        if i.ours is None
        and not i.is_typing
        and not _is_excepted(name, i.name)
        and (
            i.top in TOUCHES_THE_WORLD
            or (i.top not in sys.stdlib_module_names and i.top not in _allowed_third_party(name))
        )
    ]
    assert not wrong, f"{name} is pure, but imports {wrong}"


@pytest.mark.parametrize("name", _pure())
def test_pure_rooms_call_no_file_and_no_clock(name: str) -> None:
    wrong = []
    for node in ast.walk(tree(name)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in FORBIDDEN_CALLS:
            what = called.id
        elif isinstance(called, ast.Attribute) and called.attr in CLOCK_METHODS | FILE_METHODS:
            what = called.attr
        else:
            continue
        if not _is_excepted(name, what):
            wrong.append(f"line {node.lineno}: {what}()")
    assert not wrong, f"{name} is pure, but calls {wrong}"


@pytest.mark.parametrize("name", _pure())
def test_pure_rooms_know_only_what_stands_before_them(name: str) -> None:
    own = _floor(name)
    assert own is not None
    wrong = [
        f"line {i.line}: {i.ours}"
        for i in imports(name)
        if i.ours is not None
        and not _is_excepted(name, i.ours)
        and ((floor := _floor(i.ours)) is None or floor > own)
    ]
    assert not wrong, f"{name} (floor {own}) imports {wrong}"


@pytest.mark.parametrize("name", [n for n in modules() if _room(n) in EDGES and _floor(n) is None])
def test_edges_do_not_know_each_other(name: str) -> None:
    wrong = [
        f"line {i.line}: {i.ours}"
        for i in imports(name)
        if i.ours is not None
        and _floor(i.ours) is None
        and _room(i.ours) != _room(name)
        and i.ours not in GROUND
        and not _is_excepted(name, i.ours)
    ]
    assert not wrong, f"{name} imports {wrong}"


def test_run_does_not_know_the_command_line() -> None:
    wrong = [
        f"{name}: {i.ours}"
        for name in modules()
        if _room(name) == "run"
        for i in imports(name)
        if i.ours is not None and _room(i.ours) == "cli"
    ]
    assert not wrong


def test_drivers_are_programs_that_nobody_imports() -> None:
    """They stand above `run`, whose processes they use, and are only ever started."""
    wrong = [
        f"{name}: {i.ours}"
        for name in modules()
        for i in imports(name)
        if i.ours is not None
        and (
            (_room(i.ours) == "drivers" and _room(name) != "drivers")
            or (_room(name) == "drivers" and _room(i.ours) == "cli")
        )
    ]
    assert not wrong


def test_report_never_opens_the_store() -> None:
    reads = {"pyarrow", "pandas", "duckdb"}
    wrong = [
        f"{n}: {i.name}"
        for n in modules()
        if _room(n) == "report"
        for i in imports(n)
        if i.top in reads
    ]
    assert not wrong


def test_every_module_stands_in_a_known_room() -> None:
    rooms = (
        {entry.split(".")[0] for entries in PURE for entry in entries} | set(EDGES) | set(GROUND)
    )
    assert {_room(n) for n in modules()} - rooms == {"", "__main__", "run", "cli", "drivers"}


def test_only_the_command_line_prints_or_exits() -> None:
    wrong = []
    for name in modules():
        if _room(name) in ("cli", "__main__") or name in OWN_PROCESS:
            continue
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "print", "sys.exit", "exit", "os._exit", "click.echo", "sys.stdout.write", "sys.stderr.write",
            ) and not _is_excepted(name, ast.unparse(node.func)):  # fmt: skip
                wrong.append(f"{name}: line {node.lineno}: {ast.unparse(node.func)}")
    assert not wrong


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    known = modules()
    edges = {
        name: {
            i.ours for i in imports(name) if i.ours in known and not i.is_lazy and not i.is_typing
        }
        for name in known
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, "import cycle: " + " -> ".join((*path[path.index(name) :], name))
        if name in done:
            return
        for other in sorted(o for o in edges[name] if o is not None):
            visit(other, (*path, name))
        done.add(name)

    for name in known:
        visit(name, ())
    assert done == set(known)


def test_exceptions_are_still_needed() -> None:
    used = {(n, i.name) for n in modules() for i in imports(n)}
    used |= {(n, i.ours) for n in modules() for i in imports(n) if i.ours is not None}
    for name in modules():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Call):
                used.add((name, ast.unparse(node.func).rsplit(".", 1)[-1]))
                used.add((name, ast.unparse(node.func)))
    assert set(EXCEPTIONS) <= used
