"""Whether one row is faster than another: only where their ranges do not overlap and the medians differ by more than 3 %.

With fewer than two repetitions nothing is said of differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llamasweep.report.rows import Row

SAME_WITHIN = 0.03
"""Medians closer than this are treated as the same speed (the report's choice; the samples stay visible)."""

Verdict = Literal["faster", "slower", "same", "undecided"]


def compare(a: Row, b: Row) -> Verdict:
    """How a stands to b. Undecided: a large difference within the spread, or too few repetitions to see one."""
    if a.rates is None or b.rates is None:
        return "undecided"
    ratio = a.rates.median / b.rates.median
    if 1 / (1 + SAME_WITHIN) <= ratio <= 1 + SAME_WITHIN:
        return "same"
    lows_highs = (a.rates.low, a.rates.high, b.rates.low, b.rates.high)
    if min(a.rates.n_kept, b.rates.n_kept) < 2 or any(value is None for value in lows_highs):
        return "undecided"
    a_low, a_high, b_low, b_high = (float(value or 0.0) for value in lows_highs)
    if a_low > b_high:
        return "faster"
    if a_high < b_low:
        return "slower"
    return "undecided"


def median(row: Row) -> float:
    """Median rate in t/s, 0 where there is none (for sorting only)."""
    return row.rates.median if row.rates is not None else 0.0


def shallowest(rows: Sequence[Row]) -> list[Row]:
    """Rows at the least depth among them."""
    depth = min((row.attempt.n_depth for row in rows), default=0)
    return [row for row in rows if row.attempt.n_depth == depth]
