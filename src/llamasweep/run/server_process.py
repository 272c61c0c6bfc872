"""A server that we start and stop: its process tied to ours, its log read as it comes and kept in a file.

Knows nothing of what it serves. Start it from the main thread, as every `EngineProcess`.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from llamasweep.engines.http_exchange import Limits, RequestError, ServerAddress, call_json
from llamasweep.run.process import Ending, EngineProcess, Line, StreamEnd, clean_environment

_TAIL_LINES = 60
_LOG_CHARACTERS = 64 << 20
"""A log that says more is not kept further; its lines are still read."""


_LOOK_AGAIN_S = 0.05
_HEALTH = Limits(connect_s=2, silent_s=10, total_s=10, body_bytes=1 << 20)


class ServerProcess:
    """A running server; leaving the context ends it with all its children."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Sequence[tuple[str, str]],
        cwd: Path,
        log_path: Path | None = None,
        on_line: Callable[[str], object] | None = None,
    ) -> None:
        self._on_line = on_line
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._log_path = log_path
        self._process = EngineProcess(argv, env=clean_environment(env), cwd=cwd)
        self.pid = self._process.pid
        self._pump = threading.Thread(target=self._read, daemon=True)
        self._pump.start()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self.ending() is None

    def ending(self) -> Ending | None:
        """How it ended; None while it runs."""
        try:
            return self._process.wait(0)
        except subprocess.TimeoutExpired:
            return None

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines that it said."""
        return tuple(self._tail)

    def stop(self) -> None:
        """End it; safe to call twice."""
        self._process.stop()
        self._pump.join(5)

    def _read(self) -> None:
        n_open, n_left = 2, _LOG_CHARACTERS
        log = None if self._log_path is None else self._log_path.open("w", encoding="utf-8")
        try:
            while n_open:
                item = self._process.inbox.get()
                if isinstance(item, StreamEnd):
                    n_open -= 1
                elif isinstance(item, Line):
                    text = item.data.decode("utf-8", "replace")
                    self._tail.append(text)
                    if self._on_line is not None:
                        self._on_line(text)
                    if log is not None and n_left > 0:
                        n_left -= len(text)
                        log.write(text + "\n")
                        log.flush()
        finally:
            if log is not None:
                log.close()


def wait_until_healthy(
    address: ServerAddress, server: ServerProcess, *, limit_s: float | None = None
) -> Literal["ready", "ended", "late"]:
    """Until llama-server says that its model is loaded, it ends, or the time is over (None: there is no limit)."""
    deadline_s = None if limit_s is None else time.monotonic() + limit_s
    pause = threading.Event()
    while deadline_s is None or time.monotonic() < deadline_s:
        with contextlib.suppress(RequestError):
            call_json(address, "GET", "/health", limits=_HEALTH)
            return "ready"
        if not server.is_alive():
            return "ended"
        pause.wait(_LOOK_AGAIN_S)
    return "late"
