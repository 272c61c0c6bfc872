"""Ask a program one short question: bounded in time and in output, with a clean environment and nothing on stdin.

It knows nothing of llama.cpp. The program's whole process group is ended when it takes too long or says too much.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LIMIT_BYTES = 1_000_000
_DRAIN_S = 5.0
"""A process that left the group may hold the pipe open; it is not waited for longer than this."""

KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "USERPROFILE",
    "SYSTEMROOT",
    "TMPDIR",
    "TEMP",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GGML_VK_VISIBLE_DEVICES",
)
"""What a probed program gets of our environment: how it finds its libraries and devices, no LLAMA_* setting."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a program said.

    exit_code: negative for a signal (as in `subprocess`). is_timeout: it was ended because the time was over.
    is_flood: it was ended because it printed more than `LIMIT_BYTES`. Bytes that are not UTF-8 are replaced.
    """

    exit_code: int
    stdout: str
    stderr: str
    is_timeout: bool = False
    is_flood: bool = False


def clean_environment() -> dict[str, str]:
    """A small environment in the C locale that does not let an abort print a debugger's backtrace to stdout."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, "LC_ALL": "C", "GGML_NO_BACKTRACE": "1"}


def ask(argv: list[str], *, timeout_s: float, is_environment_whole: bool = False) -> Answer:
    """Run argv in an empty folder and return what it said.

    is_environment_whole: hand on our own environment instead of the clean one. Raises OSError where it cannot be started at all.
    """
    with tempfile.TemporaryDirectory(prefix="llamasweep-ask-") as folder:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(os.environ) if is_environment_whole else clean_environment(),
            start_new_session=True,
        )
        assert process.stdout is not None  # noqa: S101  (pipes were asked for)
        assert process.stderr is not None  # noqa: S101
        out = _Drain(process.stdout, process)
        err = _Drain(process.stderr, process)
        is_timeout = False
        try:
            process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            is_timeout = True
        finally:
            end_group(process)
        return Answer(
            exit_code=process.returncode,
            stdout=out.text(),
            stderr=err.text(),
            is_timeout=is_timeout,
            is_flood=out.is_flood or err.is_flood,
        )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its own group, and everything it started; returns when it is gone."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def absolute(path: Path) -> Path:
    """The path with `~` resolved and made absolute; symbolic links stay, so that upgrades behind them are seen."""
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100  (Path.absolute keeps "..")


class _Drain:
    """Reads a pipe to its end in a thread, keeps the first LIMIT_BYTES and ends the program beyond them."""

    def __init__(self, pipe: IO[bytes], process: subprocess.Popen[bytes]) -> None:
        self.is_flood = False
        self._kept = bytearray()
        self._pipe = pipe
        self._process = process
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        self._thread.join(timeout=_DRAIN_S)
        if not self._thread.is_alive():
            self._pipe.close()
        return bytes(self._kept).decode("utf-8", errors="replace")

    def _read(self) -> None:
        read = getattr(self._pipe, "read1", self._pipe.read)
        while chunk := read(65536):
            room = LIMIT_BYTES - len(self._kept)
            self._kept += chunk[:room]
            if len(chunk) > room and not self.is_flood:
                self.is_flood = True
                self._process.kill()
