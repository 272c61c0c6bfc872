"""A small git repository whose CMake project makes a fake llama-bench, one commit per behaviour."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fakes.builds import write_build

_CMAKE = """cmake_minimum_required(VERSION 3.19)
project(fake LANGUAGES NONE)
set(made "${CMAKE_BINARY_DIR}/bin/llama-bench")
add_custom_command(
  OUTPUT "${made}"
  COMMAND sh "${CMAKE_SOURCE_DIR}/compile.sh"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_BINARY_DIR}/bin"
  COMMAND "${CMAKE_COMMAND}" -E copy "${CMAKE_SOURCE_DIR}/llama-bench" "${made}"
  DEPENDS "${CMAKE_SOURCE_DIR}/llama-bench")
add_custom_target(llama-bench DEPENDS "${made}")
"""
_BROKEN = 'message(FATAL_ERROR "error: this commit does not configure")\n'
WANTED = ("git", "cmake", "ninja")
"""Programs that a commit is compiled with."""


def missing_tools() -> list[str]:
    """Which of them are not on PATH."""
    return [name for name in WANTED if shutil.which(name) is None]


def git(folder: Path, *words: str) -> str:
    """What git prints, with an identity and no settings of the machine."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-11-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-11-01T00:00:00Z",
    }
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    argv = ["git", "-C", str(folder), *who, *words]
    done = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write_checkout(
    folder: Path, behaviours: Sequence[dict[str, Any] | None], *, hang: Path | None = None
) -> list[str]:
    """Commits "change 1", "change 2" … whose builds behave so, None for one that does not compile; their hashes.

    hang: while this file is there, compiling takes for ever, and `<hang>.began` says that it has begun.
    """
    folder.mkdir(parents=True)
    waits = "" if hang is None else f"if test -e '{hang}'; then : >'{hang}.began'; sleep 600; fi\n"
    (folder / "compile.sh").write_text(waits)
    git(folder, "init", "--quiet")
    commits = []
    for number, behaviour in enumerate(behaviours, start=1):
        write_build(folder, number=number, behaviour=behaviour or {})
        (folder / "CMakeLists.txt").write_text(_CMAKE + (_BROKEN if behaviour is None else ""))
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", f"change {number}")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits
