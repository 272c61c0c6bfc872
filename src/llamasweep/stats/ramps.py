"""Fits of a level that changes evenly between two builds and is constant before and after: a drift.

Least squares on logs without gaps; the ends of the drift are searched on a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from llamasweep.stats.arrays import Floats, Ints

LEAST_LENGTH = 5
"""A change within fewer points is a step."""

MOST_KNOTS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Ramp:
    """A drift from point start (still at the old level) to point end (at the new one), by `size` in logs.

    error: sum of squares that it leaves. size_error: standard error of size.
    """

    start: int
    end: int
    size: float
    size_error: float
    error: float


def line(values: Floats) -> Ramp:
    """The drift from the first to the last point."""
    n = len(values)
    return _best(values, np.array([0]), np.array([n - 1]))


def best_ramp(values: Floats) -> Ramp:
    """The drift that leaves the least error. Raises ValueError for too few points."""
    n = len(values)
    if n <= LEAST_LENGTH:
        raise ValueError(f"{n} points hold no drift of {LEAST_LENGTH}")
    stride = math.ceil((n - 1) / MOST_KNOTS)
    knots = np.unique(np.append(np.arange(0, n, stride), n - 1))
    first, second = np.triu_indices(len(knots), 1)
    starts, ends = knots[first], knots[second]
    is_long = ends - starts >= LEAST_LENGTH
    return _best(values, starts[is_long], ends[is_long])


def _best(values: Floats, starts: Ints, ends: Ints) -> Ramp:
    n = len(values)
    share = np.clip((np.arange(n)[None, :] - starts[:, None]) / (ends - starts)[:, None], 0.0, 1.0)
    share -= share.mean(axis=1, keepdims=True)
    centred = values - np.mean(values)
    power = np.sum(share**2, axis=1)
    sizes = share @ centred / power
    errors = np.maximum(float(np.sum(centred**2)) - sizes**2 * power, 0.0)
    best = int(np.argmin(errors))
    freedom = max(1, n - 2)
    return Ramp(
        start=int(starts[best]),
        end=int(ends[best]),
        size=float(sizes[best]),
        size_error=math.sqrt(float(errors[best]) / freedom / float(power[best])),
        error=float(errors[best]),
    )


def student_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t by Cornish and Fisher's series in 1 / freedom (Abramowitz and Stegun 26.7.5).

    Within 1 % of the true value at p = 0.975 from five degrees of freedom on.
    """
    z = NormalDist().inv_cdf(p)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
