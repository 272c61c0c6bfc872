"""How long a step may take before the engine counts as hung. Pure: times in, limits out.

A cell's limit is the sweep's `timeout`, else 2.5 times the longest time this cell ever took, else a generous multiple of the
prediction. Beside it stands a limit on silence: no progress line for much longer than the step should take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

HISTORY_FACTOR = 2.5
PREDICTION_FACTOR = 20.0
SEEN_FACTOR = 10.0
CELL_FLOOR_S = 300.0
STALL_FLOOR_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What one cell should take, seconds. history_s: longest time it took before, None where it is new."""

    cell_s: float
    longest_step_s: float
    history_s: float | None = None


def cell_limit_s(expected: Expected, asked_s: float | None) -> float:
    """Seconds from a cell's start to its row."""
    if asked_s is not None:
        return asked_s
    if expected.history_s is not None:
        return max(HISTORY_FACTOR * expected.history_s, CELL_FLOOR_S)
    return max(PREDICTION_FACTOR * expected.cell_s, CELL_FLOOR_S)


def stall_limit_s(expected: Expected, longest_seen_s: float | None) -> float:
    """Seconds without a progress line. longest_seen_s: longest step of this process so far, None at first."""
    seen = SEEN_FACTOR * longest_seen_s if longest_seen_s is not None else 0.0
    return max(PREDICTION_FACTOR * expected.longest_step_s, seen, STALL_FLOOR_S)


@dataclass(slots=True)
class Watch:
    """Deadlines of one process, on a monotonic clock in seconds. expected: of the cell with that index."""

    expected: Callable[[int], Expected]
    asked_s: float | None
    now_s: float
    cell_started_s: float = 0.0
    last_sign_s: float = 0.0
    longest_step_s: float | None = None
    current: Expected = field(init=False)

    def __post_init__(self) -> None:
        self.cell_started_s = self.last_sign_s = self.now_s
        self.current = self.expected(0)

    def sign(self, now_s: float) -> None:
        """A progress line or a row came."""
        step_s = now_s - self.last_sign_s
        self.longest_step_s = max(step_s, self.longest_step_s or step_s)
        self.last_sign_s = now_s

    def next_cell(self, index: int, now_s: float) -> None:
        """The cell before is done; this one starts."""
        self.cell_started_s = now_s
        self.current = self.expected(index)

    def deadline_s(self) -> float:
        """When to give up, whichever limit comes first."""
        expected = self.current
        cell_end = self.cell_started_s + cell_limit_s(expected, self.asked_s)
        return min(cell_end, self.last_sign_s + stall_limit_s(expected, self.longest_step_s))

    def why(self, now_s: float) -> str:
        """The sentence for the row when the deadline has passed."""
        expected = self.current
        limit_s = cell_limit_s(expected, self.asked_s)
        if now_s >= self.cell_started_s + limit_s:
            origin = (
                "the sweep's timeout"
                if self.asked_s is not None
                else "the limit from history or prediction"
            )
            return f"not finished after {now_s - self.cell_started_s:.1f} s ({origin} is {limit_s:.1f} s)"
        return f"no sign of life for {now_s - self.last_sign_s:.1f} s; the engine hangs"
