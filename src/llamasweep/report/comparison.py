"""Whether one row is faster than another, by the rule of `results.contenders`, and which rows are spoken of."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report.rows import Row
from llamasweep.results.contenders import SAME_WITHIN, Rate, Verdict
from llamasweep.results.contenders import compare as compare_rates
from llamasweep.results.request_load import RequestLoad, request_load
from llamasweep.results.request_load import least_load as least_load_of

__all__ = [
    "SAME_WITHIN",
    "Verdict",
    "compare",
    "is_repeated",
    "least_load",
    "load",
    "median",
    "shallowest",
]


def compare(a: Row, b: Row) -> Verdict:
    """How a stands to b. Undecided: a large difference within the spread, too few repetitions to see one, or no rate."""
    if a.rates is None or b.rates is None:
        return "undecided"
    first, second = (
        Rate(median=one.median, std=one.std, low=one.low, high=one.high, n=one.n_kept)
        for one in (a.rates, b.rates)
    )
    return compare_rates(first, second)


def is_repeated(*rows: Row) -> bool:
    """Whether each has two repetitions or more: a single one shows no spread, and so decides nothing."""
    return all(row.rates is not None and row.rates.n_kept > 1 for row in rows)


def median(row: Row) -> float:
    """Median rate in t/s, 0 where there is none (for sorting only)."""
    return row.rates.median if row.rates is not None else 0.0


def load(row: Row) -> RequestLoad:
    """What the row asked at once."""
    return request_load(row.settings)


def least_load(rows: Sequence[Row]) -> list[Row]:
    """Rows of one new request, or of the least load where no row asks for that."""
    return least_load_of(rows, load)


def shallowest(rows: Sequence[Row]) -> list[Row]:
    """Rows at the least depth among them."""
    depth = min((row.attempt.n_depth for row in rows), default=0)
    return [row for row in rows if row.attempt.n_depth == depth]
