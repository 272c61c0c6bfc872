"""llama-server of a build: where it lies, and which flags it knows, asked of the program itself."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from llamasweep.builds.invocation import ask
from llamasweep.builds.probe import TIMEOUT_S, content_hash
from llamasweep.builds.registry import beside
from llamasweep.errors import BuildError, EngineNotFoundError
from llamasweep.sweep.subjects import Build

SERVER = "llama-server"
_FLAG = re.compile(r"(?<![\w<|-])--?[A-Za-z][\w-]*")
_COLUMNS = re.compile(r"(?<=\S)  +(?=[^\s-])")


def server_of(bench: Build) -> Build:
    """The same build, as its llama-server: with that program's path, hash and flags.

    Raises EngineNotFoundError where it was not built, BuildError where it does not answer.
    """
    path = beside(bench, SERVER)
    if path is None:
        number = bench.number if bench.number is not None else "VERSION"
        raise EngineNotFoundError(
            f"{bench.label} has no llama-server beside its llama-bench",
            hint=f"`llamasweep builds install {number} --with llama-server` adds it.",
        )
    return replace(
        bench,
        path=str(path),
        argv_prefix=(str(path),),
        content_hash=content_hash(path),
        options=_flags(path),
        option_help=(),
        default_threads=None,
    )


def _flags(path: Path) -> frozenset[str]:
    """Every spelling that the left column of its help lists."""
    try:
        answer = ask([str(path), "--help"], timeout_s=TIMEOUT_S)
    except OSError as problem:
        raise BuildError(f"{str(path)!r} cannot be started: {problem.strerror}") from problem
    lines = (line for line in answer.stdout.splitlines() if line.startswith("-"))
    flags = frozenset(flag for line in lines for flag in _FLAG.findall(_COLUMNS.split(line)[0]))
    if "--port" not in flags:
        raise BuildError(f"{str(path)!r} is no llama-server: its --help lists no --port")
    return flags
