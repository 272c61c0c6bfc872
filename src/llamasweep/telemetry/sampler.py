"""Reads all sources beside the engine at a steady interval, in one thread that waits and never spins.

It measures itself: CPU seconds of its thread and how late each reading came. A source that raises is dropped with its reason;
the engine is never touched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from llamasweep.results.records import Reading
from llamasweep.telemetry.sensors import Source

STOP_TIMEOUT_S = 5.0
"""How long `stop` waits for a source that hangs in a driver before it gives it up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplerCost:
    """What sampling one group cost. Lateness: reading begun - reading due, of the planned readings only.

    n_skipped: planned times that passed while a reading was still going on. Figures are None where nothing was read.
    """

    interval_s: float
    n_ticks: int
    n_skipped: int
    wall_s: float
    cpu_s: float
    lateness_median_s: float | None
    lateness_p95_s: float | None
    lateness_max_s: float | None
    dropped: dict[str, str] = field(default_factory=dict)

    @property
    def cpu_fraction(self) -> float | None:
        """CPU time of the sampler / wall time: its share of one core."""
        return self.cpu_s / self.wall_s if self.wall_s > 0 else None


@dataclass(kw_only=True, slots=True)
class _Group:
    """One start … stop: what its thread shares with the caller, and what it measures of itself."""

    pid: int | None
    started_s: float
    wake: threading.Event = field(default_factory=threading.Event)
    is_stopping: bool = False
    n_ticks: int = 0
    n_skipped: int = 0
    cpu_s: float = 0.0
    lateness_s: list[float] = field(default_factory=list)


class Sampler:
    """start(pid) … stop() as often as wanted, over sources that were opened once.

    `drain`, `read_soon`, `absent` may be called from any thread at any time. Readings of a group come in the order of their time
    as long as the system's clock does not step.
    """

    def __init__(self, sources: Sequence[Source], interval_s: float) -> None:
        if not interval_s > 0:
            raise ValueError(f"telemetry interval of {interval_s} s")
        self.interval_s = interval_s
        self._sources = list(sources)
        self._dropped: dict[str, str] = {}
        self._readings: list[Reading] = []
        self._lock = threading.Lock()
        self._group: _Group | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether a thread is reading."""
        return self._thread is not None

    @property
    def absent(self) -> dict[str, str]:
        """source or source/device/metric -> why it gives nothing, as of now."""
        with self._lock:
            found = dict(self._dropped)
            for source in self._sources:
                found |= source.absent
            return found

    def start(self, pid: int | None) -> None:
        """Begin a group: a first reading at once, then one per interval counted from here.

        pid: root of the engine's process tree, None to read only the machine. Raises RuntimeError if it runs already.
        """
        if self._thread is not None:
            raise RuntimeError("the sampler runs already")
        self._group = _Group(pid=pid, started_s=time.monotonic())
        self._thread = threading.Thread(
            target=self._loop, args=(self._group,), name="llamasweep-telemetry", daemon=True
        )
        self._thread.start()

    def read_soon(self) -> None:
        """Ask for one extra reading now: at a phase's border it makes counters exact. Returns at once."""
        group = self._group
        if group is not None:
            group.wake.set()

    def drain(self) -> list[Reading]:
        """Readings since the last call; the caller owns them."""
        with self._lock:
            taken, self._readings = self._readings, []
        return taken

    def stop(self) -> SamplerCost:
        """End the group with a last reading. A second call, or one without `start`, reports nothing read.

        A source that hangs is given up after 5 s: all sources are dropped, because its thread still holds them.
        """
        group, thread = self._group, self._thread
        self._group = self._thread = None
        if group is None or thread is None:
            return self._cost(_Group(pid=None, started_s=0.0), 0.0)
        group.is_stopping = True
        group.wake.set()
        thread.join(STOP_TIMEOUT_S)
        if thread.is_alive():
            self._give_up()
        return self._cost(group, time.monotonic() - group.started_s)

    def _cost(self, group: _Group, wall_s: float) -> SamplerCost:
        late = sorted(group.lateness_s)
        with self._lock:
            return SamplerCost(
                interval_s=self.interval_s,
                n_ticks=group.n_ticks,
                n_skipped=group.n_skipped,
                wall_s=wall_s,
                cpu_s=group.cpu_s,
                lateness_median_s=_rank(late, 0.5),
                lateness_p95_s=_rank(late, 0.95),
                lateness_max_s=_rank(late, 1.0),
                dropped=dict(self._dropped),
            )

    def _give_up(self) -> None:
        with self._lock:
            for source in self._sources:
                self._dropped[source.name] = (
                    f"a source did not answer for {STOP_TIMEOUT_S:.0f} s; sampling was given up"
                )
            self._sources = []

    # -- in the thread
    def _loop(self, group: _Group) -> None:
        began_cpu_s = time.thread_time()
        n_due = 0
        while True:
            is_last = group.is_stopping
            late_s = time.monotonic() - group.started_s - n_due * self.interval_s
            self._read_all(group.pid)
            group.n_ticks += 1
            group.cpu_s = time.thread_time() - began_cpu_s
            if late_s >= 0:  # else an extra reading, and the planned one is still to come
                group.lateness_s.append(late_s)
                n_due = self._next_due(n_due, group)
            if is_last:
                return
            self._wait(n_due, group)

    def _next_due(self, n_due: int, group: _Group) -> int:
        n_passed = int((time.monotonic() - group.started_s) / self.interval_s)
        group.n_skipped += max(0, n_passed - n_due)
        return max(n_passed, n_due) + 1

    def _wait(self, n_due: int, group: _Group) -> None:
        wait_s = group.started_s + n_due * self.interval_s - time.monotonic()
        if wait_s > 0:
            group.wake.wait(wait_s)
        group.wake.clear()

    def _read_all(self, pid: int | None) -> None:
        found: list[Reading] = []
        failed: dict[str, str] = {}
        for source in tuple(self._sources):
            try:
                found += source.read(pid)
            except Exception as error:  # noqa: BLE001  (whatever a source raises, the engine goes on)
                failed[source.name] = f"dropped after {type(error).__name__}: {error}"
        with self._lock:
            self._readings += found
            self._dropped |= failed
            self._sources = [s for s in self._sources if s.name not in failed]


def _rank(ordered: list[float], fraction: float) -> float | None:
    """Value at the nearest rank; None of nothing."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, round(fraction * (len(ordered) - 1)))]
