"""The sign-flip test of paired differences: how often do random signs give a sum as large as the one seen?

Where the order within each round was drawn, the signs are random if the builds are equal, whatever the noise is: the
test assumes neither a distribution nor independent rounds. Knows nothing of floors and verdicts.
"""

from __future__ import annotations

import numpy as np

from llamasweep.stats.arrays import Floats

EXACT_ROUNDS = 28
"""Up to here all 2^n sign patterns are counted: those of each half of the rounds are listed (2^14) and joined by sorting."""

MONTE_CARLO_PATTERNS = 100_000
SEED = 20_260_719

RELATIVE_TIE = 1e-9
"""Sums closer than this share of Σ|d| are equal: rounding must not decide."""


def two_sided(differences: Floats) -> float:
    """P(|Σ ±d| ≥ |Σ d|) over all signs; 1 of nothing.

    Exact up to `EXACT_ROUNDS`; above that (1 + hits) / (1 + patterns) of seeded random patterns, which is never 0
    (Phipson and Smyth, 2010). The order of the rounds does not matter.
    """
    return _share(differences, abs(float(np.sum(differences))), is_two_sided=True)


def greater(differences: Floats) -> float:
    """P(Σ ±d ≥ Σ d) over all signs: small where the differences are above 0. 1 of nothing."""
    return _share(differences, float(np.sum(differences)), is_two_sided=False)


def _share(differences: Floats, observed: float, *, is_two_sided: bool) -> float:
    sizes = np.sort(np.abs(differences))
    bound = observed - RELATIVE_TIE * float(np.sum(sizes))
    if len(sizes) == 0 or (is_two_sided and bound <= 0):
        return 1.0
    if len(sizes) > EXACT_ROUNDS:
        return _random_share(sizes, bound, is_two_sided=is_two_sided)
    half = len(sizes) // 2
    left, right = all_sums(sizes[half:]), np.sort(all_sums(sizes[:half]))
    n_above = int(np.sum(len(right) - np.searchsorted(right, bound - left, side="left")))
    share = n_above / (len(left) * len(right))
    return min(1.0, 2 * share) if is_two_sided else share


def all_sums(sizes: Floats) -> Floats:
    """Σ ±size for all 2^n signs, in no useful order."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _random_share(sizes: Floats, bound: float, *, is_two_sided: bool) -> float:
    draw = np.random.default_rng(SEED)
    n_hits, n_done, block = 0, 0, 10_000
    while n_done < MONTE_CARLO_PATTERNS:
        signs = draw.integers(0, 2, size=(block, len(sizes)), dtype=np.int8)
        sums = 2 * (signs @ sizes) - np.sum(sizes)
        n_hits += int(np.count_nonzero((np.abs(sums) if is_two_sided else sums) >= bound))
        n_done += block
    return (1 + n_hits) / (1 + n_done)
