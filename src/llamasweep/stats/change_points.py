"""Where a series of speeds changed: steps, spikes and drifts, each with its size, an interval and the points around it.

Spikes are set aside first, then odd builds that only look like a level, then the number of steps is chosen, then steps that
an even drift explains better become one. Knows one series in order; which points may stand in one series is said by `series`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from llamasweep.stats import rank_sum
from llamasweep.stats.arrays import Bools, Floats, Ints
from llamasweep.stats.odd_builds import first_odd
from llamasweep.stats.ramps import Ramp, best_ramp, line, student_quantile
from llamasweep.stats.rounds import Rate, is_usable
from llamasweep.stats.segments import LEAST_POINTS, chosen_fit, step_penalty
from llamasweep.stats.spikes import (
    LEAST_SIGMA,
    NEIGHBOURS,
    aside_threshold,
    far_points,
    neighbours,
    scatter,
    spike_threshold,
)

Kind = Literal["step", "spike", "drift"]

ALPHA = 0.05
DRIFT_PENALTY_SHARE = 2.0
"""A drift has two ends where a step has one place."""

LINE_PENALTY_SHARE = 1.1
"""A drift over a whole stretch has no place to choose; a little more than a step, which wins where both explain alike."""

LINE_PENALTY = 10.0
"""2 ln likelihood that a drift over the whole series must gain: by chance 1 clean series in 600 does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint:
    """One change. Indices count the values as handed in, gaps included.

    index: first point after the change; of a spike, its first odd point; of a drift, the first point under way.
    last_index: last point of the new level, the spike or the drift. before_index: last measured point before index,
    None where there is none. ratio: new level ÷ old level (of a drift: its end ÷ its start). low, high: 95 % interval
    of the ratio; None where the points are too few for one.
    """

    index: int
    kind: Kind
    ratio: float
    low: float | None
    high: float | None
    before_index: int | None
    last_index: int


def change_points(values_tps: Sequence[Rate]) -> list[ChangePoint]:
    """The changes of a series of speeds in its order, by index.

    None, NaN and values that are not above 0 or not finite are gaps: they are left out, not filled. Fewer than six
    points give no step; a step needs three points on either side. A step has no interval where both its levels
    together have too few points for one (three and four).
    """
    places = np.array([i for i, v in enumerate(values_tps) if is_usable(v)], dtype=np.int64)
    logs = np.array([math.log(v) for v in values_tps if v is not None and is_usable(v)])
    if len(logs) < 2 * LEAST_POINTS:
        return []
    is_spike = far_points(logs, spike_threshold(len(logs)))
    is_aside = far_points(logs, aside_threshold(len(logs))) | is_spike
    while (odd := first_odd(logs, np.flatnonzero(~is_aside))) is not None:
        is_aside[odd.at] = True
        is_spike[odd.at] |= odd.is_far
    kept = np.flatnonzero(~is_aside)
    levels = [
        _begun_earlier(change, logs, places, is_aside & ~is_spike)
        for change in _level_changes(logs[kept], places[kept])
    ]
    found = [*levels, *_spike_values(logs, places, is_spike)]
    return sorted((_with_before(c, places) for c in found), key=lambda c: (c.index, c.kind))


def _begun_earlier(
    change: ChangePoint, logs: Floats, places: Ints, is_only_aside: Bools
) -> ChangePoint:
    """A step whose first points were set aside as far ones, but are on the new level's side, begins with them."""
    if change.kind != "step":
        return change
    at = int(np.searchsorted(places, change.index))
    new = float(np.median(logs[at : at + NEIGHBOURS]))
    middle = new - math.log(change.ratio) / 2
    first = at
    while first > 0 and is_only_aside[first - 1] and (logs[first - 1] > middle) == (new > middle):
        first -= 1
    return replace(change, index=int(places[first]))


def _with_before(change: ChangePoint, places: Ints) -> ChangePoint:
    earlier = places[places < change.index]
    return replace(change, before_index=int(earlier[-1]) if len(earlier) else None)


def _level_changes(logs: Floats, places: Ints) -> list[ChangePoint]:
    """Steps and drifts of a series without gaps and spikes."""
    n = len(logs)
    if n < 2 * LEAST_POINTS:
        return []
    error, steps = chosen_fit(logs)
    least = n * LEAST_SIGMA**2
    if not steps:
        whole = line(logs)
        gain = n * math.log(max(error, least) / max(whole.error, least))
        return [_drift(whole, 0, n, places)] if gain > LINE_PENALTY else []
    levels = _Levels(logs, steps)
    drifts = [found for run in levels.runs() if (found := _better_drift(levels, run, error, least))]
    return _described(levels, drifts, places)


