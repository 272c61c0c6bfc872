"""Fewer readings that still tell the truth: extremes survive, nothing is invented. Pure; knows nothing of what is read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from llamasweep.results.timeline import Series

GAP_INTERVALS = 5.0
"""A pause of more than this many usual intervals is shown as a pause, not bridged by a line."""
LEAST_GAP_NS = 1_000_000_000


def decimated(series: Series, n_buckets: int) -> Series:
    """At most 2 readings of each of `n_buckets` equal spans of time, its first lowest and its first highest, and the two
    ends of the series. Each is a reading at its own time; a series that is short enough comes back whole.

    Raises ValueError for less than one bucket.
    """
    if n_buckets < 1:
        raise ValueError(f"{n_buckets} buckets")
    times, values = series.times_ns, series.values
    if len(times) <= 2 * n_buckets + 2:
        return series
    kept = {0, len(times) - 1}
    for indices in buckets(times, n_buckets):
        kept.add(min(indices, key=lambda index: (values[index], index)))
        kept.add(max(indices, key=lambda index: (values[index], -index)))
    order = sorted(kept)
    return Series(times_ns=tuple(times[i] for i in order), values=tuple(values[i] for i in order))


def buckets(times_ns: Sequence[int], n_buckets: int) -> list[list[int]]:
    """Indices of the readings in each of `n_buckets` equal spans from the first to the last; spans without any left out."""
    if not times_ns:
        return []
    start_ns, width_ns = times_ns[0], times_ns[-1] - times_ns[0] + 1
    found: dict[int, list[int]] = {}
    for index, time_ns in enumerate(times_ns):
        found.setdefault((time_ns - start_ns) * n_buckets // width_ns, []).append(index)
    return list(found.values())


def rates(counter: Series, least_span_ns: int) -> Series:
    """How fast a counter rose, per second, over spans of at least `least_span_ns`, each at its middle.

    A span in which it fell (a child of the process ended, the counter wrapped) gives no value.
    """
    times, values = [], []
    since = 0
    for index, time_ns in enumerate(counter.times_ns):
        start_ns = counter.times_ns[since]
        risen = counter.values[index] - counter.values[index - 1] if index else 0.0
        if risen < 0:
            since = index
        elif time_ns - start_ns >= max(1, least_span_ns):
            width_ns = time_ns - start_ns
            times.append(start_ns + width_ns // 2)
            values.append((counter.values[index] - counter.values[since]) / width_ns * 1e9)
            since = index
    return Series(times_ns=tuple(times), values=tuple(values))


def pieces(series: Series) -> tuple[Series, ...]:
    """The series cut where its readings paused, so that no line bridges a gap."""
    times = series.times_ns
    if len(times) < 2:
        return (series,) if times else ()
    widths = [after - before for before, after in pairwise(times)]
    most_ns = max(LEAST_GAP_NS, GAP_INTERVALS * statistics.median(widths))
    cuts = [0, *(i + 1 for i, width in enumerate(widths) if width > most_ns), len(times)]
    return tuple(
        Series(times_ns=times[low:high], values=series.values[low:high])
        for low, high in pairwise(cuts)
    )


def finite(series: Series) -> Series:
    """The readings that are numbers."""
    kept = [
        (time_ns, value)
        for time_ns, value in zip(series.times_ns, series.values, strict=True)
        if math.isfinite(value)
    ]
    return Series(times_ns=tuple(t for t, _ in kept), values=tuple(v for _, v in kept))
