"""Two samples that are not paired: the exact Mann–Whitney test, the Hodges–Lehmann shift and its exact interval.

Ties get midranks and the distribution is counted with them, so that the test stays exact; scipy's exact method is
that of untied values.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from llamasweep.stats.arrays import Floats, Ints

EXACT_VALUES = 60
"""Up to this many values on both sides together the distribution is counted, above it the normal approximation is used."""

TIE = 1e-9
"""Logs of rates closer than this are tied: rounding must not decide."""


def two_sided(a: Floats, b: Floats) -> float:
    """2 × the smaller tail of the rank sum of b among both, at most 1; 1 where a side is empty."""
    return min(1.0, 2 * min(greater(a, b), greater(b, a)))


def greater(a: Floats, b: Floats) -> float:
    """P(rank sum of b at least as large as seen) if both sides came from one source: small where b is above a."""
    n_a, n_b = len(a), len(b)
    if n_a == 0 or n_b == 0:
        return 1.0
    doubled = _doubled_midranks(np.concatenate([a, b]))
    observed = int(np.sum(doubled[n_a:]))
    if n_a + n_b > EXACT_VALUES:
        return _normal_tail(doubled, n_b, observed)
    chance = _rank_sum_chance(tuple(sorted(doubled.tolist())), n_b)
    return float(min(1.0, np.sum(chance[observed:])))


def shift(a: Floats, b: Floats) -> float:
    """Median of all differences b_j - a_i. Raises ValueError where a side is empty."""
    if len(a) == 0 or len(b) == 0:
        raise ValueError("an empty side has no shift")
    return float(np.median(b[:, None] - a[None, :]))


def interval(a: Floats, b: Floats, alpha: float) -> tuple[float, float] | None:
    """Exact interval of the shift with confidence at least 1 - alpha; None where so few values cannot give one.

    The differences b_j - a_i in order, with k left out at either end: the largest k with 2 P(U ≤ k) ≤ alpha.
    """
    k = n_trimmed(len(a), len(b), alpha)
    if k is None:
        return None
    differences = np.sort((b[:, None] - a[None, :]).ravel())
    return float(differences[k]), float(differences[len(differences) - 1 - k])


@lru_cache(maxsize=512)
def n_trimmed(n_a: int, n_b: int, alpha: float) -> int | None:
    """The largest k with 2 P(U ≤ k) ≤ alpha for samples of these sizes, None where there is none."""
    if n_a == 0 or n_b == 0:
        return None
    if n_a + n_b > EXACT_VALUES:
        spread = math.sqrt(n_a * n_b * (n_a + n_b + 1) / 12)
        k = math.floor(n_a * n_b / 2 - 0.5 + NormalDist().inv_cdf(alpha / 2) * spread)
        return k if k >= 0 else None
    ranks = tuple(2 * rank for rank in range(1, n_a + n_b + 1))
    chance = _rank_sum_chance(ranks, n_b)[n_b * (n_b + 1) :: 2]
    fits = np.flatnonzero(2 * np.cumsum(chance) <= alpha + 1e-12)
    return int(fits[-1]) if len(fits) else None


def _doubled_midranks(values: Floats) -> Ints:
    """2 × the rank of each value, ties sharing the mean of their ranks: always whole."""
    order = np.argsort(values, kind="stable")
    is_new = np.concatenate([[True], np.diff(values[order]) > TIE])
    group = np.cumsum(is_new) - 1
    sizes = np.bincount(group)
    ends = np.cumsum(sizes)
    doubled = (2 * ends - sizes + 1)[group]
    found = np.empty(len(values), dtype=np.int64)
    found[order] = doubled
    return found


@lru_cache(maxsize=512)
def _rank_sum_chance(doubled_ranks: tuple[int, ...], n_chosen: int) -> Floats:
    """Chance of each sum of n_chosen of these ranks, all choices equally likely. Index: the sum."""
    n_ways = np.zeros((n_chosen + 1, sum(doubled_ranks) + 1))
    n_ways[0, 0] = 1.0
    for rank in doubled_ranks:
        n_ways[1:, rank:] += n_ways[:-1, : n_ways.shape[1] - rank]
    return np.asarray(n_ways[n_chosen] / math.comb(len(doubled_ranks), n_chosen))


def _normal_tail(doubled: Ints, n_b: int, observed: int) -> float:
    """Normal approximation with the variance that ties leave and a correction for continuity."""
    n = len(doubled)
    ranks = doubled / 2
    variance = n_b * (n - n_b) / (n * (n - 1)) * float(np.sum((ranks - np.mean(ranks)) ** 2))
    if variance == 0:
        return 1.0
    z = (observed / 2 - 0.5 - n_b * (n + 1) / 2) / math.sqrt(variance)
    return 1 - NormalDist().cdf(z)
