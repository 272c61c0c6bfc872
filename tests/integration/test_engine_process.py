"""An engine process that says more than anybody can read."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from llamasweep.run.process import MAX_WAITING_LINES, EngineProcess

_FLOOD = "import sys\nwhile True: sys.stderr.write('x\\n' * 1000)"


def test_a_flood_waits_in_the_pipe_and_not_in_memory(tmp_path: Path) -> None:
    process = EngineProcess([sys.executable, "-c", _FLOOD], env={}, cwd=tmp_path)
    try:
        end_s = time.monotonic() + 60
        while process.inbox.qsize() <= MAX_WAITING_LINES and time.monotonic() < end_s:
            process._is_ending.wait(0.02)
        process._is_ending.wait(0.5)
        n_waiting = process.inbox.qsize()
        assert MAX_WAITING_LINES < n_waiting < 2 * MAX_WAITING_LINES
    finally:
        ending = process.stop()
    assert ending.exit_signal in {"SIGTERM", "SIGKILL"}
    assert process.inbox.qsize() < 2 * MAX_WAITING_LINES + 10
