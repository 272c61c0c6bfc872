"""Run the long steps of an installation: output into a log, Ninja's counter to the caller, nothing left running.

It knows argv lists and log files, not llama.cpp.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from llamasweep.builds.invocation import end_group
from llamasweep.errors import BrokenBuildError, BuildError

_STEP = re.compile(rb"^\[(\d+)/(\d+)\]")
_N_TAIL_LINES = 8
_POLITE_S = 5.0
_OF_THE_SOURCE = ("configure", "compile")
_DROPPED_VARIABLES = ("CMAKE_GENERATOR", "CMAKE_ARGS", "NINJA_STATUS", "PYTHONPATH", "MAKEFLAGS")


@dataclass(frozen=True, kw_only=True, slots=True)
class InstallProgress:
    """Where an installation is.

    phase: fetch, unpack, configure, compile or probe. text: one line for people. n_done, n_total: Ninja's steps,
    None in other phases.
    """

    phase: str
    text: str
    n_done: int | None = None
    n_total: int | None = None


ProgressCallback = Callable[[InstallProgress], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """Runs steps one after another into one log.

    held_fd: a file descriptor that the children keep open, so that a lock lives as long as they do; None for none.
    """

    log: Path
    on_progress: ProgressCallback
    held_fd: int | None = None
    environment: Mapping[str, str] | None = None

    def say(self, phase: str, text: str) -> None:
        """Tell the caller what happens now."""
        self.on_progress(InstallProgress(phase=phase, text=text))

    def run(self, argv: list[str], text: str, *, phase: str = "fetch") -> None:
        """Run argv to its end, its output into the log.

        Raises BuildError where it fails, BrokenBuildError where that lies with the source that is compiled.
        """
        self.say(phase, text)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            log.write(f"\n==== {_now()} {text}\n{_spelled(argv)}\n".encode())
            log.flush()
            exit_code, tail = self._run_into(log, argv, phase, text)
            log.write(f"==== {_now()} ended with {exit_code}\n".encode())
        if exit_code != 0:
            ending = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
            kind = BrokenBuildError if phase in _OF_THE_SOURCE else BuildError
            raise kind(
                f"{text} failed ({Path(argv[0]).name}, {ending}):\n"
                + "\n".join(f"  | {line}" for line in tail),
                hint=f"The whole log is {str(self.log)!r}; look there for the first line with `error`.",
            )

    def _run_into(
        self, log: IO[bytes], argv: list[str], phase: str, text: str
    ) -> tuple[int, list[str]]:
        process = self._start(argv)
        assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
        telling: deque[str] = deque(maxlen=_N_TAIL_LINES)
        last: deque[str] = deque(maxlen=_N_TAIL_LINES)
        try:
            for line in process.stdout:
                log.write(line)
                step = _STEP.match(line)
                if step:
                    log.flush()
                    done, total = int(step[1]), int(step[2])
                    self.on_progress(
                        InstallProgress(phase=phase, text=text, n_done=done, n_total=total)
                    )
                readable = line.decode("utf-8", errors="replace").rstrip()[:300]
                last.append(readable)
                if not step and "error" in readable.lower() and len(telling) < _N_TAIL_LINES:
                    telling.append(readable)
            process.wait()
        finally:
            if process.poll() is None:
                _end(process)
            process.stdout.close()
        return process.returncode, list(telling or last)

    def _start(self, argv: list[str]) -> subprocess.Popen[bytes]:
        environment = {
            k: v
            for k, v in os.environ.items()
            if k not in _DROPPED_VARIABLES and not k.startswith("GIT_")  # they name a repository
        }
        try:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,
                env={**environment, "NINJA_STATUS": "[%f/%t] ", **(self.environment or {})},
                start_new_session=True,
                pass_fds=(self.held_fd,) if self.held_fd is not None and os.name != "nt" else (),
            )
        except OSError as problem:
            raise BuildError(
                f"{argv[0]!r} cannot be started: {problem.strerror}",
                hint="Check that the program exists and may be executed.",
            ) from problem


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a step, politely first: Ninja's compilers are in groups of their own, and only Ninja itself ends them."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_POLITE_S)
    end_group(process)


def _spelled(argv: list[str]) -> str:
    return "$ " + shlex.join(argv)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
