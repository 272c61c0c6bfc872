"""The wish to stop: Ctrl-C or SIGTERM once ends the group and keeps what is finished, twice ends everything now."""

from __future__ import annotations

import contextlib
import queue
import signal
import time
from types import FrameType
from typing import Any

from llamasweep.run.process import Item, Wake

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class StopSignals:
    """Context manager that turns signals into a wish. Install it in the main thread.

    deadline_s: monotonic time at which the run shall end by itself, None = no limit.
    """

    def __init__(self, deadline_s: float | None = None) -> None:
        self.deadline_s = deadline_s
        self.n_signals = 0
        self._inbox: queue.SimpleQueue[Item] | None = None
        self._before: dict[int, Any] = {}
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Not a threading.Event: only a SimpleQueue may be used in a signal handler whatever it interrupts."""

    @property
    def is_asked(self) -> bool:
        return self.n_signals > 0

    @property
    def is_urgent(self) -> bool:
        return self.n_signals > 1

    @property
    def is_late(self) -> bool:
        """The run's own time is up."""
        return self.deadline_s is not None and time.monotonic() >= self.deadline_s

    @property
    def is_over(self) -> bool:
        return self.is_asked or self.is_late

    def attach(self, inbox: queue.SimpleQueue[Item]) -> None:
        """From now on wake this loop."""
        self._inbox = inbox
        if self.is_asked:
            inbox.put(Wake())

    def wait(self, seconds: float) -> None:
        """Sleep, but not through a signal or the deadline."""
        if self.deadline_s is not None:
            seconds = min(seconds, self.deadline_s - time.monotonic())
        if seconds > 0 and not self.is_asked:
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=seconds)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.n_signals += 1
        self._bell.put(None)
        if self._inbox is not None:
            self._inbox.put(Wake())

    def __enter__(self) -> StopSignals:
        for number in _SIGNALS:
            if (
                signal.getsignal(number) is not signal.SIG_IGN
            ):  # nohup and background jobs ignore some
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
