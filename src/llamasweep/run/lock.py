"""One sweep at a time per machine: a lock whose owner and engine are written in it.

The kernel drops the lock when its owner dies, so a stale one cannot hold anybody up; what a dead owner wrote tells
which engine may have outlived it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import psutil

from llamasweep.cache import cache_root
from llamasweep.errors import LockedError, StoreError
from llamasweep.file_lock import try_lock
from llamasweep.run.process import end_orphan

_PATIENCE_S = 0.5
_LOOK_EVERY_S = 0.02
_MOST_CHARS = 10_000


def lock_path() -> Path:
    """One file per user of the machine."""
    return cache_root() / "sweep.lock"


class SweepLock:
    """Context manager. `orphan_ended` tells whether an engine of a dead runner was found and ended."""

    def __init__(self, run_id: str, *, path: Path | None = None) -> None:
        self._path = path or lock_path()
        self._run_id = run_id
        self._file: IO[str] | None = None
        self.orphan_ended = False

    def __enter__(self) -> SweepLock:
        self._file = self._opened()
        if not _lock_patiently(self._file):
            owner = _read(self._file)
            self._file.close()
            raise LockedError(
                f"another sweep is measuring on this machine (process {owner.get('pid', 'unknown')}, "
                f"run {owner.get('run_id', 'unknown')})",
                hint="Wait for it, or look at it with `llamasweep status`; two sweeps at once would spoil both.",
            )
        orphan = _engine_of(_read(self._file))
        if orphan is not None:
            self.orphan_ended = end_orphan(*orphan)
        try:
            self._write(engine=None)
        except OSError as problem:
            self._drop()
            raise self._refused(problem) from problem
        return self

    def _opened(self) -> IO[str]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._path.open("a+", encoding="utf-8", errors="replace")
        except OSError as problem:
            raise self._refused(problem) from problem

    def _refused(self, problem: OSError) -> StoreError:
        return StoreError(
            f"cannot write the lock {self._path}: {problem.strerror}",
            hint="LLAMASWEEP_CACHE names another folder for what llamasweep keeps.",
        )

    def name_run(self, run_id: str) -> None:
        """From now on the lock names this run."""
        self._run_id = run_id
        self._write_if_possible(engine=None)

    def name_engine(self, pid: int | None, started_at_s: float | None) -> None:
        """Write down which engine runs now; None when there is none."""
        self._write_if_possible(
            engine=None if pid is None else {"pid": pid, "started_at_s": started_at_s}
        )

    def _write_if_possible(self, *, engine: dict[str, Any] | None) -> None:
        """The lock holds without its text, and a full disk for the cache is no reason to stop measuring."""
        with contextlib.suppress(OSError):
            self._write(engine=engine)

    def _write(self, *, engine: dict[str, Any] | None) -> None:
        assert self._file is not None  # noqa: S101
        self._file.seek(0)
        self._file.truncate()
        json.dump({"pid": os.getpid(), "run_id": self._run_id, "engine": engine}, self._file)
        self._file.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._drop()

    def _drop(self) -> None:
        """Wipe out the text and let the lock go; closing tries once more what a full disk refused."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            self._file.seek(0)
            self._file.truncate()
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = None


def current_run(path: Path | None = None) -> str | None:
    """The run that is being measured on this machine now, None where there is none."""
    chosen = path or lock_path()
    if not chosen.exists():
        return None
    with chosen.open("a+", encoding="utf-8", errors="replace") as file:
        if try_lock(file.fileno()):
            return None  # closing the file lets the lock go
        run_id = _read(file).get("run_id")
    return run_id if isinstance(run_id, str) else None


def _lock_patiently(file: IO[str]) -> bool:
    """Whether the lock is ours now. One that nobody alive has signed is held by somebody who only looks, for a moment."""
    end_s = time.monotonic() + _PATIENCE_S
    while not try_lock(file.fileno()):
        pid = _read(file).get("pid")
        is_owned = isinstance(pid, int) and pid > 0 and psutil.pid_exists(pid)
        if is_owned or time.monotonic() >= end_s:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _engine_of(content: dict[str, Any]) -> tuple[int, float] | None:
    """(pid, start time) of the engine that a dead owner names, None where it names none that could be."""
    match content.get("engine"):
        case {"pid": int(pid), "started_at_s": int(started_at_s) | float(started_at_s)} if (
            pid > 0 and not isinstance(pid, bool) and not isinstance(started_at_s, bool)
        ):
            return pid, float(started_at_s)
    return None


def _read(file: IO[str]) -> dict[str, Any]:
    try:
        file.seek(0)
        content = json.loads(file.read(_MOST_CHARS))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
