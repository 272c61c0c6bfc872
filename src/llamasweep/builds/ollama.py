"""Ollama's program: where it is, and which version it says it is. Starts no server and asks none."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from llamasweep.builds.invocation import ask
from llamasweep.builds.probe import TIMEOUT_S, content_hash
from llamasweep.cache import cache_root
from llamasweep.errors import BuildError, EngineNotFoundError, quoted
from llamasweep.sweep.subjects import Build

PROGRAM = "ollama.exe" if os.name == "nt" else "ollama"
_VERSION = re.compile(r"version is (\S{1,80})")


def find_ollama(name: str | None = None) -> Path:
    """The program: a path, or a version that `make engines` built; without a name the one on PATH, else the newest built.

    Raises EngineNotFoundError.
    """
    built = cache_root() / "ollama"
    if name is not None:
        for path in (Path(name).expanduser(), built / name / "bin" / PROGRAM):
            if path.is_file():
                return path.absolute()
        raise EngineNotFoundError(
            f"{quoted(name)} is neither a program nor a version of Ollama here"
        )
    on_path = shutil.which(PROGRAM)
    if on_path is not None:
        return Path(on_path).absolute()
    versions = sorted(
        built.glob(f"*/bin/{PROGRAM}"), key=lambda path: _numbers(path.parent.parent.name)
    )
    if not versions:
        raise EngineNotFoundError(
            "no Ollama is on PATH, and no server of it answers",
            hint="Install Ollama, start its server, or name the program with `builds: [/path/of/ollama]`.",
        )
    return versions[-1].absolute()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", version))


def ollama_program(path: Path) -> Build:
    """The program as a build. Raises BuildError where it does not answer like Ollama."""
    version = program_version(path)
    return Build(
        label=f"ollama-{version}",
        path=str(path),
        content_hash=content_hash(path),
        argv_prefix=(str(path),),
        options=frozenset(),
        version=version,
    )


def program_version(path: Path) -> str:
    """As the program calls itself; 0.0.0 where it was built without one. Raises BuildError."""
    try:
        answer = ask([str(path), "--version"], timeout_s=TIMEOUT_S)
    except OSError as problem:
        raise BuildError(f"{str(path)!r} cannot be started: {problem.strerror}") from problem
    found = _VERSION.findall(answer.stdout + "\n" + answer.stderr)
    if not found:
        raise BuildError(f"{str(path)!r} is no Ollama: --version tells none")
    return str(found[-1])  # a server that runs is named first, the program last
