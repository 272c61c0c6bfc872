"""Readings sorted into one series per sensor, and what can be asked of a series: peak, mean, value of a counter at a time.

Knows nothing of what a metric means. Times are Unix ns; nothing is ever filled in beyond the readings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from llamasweep.results.records import Reading

SensorKey = tuple[str, str, str]
"""source, device, metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One sensor's readings in the order of time."""

    times_ns: tuple[int, ...]
    values: tuple[float, ...]

    def within(self, start_ns: int, end_ns: int) -> tuple[float, ...]:
        """Values read at start <= time <= end."""
        low, high = bisect_left(self.times_ns, start_ns), bisect_right(self.times_ns, end_ns)
        return self.values[low:high]

    def neighbours(self, start_ns: int, end_ns: int, *, max_gap_ns: int) -> tuple[float, ...]:
        """The last value before start and the first after end, as far as they are near enough."""
        low, high = bisect_left(self.times_ns, start_ns), bisect_right(self.times_ns, end_ns)
        found = []
        if low > 0 and start_ns - self.times_ns[low - 1] <= max_gap_ns:
            found.append(self.values[low - 1])
        if high < len(self.times_ns) and self.times_ns[high] - end_ns <= max_gap_ns:
            found.append(self.values[high])
        return tuple(found)

    def at(self, time_ns: int) -> float | None:
        """Linear interpolation between the readings on both sides; None outside of them."""
        after = bisect_left(self.times_ns, time_ns)
        if after == len(self.times_ns):
            return None
        if self.times_ns[after] == time_ns:
            return self.values[after]
        if after == 0:
            return None
        t0, t1 = self.times_ns[after - 1], self.times_ns[after]
        v0, v1 = self.values[after - 1], self.values[after]
        return v0 + (v1 - v0) * ((time_ns - t0) / (t1 - t0))

    def integral_over_s(self) -> Series:
        """The rising area under the readings (trapezoids, in value x seconds): a power becomes an energy counter."""
        total, totals = 0.0, []
        for index, (time_ns, value) in enumerate(zip(self.times_ns, self.values, strict=True)):
            if index:
                width_s = (time_ns - self.times_ns[index - 1]) / 1e9
                total += width_s * (value + self.values[index - 1]) / 2
            totals.append(total)
        return Series(times_ns=self.times_ns, values=tuple(totals))


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """All readings of a group by sensor. Make it once and fold every cell of the group from it."""

    series: dict[SensorKey, Series]
    all_times_ns: tuple[int, ...] = field(repr=False)

    def of(self, metric: str, *, device: str) -> Series | None:
        """The series of a metric of one device, whichever source gave it; None where none did."""
        return next(
            (s for (_, d, m), s in self.series.items() if d == device and m == metric), None
        )

    def per_device(self, metric: str, sources: frozenset[str]) -> dict[tuple[str, str], Series]:
        """(source, device) -> series, of the sources named."""
        return {
            (source, device): series
            for (source, device, name), series in self.series.items()
            if name == metric and source in sources
        }

    def n_within(self, start_ns: int, end_ns: int) -> int:
        """Readings of all sensors at start <= time <= end."""
        return bisect_right(self.all_times_ns, end_ns) - bisect_left(self.all_times_ns, start_ns)


def make_timeline(readings: Iterable[Reading]) -> Timeline:
    """Readings in any order. Of two readings of a sensor at one time the later in the input counts."""
    by_sensor: dict[SensorKey, dict[int, float]] = defaultdict(dict)
    times_ns = []
    for reading in readings:
        key = (reading.source, reading.device, reading.metric)
        by_sensor[key][reading.time_ns] = reading.value
        times_ns.append(reading.time_ns)
    return Timeline(
        series={
            key: Series(
                times_ns=tuple(sorted(points)), values=tuple(points[t] for t in sorted(points))
            )
            for key, points in by_sensor.items()
        },
        all_times_ns=tuple(sorted(times_ns)),
    )
