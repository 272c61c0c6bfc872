"""Whether one row is faster than another: only where their ranges do not overlap and the medians differ by more than 3 %.

With fewer than two repetitions nothing is said of differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llamasweep.report.rows import Rates, Row

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
    a_range, b_range = _range(a.rates), _range(b.rates)
    if a_range is None or b_range is None:
        return "undecided"
    (a_low, a_high), (b_low, b_high) = a_range, b_range
    if a_low > b_high:
        return "faster"
    if a_high < b_low:
        return "slower"
    return "undecided"


def _range(rates: Rates) -> tuple[float, float] | None:
    """Slowest and fastest kept repetition; None where fewer than two were kept or an end is not known."""
    if rates.n_kept < 2 or rates.low is None or rates.high is None:
        return None
    return rates.low, rates.high


def median(row: Row) -> float:
    """Median rate in t/s, 0 where there is none (for sorting only)."""
    return row.rates.median if row.rates is not None else 0.0


def shallowest(rows: Sequence[Row]) -> list[Row]:
    """Rows at the least depth among them."""
    depth = min((row.attempt.n_depth for row in rows), default=0)
    return [row for row in rows if row.attempt.n_depth == depth]
