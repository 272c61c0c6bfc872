"""Programs beside a build's llama-bench: where they lie, and which flags each knows, asked of the program itself."""

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
BATCHED_BENCH = "llama-batched-bench"
_TELLING_FLAG = {SERVER: "--port", BATCHED_BENCH: "-npl"}
"""Program -> a flag without which it is another program."""
_FLAG = re.compile(r"(?<![\w<|-])--?[A-Za-z][\w-]*")
_COLUMNS = re.compile(r"(?<=\S)  +(?=[^\s-])")


def program_of(bench: Build, name: str) -> Build:
    """The same build, as its llama-server or llama-batched-bench: with that program's path, hash and flags.

    Raises EngineNotFoundError where it was not built, BuildError where it does not answer.
    """
    path = beside(bench, name)
    if path is None:
        number = bench.number if bench.number is not None else "VERSION"
        raise EngineNotFoundError(
            f"{bench.label} has no {name} beside its llama-bench",
            hint=f"`llamasweep builds install {number} --with {name}` adds it.",
        )
    return replace(
        bench,
        path=str(path),
        argv_prefix=(str(path),),
        content_hash=content_hash(path),
        options=_flags(path, name),
        option_help=(),
        default_threads=None,
    )


def _flags(path: Path, name: str) -> frozenset[str]:
    """Every spelling that the left column of its help lists."""
    try:
        answer = ask([str(path), "--help"], timeout_s=TIMEOUT_S)
    except OSError as problem:
        raise BuildError(f"{str(path)!r} cannot be started: {problem.strerror}") from problem
    lines = (line for line in answer.stdout.splitlines() if line.startswith("-"))
    flags = frozenset(flag for line in lines for flag in _FLAG.findall(_COLUMNS.split(line)[0]))
    telling = _TELLING_FLAG[name]
    if telling not in flags:
        raise BuildError(f"{str(path)!r} is no {name}: its --help lists no {telling}")
    return flags
