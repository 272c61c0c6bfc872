"""The Hodges–Lehmann shift of paired differences and its exact interval, from the Walsh averages.

The interval is the set of shifts that the Wilcoxon signed-rank test does not reject (Hodges and Lehmann, 1963).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from llamasweep.stats.arrays import Floats


def walsh_averages(values: Floats) -> Floats:
    """(x_i + x_j) / 2 of all pairs i ≤ j along the last axis, sorted: n (n + 1) / 2 of them."""
    first, second = np.triu_indices(values.shape[-1])
    return np.asarray(np.sort((values[..., first] + values[..., second]) / 2, axis=-1))


def shift(values: Floats) -> float:
    """Median of the Walsh averages. Raises ValueError of nothing."""
    if len(values) == 0:
        raise ValueError("no differences, no shift")
    return float(np.median(walsh_averages(values)))


@lru_cache(maxsize=256)
def signed_rank_tail(n: int) -> tuple[float, ...]:
    """P(W ≤ w) for w = 0, 1, …: W is the sum of the ranks 1 … n that have a minus, each with probability ½, no ties."""
    chance = np.zeros(n * (n + 1) // 2 + 1)
    chance[0] = 1.0
    for rank in range(1, n + 1):
        moved = np.zeros_like(chance)
        moved[rank:] = chance[: len(chance) - rank]
        chance = (chance + moved) / 2
    return tuple(np.cumsum(chance).tolist())


def n_trimmed(n: int, alpha: float) -> int | None:
    """How many Walsh averages to leave out at either end for an interval that misses with probability ≤ alpha.

    The largest k with 2 P(W ≤ k) ≤ alpha. None where not even the full range of n values is that sure: below six
    values for alpha = 0.05.
    """
    fits = [k for k, p in enumerate(signed_rank_tail(n)) if 2 * p <= alpha + 1e-12]
    return fits[-1] if fits and n > 0 else None


def interval(values: Floats, alpha: float) -> tuple[float, float] | None:
    """Exact interval of the shift with confidence at least 1 - alpha; None where so few values cannot give one."""
    k = n_trimmed(len(values), alpha)
    return None if k is None else trimmed_range(values, k)


def trimmed_range(values: Floats, k: int) -> tuple[float, float]:
    """Least and greatest Walsh average after leaving out k at either end."""
    averages = walsh_averages(values)
    return float(averages[k]), float(averages[len(averages) - 1 - k])
