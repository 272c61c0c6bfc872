"""Many cells tested at once: Holm for what may raise an alarm, Benjamini–Hochberg for what is shown."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """p adjusted so that rejecting those ≤ alpha errs anywhere with probability ≤ alpha (Holm, 1979); order kept.

    The i-th smallest of m becomes the running maximum of (m - i + 1) p_i, at most 1.
    """
    _check(p_values)
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for place, index in enumerate(_ascending(p_values)):
        running = max(running, (len(p_values) - place) * p_values[index])
        adjusted[index] = min(1.0, running)
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """p adjusted so that of those ≤ q a share of at most q is expected to be false (1995); order kept.

    The i-th smallest of m becomes the running minimum, from the largest down, of (m / i) p_i.
    """
    _check(p_values)
    adjusted = [1.0] * len(p_values)
    running = 1.0
    ascending = _ascending(p_values)
    for rank in range(len(p_values), 0, -1):
        index = ascending[rank - 1]
        running = min(running, len(p_values) / rank * p_values[index])
        adjusted[index] = running
    return adjusted


def _ascending(p_values: Sequence[float]) -> list[int]:
    return sorted(range(len(p_values)), key=lambda index: p_values[index])


def _check(p_values: Sequence[float]) -> None:
    wrong = [p for p in p_values if not 0 <= p <= 1]
    if wrong:
        raise ValueError(f"not probabilities: {wrong}")
