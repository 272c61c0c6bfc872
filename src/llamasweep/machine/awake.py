"""Keeps the machine from going to sleep while a sweep runs, and says whether that worked.

On Linux `systemd-inhibit` and on macOS `caffeinate` hold the wish as long as a child lives; the
child reads from a pipe of ours, so it ends with us however we end. On Windows the thread asks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import select
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TIMEOUT_S = 5.0
_ES_CONTINUOUS = 0x80000000
_ES_SYSTEM_REQUIRED = 0x00000001


@dataclass(frozen=True, kw_only=True, slots=True)
class Awake:
    """Whether the machine is kept awake. how: by what, None if not. reason: why not, None if so."""

    is_kept: bool
    how: str | None = None
    reason: str | None = None


@contextlib.contextmanager
def keep_awake(
    reason: str, *, os_name: str | None = None, argv: Sequence[str] | None = None
) -> Iterator[Awake]:
    """Ask the system to stay awake inside the `with` block.

    reason: shown by the system's own tools. os_name: as `platform.system()`, by default this one.
    argv: of the holding program, before its own command, by default the system's.
    """
    system = platform.system() if os_name is None else os_name
    if system == "Windows":
        with _windows_awake() as state:
            yield state
        return
    command = list(argv) if argv is not None else _holder(system, reason)
    if command is None:
        yield Awake(is_kept=False, reason=f"no way to keep {system} awake is known here")
    elif shutil.which(command[0]) is None:
        yield Awake(is_kept=False, reason=f"{command[0]} is not installed")
    else:
        with _held_by([*command, "cat"]) as state:
            yield state


def _holder(system: str, reason: str) -> list[str] | None:
    if system == "Linux":
        plain = reason.encode("ascii", "backslashreplace").decode()  # the locale may know no more
        return [
            "systemd-inhibit",
            "--what=idle:sleep",
            "--who=llamasweep",
            f"--why={plain}",
            "--mode=block",
        ]
    if system == "Darwin":
        return ["caffeinate", "-i", "-s"]
    return None


@contextlib.contextmanager
def _held_by(argv: list[str]) -> Iterator[Awake]:
    """Hold while `cat` under the holder lives; it answers a line once the wish is granted."""
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the runner, which may want to finish writing
        )
    except OSError as problem:
        yield Awake(is_kept=False, reason=f"{argv[0]} does not start: {problem.strerror}")
        return
    try:
        yield _ask(child, argv[0])
    finally:
        _end(child)
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()


def _ask(child: subprocess.Popen[bytes], name: str) -> Awake:
    assert child.stdin is not None  # noqa: S101  (asked for in Popen)
    assert child.stdout is not None  # noqa: S101
    with contextlib.suppress(OSError):
        child.stdin.write(b"awake\n")
        child.stdin.flush()
    ready, _, _ = select.select([child.stdout], [], [], _TIMEOUT_S)
    answer = os.read(child.stdout.fileno(), 64) if ready else b""
    if answer == b"awake\n":
        return Awake(is_kept=True, how=name)
    _end(child)
    said = child.stderr.read(2_000).decode("utf-8", errors="replace") if child.stderr else ""
    first_line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return Awake(is_kept=False, reason=f"{name}: {first_line or 'no answer'}")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Close the pipe, which ends the child; insist if it does not go."""
    if child.stdin is not None:
        with contextlib.suppress(OSError):
            child.stdin.close()
    try:
        child.wait(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


@contextlib.contextmanager
def _windows_awake() -> Iterator[Awake]:
    """SetThreadExecutionState, which counts for the calling thread until it is taken back."""
    library = getattr(ctypes, "windll", None)
    if library is None:
        yield Awake(is_kept=False, reason="this is not Windows")
        return
    ask = library.kernel32.SetThreadExecutionState
    if not ask(_ES_CONTINUOUS | _ES_SYSTEM_REQUIRED):
        yield Awake(is_kept=False, reason="Windows refused SetThreadExecutionState")
        return
    try:
        yield Awake(is_kept=True, how="SetThreadExecutionState")
    finally:
        ask(_ES_CONTINUOUS)
