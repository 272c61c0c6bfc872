"""Points that stand out for one or two builds and are gone again: set aside before steps are looked for.

A point is a spike where it lies far from the level before and from the level after, to the same side of both. At the
end of a series only the level before is known, so that one or two odd builds there count as a spike until a third
confirms a step. Knows values without gaps.
"""

from __future__ import annotations

import math

import numpy as np

from llamasweep.results.rates import MAD_TO_SIGMA
from llamasweep.stats.arrays import Bools, Floats, Ints

NEIGHBOURS = 3
FEWEST_POINTS = 6

ODD_BUILDS = 2
"""So many neighbouring builds may be odd without being a level."""

LEAST_SIGMA = 2e-4
"""In logs: no machine repeats to better than 0.02 %; values that scatter less were rounded."""


def scatter(values: Floats) -> float:
    """Standard deviation of one point, from the median size of the differences of neighbours: steps hardly move it.

    1.4826 median|x_(i+1) - x_i| / √2; 0 of fewer than two points.
    """
    if len(values) < 2:
        return 0.0
    return MAD_TO_SIGMA * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2)


def aside_threshold(n: int) -> float:
    """How many standard deviations off both levels a point of a series of n is set aside.

    About 1 in 5 clean series has such a point; leaving it out costs next to nothing.
    """
    return 3.4 + 10.0 / n


def spike_threshold(n: int) -> float:
    """How many standard deviations off both levels a point is called a spike.

    Fitted to simulated clean series, of which fewer than 1 in 100 has a point as far off: with few points the scatter
    itself is poorly known.
    """
    return 4.6 + 18.0 / n


def far_points(values: Floats, n_sigmas: float) -> Bools:
    """Which points lie farther off both levels than n_sigmas of the scatter. None in fewer than six points.

    The farthest is set aside first and the others are judged without it, so that two neighbours are both found. Three neighbours
    or more are no spike: they may be a level, and are left for steps to be looked for.
    """
    is_spike = np.zeros(len(values), dtype=np.bool_)
    if len(values) < FEWEST_POINTS:
        return is_spike
    limit = n_sigmas * max(scatter(values), LEAST_SIGMA)
    most = min(len(values) // NEIGHBOURS, len(values) - FEWEST_POINTS + 1)
    while np.count_nonzero(is_spike) < most:
        kept = np.flatnonzero(~is_spike)
        far = distances(values[kept])
        worst = int(np.argmax(far))
        if not far[worst] > limit:
            break
        is_spike[kept[worst]] = True
    for run in neighbours(is_spike):
        is_spike[run] &= len(run) <= ODD_BUILDS
    return is_spike


def neighbours(is_chosen: Bools) -> list[Ints]:
    """The indices of the chosen points, those that follow one another together."""
    chosen = np.flatnonzero(is_chosen)
    return np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1) if len(chosen) else []


def distances(values: Floats) -> Floats:
    """How far each point lies off the nearer of the levels before and after it; 0 where it lies between them.

    A level is the median of the three nearest points of that side. The first and the last point have one side. Raises ValueError
    of three points or fewer.
    """
    n = len(values)
    if n <= NEIGHBOURS:
        raise ValueError(f"{n} points have no levels around them")
    before, after = np.empty(n), np.empty(n)
    windows = np.median(np.lib.stride_tricks.sliding_window_view(values, NEIGHBOURS), axis=1)
    before[NEIGHBOURS:], after[: n - NEIGHBOURS] = windows[:-1], windows[1:]
    for i in range(1, NEIGHBOURS):
        before[i] = np.median(values[:i])
        after[n - 1 - i] = np.median(values[n - i :])
    before[0], after[n - 1] = after[0], before[n - 1]
    off_before, off_after = values - before, values - after
    nearer = np.minimum(np.abs(off_before), np.abs(off_after))
    return np.asarray(np.where(off_before * off_after < 0, 0.0, nearer))
