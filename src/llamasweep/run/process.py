"""One engine process: started from an argv list, its lines handed on as they come, ended with all its children.

Knows nothing of llama-bench. Lines arrive on one queue with the time at which they were read; the queue also carries
what wakes the reader for other reasons (a signal, the end of a stream).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import psutil

from llamasweep.run.secrets import names_secret

_LAUNCHER = Path(__file__).with_name("launch.py")
_READ_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 20
MAX_WAITING_LINES = 50_000
"""So many lines may wait to be looked at; then the engine waits, as with any pipe that is full."""
_LOOK_AGAIN_S = 0.01
TERM_WAIT_S = 3.0
KILL_WAIT_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36
_KEPT_ENVIRONMENT = (
    "PATH", "HOME", "TMPDIR", "TEMP", "TMP", "LANG", "SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA", "APPDATA",
)  # fmt: skip
_KEPT_PREFIXES = (
    "LD_LIBRARY_PATH", "DYLD_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ROCM_", "HSA_", "GGML_", "LLAMA_", "VK_",
    "ONEAPI_", "SYCL_", "ZE_", "OMP_", "GOMP_", "KMP_", "MUSA_", "ASCEND_",
)  # fmt: skip


def clean_environment(
    extra: Sequence[tuple[str, str]], base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What an engine gets: what finds its libraries and devices, what steers it, and `extra`. No tokens."""
    source = os.environ if base is None else base
    kept = {k: v for k, v in source.items() if k in _KEPT_ENVIRONMENT}
    return {**kept, **dict(inherited_settings(source)), **dict(extra)}


def inherited_settings(base: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Variables of the user's shell that may change what an engine does, such as OMP_NUM_THREADS; they are recorded."""
    source = os.environ if base is None else base
    return sorted(
        (k, v) for k, v in source.items() if k.startswith(_KEPT_PREFIXES) and not names_secret(k)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line without its newline. time_ns: Unix time when it was read. is_cut: it was longer than the limit."""

    stream: Literal["stdout", "stderr"]
    data: bytes
    time_ns: int
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamEnd:
    """A stream was closed."""

    stream: Literal["stdout", "stderr"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wake:
    """Somebody wants the reader's attention (a signal came)."""


Item = Line | StreamEnd | Wake


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a process ended. exit_code: None where a signal ended it. exit_signal: SIGSEGV …, None otherwise."""

    exit_code: int | None
    exit_signal: str | None


class EngineProcess:
    """A running engine. Start it from the main thread: the kernel ties its life to the thread that started it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        address_space_bytes: int | None = None,
        guard: bool | None = None,
    ) -> None:
        self.inbox: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._is_ending = threading.Event()
        self._ours_before = _family(os.getpid())
        self.start_ns = time.time_ns()
        guarded = not sys.platform.startswith("linux") if guard is None else guard
        options = {
            "address_space_bytes": address_space_bytes,
            "parent_pid": os.getpid(),
            "guard": guarded,
        }
        command = [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(options), "--", *argv]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if guarded else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self._child.pid
        self.started_at_s = _create_time_s(self.pid)
        self._readers = [
            threading.Thread(target=self._read, args=(self._child.stdout, "stdout"), daemon=True),
            threading.Thread(target=self._read, args=(self._child.stderr, "stderr"), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe: IO[bytes], stream: Literal["stdout", "stderr"]) -> None:
        """Lines to the inbox; a line over the limit is cut, so that a flood without newline stays small."""
        rest = b""
        skipping = False
        while chunk := os.read(pipe.fileno(), _READ_BYTES):
            while self.inbox.qsize() > MAX_WAITING_LINES and not self._is_ending.is_set():
                self._is_ending.wait(_LOOK_AGAIN_S)
            if self.inbox.qsize() > MAX_WAITING_LINES:
                continue  # it is being ended, and nobody waits for more of this
            now_ns = time.time_ns()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if not skipping:
                    self.inbox.put(Line(stream=stream, data=line, time_ns=now_ns))
                skipping = False
            if len(rest) > MAX_LINE_BYTES:
                if not skipping:
                    self.inbox.put(
                        Line(stream=stream, data=rest[:MAX_LINE_BYTES], time_ns=now_ns, is_cut=True)
                    )
                skipping, rest = True, b""
        if rest and not skipping:
            self.inbox.put(Line(stream=stream, data=rest, time_ns=time.time_ns(), is_cut=True))
        self.inbox.put(StreamEnd(stream=stream))

    def wait(self, timeout_s: float | None = None) -> Ending:
        """How it ended; raises subprocess.TimeoutExpired where it still runs."""
        code = self._child.wait(timeout_s)
        if code < 0:
            return Ending(exit_code=None, exit_signal=signal_name(-code))
        return Ending(exit_code=code, exit_signal=None)

    def stop(self, *, at_once: bool = False) -> Ending:
        """End the whole process tree: politely, then hard. Safe to call on one that has ended."""
        self._is_ending.set()
        family = _family(self.pid)
        if not at_once and self._child.poll() is None:
            self._signal_all(family, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(TERM_WAIT_S)
        family |= self._leftovers()
        self._signal_all(family, getattr(signal, "SIGKILL", signal.SIGTERM))
        ending = self.wait(KILL_WAIT_S)
        self.close()
        return ending

    def _signal_all(self, family: set[psutil.Process], number: int) -> None:
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self._child.send_signal(number)
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.send_signal(
                    number
                )  # psutil checks the start time, so a reused pid is not hit

    def end_leftovers(self) -> int:
        """After a normal end: whatever it left behind in its session is killed; returns how many."""
        left = self._leftovers()
        self._signal_all(left, getattr(signal, "SIGKILL", signal.SIGTERM))
        return len(left)

    def _leftovers(self) -> set[psutil.Process]:
        """Descendants, members of its session, and orphans that fell to us (see `adopt_orphans`)."""
        ours = {p for p in _family(os.getpid()) if p.pid != self.pid}
        return _family(self.pid) | _session_members(self.pid) | (ours - self._ours_before)

    def close(self) -> None:
        """Wait for the readers and close the pipes."""
        self._is_ending.set()
        for reader in self._readers:
            reader.join(TERM_WAIT_S)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def adopt_orphans() -> None:
    """Let orphans of our engines become our children (Linux), so that none escapes by leaving its session."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def signal_name(number: int) -> str:
    """SIGSEGV for 11; the number as text where this system has no name for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _create_time_s(pid: int) -> float | None:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def _family(pid: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return set()


def _session_members(session_id: int) -> set[psutil.Process]:
    """Processes of the session that was made for the engine, orphans among them."""
    if not hasattr(os, "getsid"):
        return set()
    found = set()
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(pid) == session_id and pid != session_id:
                found.add(psutil.Process(pid))
    return found


def end_orphan(pid: int, started_at_s: float) -> bool:
    """End an engine that a dead runner left behind, if pid and start time both say that it is the one."""
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started_at_s) > 1.0:
            return False
        family = {process, *process.children(recursive=True), *_session_members(pid)}
        for member in family:
            with contextlib.suppress(psutil.Error):
                member.kill()
        psutil.wait_procs(list(family), timeout=KILL_WAIT_S)
    except psutil.Error:
        return False
    return True
