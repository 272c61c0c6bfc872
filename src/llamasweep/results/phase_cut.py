"""A timeline cut to one phase: peaks, means and counter differences, each None with a reason where it cannot be had.

Rules. A mean, a rate or a difference needs a phase of at least one telemetry interval. A counter's value at a border
is interpolated between the readings around it. A peak of memory in a phase that no reading fell into may use the
nearest reading on each side, and says so among the reasons.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from llamasweep.results.timeline import Series, Timeline

NEIGHBOUR_INTERVALS = 2.0
"""A reading further from the phase than this many intervals says nothing of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How far a counter went. span_s: the part of the phase that it covers, normally all of it."""

    amount: float
    span_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseCut:
    """absent: source, or source/device/metric -> why it gives nothing. reasons: figure -> why None, or how it was got."""

    timeline: Timeline
    start_ns: int
    end_ns: int
    interval_s: float
    absent: Mapping[str, str]
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def duration_s(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def is_short(self) -> bool:
        """Shorter than the telemetry interval."""
        return self.duration_s < self.interval_s

    def short_phase_reason(self) -> str:
        return f"phase of {self.duration_s * 1e3:.0f} ms is shorter than the telemetry interval"

    def near(self, series: Series) -> tuple[float, ...]:
        """Values in the phase, or else the nearest on each side, not more than two intervals away."""
        gap_ns = int(self.interval_s * NEIGHBOUR_INTERVALS * 1e9)
        return series.within(self.start_ns, self.end_ns) or series.neighbours(
            self.start_ns, self.end_ns, max_gap_ns=gap_ns
        )

    def peak(self, figure: str, series: Series, *, may_use_neighbours: bool) -> float | None:
        values = series.within(self.start_ns, self.end_ns)
        if not values and may_use_neighbours and self.is_short:
            values = self.near(series)
            if values:
                self.reasons[figure] = (
                    f"no reading fell into the phase of {self.duration_s * 1e3:.0f} ms; "
                    "the nearest before and after it are used"
                )
        if not values:
            self.reasons[figure] = self._nothing_inside()
            return None
        return max(values)

    def mean(self, figure: str, series: Series) -> float | None:
        if self.is_short:
            self.reasons[figure] = self.short_phase_reason()
            return None
        values = series.within(self.start_ns, self.end_ns)
        if not values:
            self.reasons[figure] = self._nothing_inside()
            return None
        return statistics.fmean(values)

    def difference(
        self, figure: str, series: Series, *, may_end_early: bool = False
    ) -> Difference | None:
        """Counter at the end less counter at the start.

        may_end_early: accept a last reading up to one interval before the end, because the process was gone afterwards; the
        missing part is told among the reasons.
        """
        if self.is_short:
            self.reasons[figure] = self.short_phase_reason()
            return None
        at_start, end_ns = series.at(self.start_ns), self.end_ns
        if at_start is None:
            self.reasons[figure] = "no reading before the phase"
            return None
        at_end = series.at(end_ns)
        if at_end is None and may_end_early:
            end_ns = self._early_end(series)
            at_end = series.at(end_ns)
            missing_ms = (self.end_ns - end_ns) / 1e6
            self.reasons[figure] = f"without the last {missing_ms:.0f} ms of the phase"
        if at_end is None or end_ns <= self.start_ns:
            self.reasons[figure] = "no reading after the phase"
            return None
        if at_end < at_start:
            self.reasons[figure] = "the counter fell during the phase"
            return None
        return Difference(amount=at_end - at_start, span_s=(end_ns - self.start_ns) / 1e9)

    def why_absent(self, metric: str, sources: tuple[str, ...], device: str | None = None) -> str:
        """The best reason known for a sensor without readings."""
        exact = [
            reason
            for key, reason in self.absent.items()
            if key.count("/") == 2 and self._is_about(key, metric, sources, device)
        ]
        whole = [f"{name}: {self.absent[name]}" for name in sources if name in self.absent]
        return "; ".join(dict.fromkeys(exact or whole)) or f"no reading of {metric}"

    def _is_about(
        self, key: str, metric: str, sources: tuple[str, ...], device: str | None
    ) -> bool:
        its_source, its_device, its_metric = key.split("/")
        return (
            its_source in sources
            and its_metric in {metric, "*"}
            and (device is None or its_device == device)
        )

    def _nothing_inside(self) -> str:
        return f"no reading fell into the phase of {self.duration_s * 1e3:.0f} ms"

    def _early_end(self, series: Series) -> int:
        """Time of the last reading if it is late enough to stand for the end, else the start."""
        last_ns = series.times_ns[-1]
        return last_ns if self.end_ns - last_ns <= self.interval_s * 1e9 else self.start_ns
