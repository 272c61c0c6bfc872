"""Running the real command line on fake engines, in a process of its own, as a user would."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from llamasweep.engines.driven import Job
from llamasweep.results.records import Attempt, RunData
from llamasweep.store.locate import list_runs, load_run

TIME_LIMIT_S = 600
"""Of one command, for a machine ten times slower; only one that hangs comes near it."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command that ended. code: exit code, negative for a signal."""

    code: int
    stdout: str
    stderr: str


def drive(job: Job) -> Ended:
    """A driver process that measures a job to its end."""
    done = subprocess.run(
        [sys.executable, "-I", "-m", "llamasweep.drivers", *job.words()],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    return Ended(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A folder in which sweeps are written and run."""

    folder: Path

    def write_sweep(self, text: str, name: str = "sweep.yaml") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "llamasweep", *words]

    def start(self, *words: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(
        self, *words: str, env: dict[str, str] | None = None, limit_s: float = TIME_LIMIT_S
    ) -> Ended:
        process = self.start(*words, env=env)
        stdout, stderr = process.communicate(timeout=limit_s)
        return Ended(code=process.returncode, stdout=stdout, stderr=stderr)

    def run(self, sweep: Path, *options: str) -> Ended:
        return self.call("run", "--plain", "--no-report", *options, "--", str(sweep))

    def results(self) -> RunData:
        """The newest run."""
        return load_run(list_runs(self.folder / "results")[0].path)

    def rows(self) -> list[Attempt]:
        return list(self.results().attempts)


def kill_after_events(process: subprocess.Popen[str], log: Path, n_events: int) -> bool:
    """SIGKILL once the fake engines wrote down so many more events, or a minute is over; False where it ended before."""
    wanted = len(order_events(log)) + n_events
    end_s = time.monotonic() + 60.0
    while len(order_events(log)) < wanted and time.monotonic() < end_s and process.poll() is None:
        time.sleep(0.005)
    was_running = process.poll() is None
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return was_running


def order_events(log: Path) -> list[dict[str, Any]]:
    """What the fake engines wrote down, in order; a line that a kill cut is left out."""
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines if line]


def engines_alive(words: Sequence[str]) -> list[psutil.Process]:
    """Processes whose command line holds one of the words (a fake's path, a grandchild's mark)."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if process.pid != os.getpid() and any(word in line for word in words):
            found.append(process)
    return found