class _Levels:
    """Stretches between steps."""

    def __init__(self, logs: Floats, steps: tuple[int, ...]) -> None:
        self.logs, self.steps = logs, steps
        self.bounds = [0, *steps, len(logs)]
        means = [
            float(np.mean(logs[a:b])) for a, b in zip(self.bounds, self.bounds[1:], strict=False)
        ]
        self.is_up = [after > before for before, after in itertools.pairwise(means)]

    def runs(self) -> list[tuple[int, int]]:
        """(first, last) number of the steps of each longest run in one direction."""
        runs: list[tuple[int, int]] = []
        for number, is_up in enumerate(self.is_up):
            if runs and self.is_up[runs[-1][1]] == is_up:
                runs[-1] = (runs[-1][0], number)
            else:
                runs.append((number, number))
        return runs

    def error(self, run: tuple[int, int]) -> float:
        """Sum of squares about the levels before, between and after the steps of a run."""
        edges = self.bounds[run[0] : run[1] + 3]
        parts = [self.logs[a:b] for a, b in itertools.pairwise(edges)]
        return float(sum(np.sum((part - np.mean(part)) ** 2) for part in parts))


def _better_drift(
    levels: _Levels, run: tuple[int, int], error: float, least: float
) -> tuple[tuple[int, int], int, Ramp] | None:
    """(run, start of the stretch, drift) where one drift explains the stretch better than the steps of the run."""
    start, end = levels.bounds[run[0]], levels.bounds[run[1] + 2]
    stretch = levels.logs[start:end]
    ramp = best_ramp(stretch)
    n, penalty = len(levels.logs), step_penalty(len(levels.logs))

    def cost(drift: Ramp, n_places: float) -> float:
        with_drift = error - levels.error(run) + drift.error
        return n * math.log(max(with_drift, least) / max(error, least)) + n_places * penalty

    shares = ((line(stretch), LINE_PENALTY_SHARE), (ramp, DRIFT_PENALTY_SHARE))
    least_cost, drift = min(((cost(r, share), r) for r, share in shares), key=lambda c: c[0])
    return (run, start, drift) if least_cost < (run[1] - run[0] + 1) * penalty else None


def _described(
    levels: _Levels, drifts: list[tuple[tuple[int, int], int, Ramp]], places: Ints
) -> list[ChangePoint]:
    gone = {number for (first, last), _, _ in drifts for number in range(first, last + 1)}
    edges = {0, len(levels.logs)}
    edges |= {step for number, step in enumerate(levels.steps) if number not in gone}
    for _, start, ramp in drifts:
        edges |= {start + ramp.start + 1, start + ramp.end}
    found = [
        _step(levels.logs, step, sorted(edges), places)
        for number, step in enumerate(levels.steps)
        if number not in gone
    ]
    for (_, last), start, ramp in drifts:
        found.append(_drift(ramp, start, levels.bounds[last + 2], places))
    return found


def _step(logs: Floats, step: int, edges: list[int], places: Ints) -> ChangePoint:
    start = min(max(e for e in edges if e < step), step - LEAST_POINTS)
    end = max(min(e for e in edges if e > step), step + LEAST_POINTS)
    before, after = logs[max(0, start) : step], logs[step:end]
    limits = rank_sum.interval(before, after, ALPHA)
    return ChangePoint(
        index=int(places[step]),
        kind="step",
        ratio=math.exp(rank_sum.shift(before, after)),
        low=None if limits is None else math.exp(limits[0]),
        high=None if limits is None else math.exp(limits[1]),
        before_index=None,
        last_index=int(places[min(end, len(places)) - 1]),
    )


def _drift(ramp: Ramp, start: int, end: int, places: Ints) -> ChangePoint:
    width = student_quantile(1 - ALPHA / 2, max(1, end - start - 2)) * ramp.size_error
    return ChangePoint(
        index=int(places[start + ramp.start + 1]),
        kind="drift",
        ratio=math.exp(ramp.size),
        low=math.exp(ramp.size - width),
        high=math.exp(ramp.size + width),
        before_index=None,
        last_index=int(places[start + ramp.end]),
    )


def _spike_values(logs: Floats, places: Ints, is_spike: Bools) -> list[ChangePoint]:
    """One value per run of neighbouring odd points, against the three levels on either side."""
    found: list[ChangePoint] = []
    kept = np.flatnonzero(~is_spike)
    for run in neighbours(is_spike):
        around = np.concatenate(
            [kept[kept < run[0]][-NEIGHBOURS:], kept[kept > run[-1]][:NEIGHBOURS]]
        )
        size = float(np.median(logs[run]) - np.median(logs[around]))
        spread = scatter(logs[kept]) * math.sqrt(1 / len(run) + math.pi / 2 / len(around))
        width = student_quantile(1 - ALPHA / 2, max(2, len(kept) // 2)) * spread
        found.append(
            ChangePoint(
                index=int(places[run[0]]),
                kind="spike",
                ratio=math.exp(size),
                low=math.exp(size - width),
                high=math.exp(size + width),
                before_index=None,
                last_index=int(places[run[-1]]),
            )
        )
    return found
