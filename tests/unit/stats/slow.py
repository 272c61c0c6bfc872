"""Slow, obvious versions of what `llamasweep.stats` counts cleverly: every pattern, every choice, every cut."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence


def sign_flip_greater(d: Sequence[float]) -> float:
    """Share of sign patterns whose sum is at least the one seen."""
    seen = sum(d) - 1e-9 * sum(map(abs, d))
    sums = [
        sum(s * abs(x) for s, x in zip(signs, d, strict=True))
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    return sum(total >= seen for total in sums) / len(sums)


def sign_flip_two_sided(d: Sequence[float]) -> float:
    """Share of sign patterns whose sum is at least as far from 0 as the one seen."""
    seen = abs(sum(d)) - 1e-9 * sum(map(abs, d))
    sums = [
        abs(sum(s * abs(x) for s, x in zip(signs, d, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    return sum(total >= seen for total in sums) / len(sums)


def midranks(values: Sequence[float]) -> list[float]:
    """1 + how many are less + half of how many others are equal."""
    return [1 + sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values]


def rank_sum_greater(a: Sequence[float], b: Sequence[float]) -> float:
    """Share of choices of len(b) values whose rank sum is at least that of b."""
    ranks = midranks([*a, *b])
    seen = sum(ranks[len(a) :])
    choices = list(itertools.combinations(ranks, len(b)))
    return sum(sum(choice) >= seen for choice in choices) / len(choices)


def signed_rank_tail(n: int) -> list[float]:
    """P(W ≤ w) by listing all subsets of ranks."""
    sums = [
        sum(ranks)
        for size in range(n + 1)
        for ranks in itertools.combinations(range(1, n + 1), size)
    ]
    return [sum(s <= w for s in sums) / 2**n for w in range(n * (n + 1) // 2 + 1)]


def best_fit(values: Sequence[float], n_steps: int) -> tuple[float, tuple[int, ...]]:
    """Least sum of squares over all places of the steps, stretches of three at least."""
    n = len(values)
    fits = []
    for steps in itertools.combinations(range(3, n - 2), n_steps):
        bounds = [0, *steps, n]
        parts = [values[a:b] for a, b in itertools.pairwise(bounds)]
        if min(map(len, parts)) >= 3:
            error = sum((x - statistics.fmean(part)) ** 2 for part in parts for x in part)
            fits.append((error, steps))
    return min(fits)
