"""Read bandwidth over threads and page sizes, and the knee: the fewest threads that get it all.

Settings take turns in passes, so that a machine that drifts drifts for all of them. Pure but for the
one function that measures, which can be replaced.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from llamasweep.machine.bandwidth import Bandwidth
from llamasweep.machine.readers import Pages

KNEE_FRACTION = 0.95
HUGE_ENOUGH = 0.5
"""Less of the memory on huge pages than this, and the figure is none of huge pages."""

Measure = Callable[[int, Pages], Sequence[Bandwidth]]
"""(threads, pages) -> figures of one setting, measured once by each method."""

OnStep = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryCurve:
    """One figure per method, number of threads and kind of pages, pooled over the passes.

    points: sorted by pages, then threads, then method. is_bisected: the knee was searched between the powers of
    two as well.
    """

    points: tuple[Bandwidth, ...]
    is_bisected: bool = False

    @property
    def best(self) -> Bandwidth:
        """The fastest point."""
        return max(self.points, key=lambda point: point.best_bytes_per_s)

    def of(self, pages: Pages, method: str | None = None) -> tuple[Bandwidth, ...]:
        """The points of one kind of pages, by threads. method: None = that of the fastest point."""
        method = method or self.best.method
        return tuple(p for p in self.points if p.pages == pages and p.method == method)

    @property
    def methods(self) -> tuple[str, ...]:
        """Ways of reading that were measured."""
        return tuple(dict.fromkeys(point.method for point in self.points))

    @property
    def kinds(self) -> tuple[Pages, ...]:
        """Kinds of pages that were measured."""
        return tuple(dict.fromkeys(point.pages for point in self.points))

    @property
    def knee_threads(self) -> int | None:
        """Fewest threads whose best round reaches 95 % of the best; of the fastest pages and method.

        None where only one number of threads was measured.
        """
        points = self.of(self.best.pages)
        if len(points) < 2:
            return None
        enough = KNEE_FRACTION * self.best.best_bytes_per_s
        return min(p.n_threads for p in points if p.best_bytes_per_s >= enough)

    def warnings(self) -> list[str]:
        """What makes the figures doubtful, as sentences."""
        found = []
        if self.best.is_noisy:
            share = self.best.median_bytes_per_s / self.best.best_bytes_per_s
            found.append(
                f"the median of the rounds is {share:.0%} of the best: something else used the memory "
                "meanwhile; the best is what the memory can do, if anything was quiet at all"
            )
        few = [
            point.huge_fraction
            for point in self.of("huge")
            if point.huge_fraction is not None and point.huge_fraction < HUGE_ENOUGH
        ]
        if few:
            found.append(
                f"huge pages were asked for, but down to {min(few):.0%} of the memory got them "
                "(/sys/kernel/mm/transparent_hugepage/enabled, or memory too fragmented)"
            )
        return found


@dataclass(kw_only=True, slots=True)
class _Pool:
    """All rounds of one setting, so far as figures tell them: the best, and each pass's median."""

    passes: list[Sequence[Bandwidth]] = field(default_factory=list)

    def joined(self) -> list[Bandwidth]:
        """One point per method."""
        return [_joined(of_method) for of_method in zip(*self.passes, strict=True)]


def _joined(passes: Sequence[Bandwidth]) -> Bandwidth:
    shares = [p.huge_fraction for p in passes if p.huge_fraction is not None]
    return replace(
        passes[0],
        best_bytes_per_s=max(p.best_bytes_per_s for p in passes),
        median_bytes_per_s=statistics.median(p.median_bytes_per_s for p in passes),
        n_rounds=sum(p.n_rounds for p in passes),
        huge_fraction=min(shares, default=None),
    )


def thread_counts(n_cores: int) -> tuple[int, ...]:
    """1, 2, 4 … up to all cores, which are always among them."""
    counts = [1]
    while counts[-1] * 2 <= n_cores:
        counts.append(counts[-1] * 2)
    return tuple(dict.fromkeys([*counts, n_cores]))


def measure_curve(
    measure: Measure,
    settings: Iterable[tuple[int, Pages]],
    *,
    n_passes: int,
    is_bisecting: bool,
    on_step: OnStep,
) -> MemoryCurve:
    """Measure all settings n_passes times in turns, then look for the knee between two of them."""
    pools: dict[tuple[int, Pages], _Pool] = {setting: _Pool() for setting in settings}
    for n_pass in range(1, n_passes + 1):
        for setting, pool in pools.items():
            on_step(f"pass {n_pass} of {n_passes}: {shown(setting)}")
            pool.passes.append(measure(*setting))
    if is_bisecting:
        _bisect(measure, pools, n_passes, on_step)
    points = [point for pool in pools.values() for point in pool.joined()]
    order = list(dict.fromkeys(pages for _, pages in pools))
    points.sort(key=lambda point: (order.index(point.pages), point.n_threads))
    return MemoryCurve(points=tuple(points), is_bisected=is_bisecting)


def shown(setting: tuple[int, Pages]) -> str:
    """`4 threads, huge pages`."""
    n_threads, pages = setting
    of = {"huge": "huge pages", "4 KiB": "4 KiB pages", "system": "the system's pages"}[pages]
    return f"{n_threads} thread{'s' if n_threads > 1 else ''}, {of}"


def _bisect(
    measure: Measure,
    pools: dict[tuple[int, Pages], _Pool],
    n_passes: int,
    on_step: OnStep,
) -> None:
    """Halve the gap below the knee until it has no number of threads left in it."""
    while True:
        curve = MemoryCurve(points=tuple(p for pool in pools.values() for p in pool.joined()))
        knee = curve.knee_threads
        if knee is None:
            return
        pages = curve.best.pages
        below = max((p.n_threads for p in curve.of(pages) if p.n_threads < knee), default=knee)
        middle = (below + knee) // 2
        if middle in (below, knee):
            return
        on_step(f"the knee: {shown((middle, pages))}")
        pools[(middle, pages)] = _Pool(passes=[measure(middle, pages) for _ in range(n_passes)])
