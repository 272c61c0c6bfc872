"""Walsh averages, their median and the exact interval."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.stats import slow

from llamasweep.stats import walsh


def test_the_shift_of_three_values_by_hand() -> None:
    values = np.array([4.0, 1.0, 2.0])
    assert walsh.walsh_averages(values).tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
    assert walsh.shift(values) == 2.25


def test_the_signed_rank_distribution_of_three_by_hand() -> None:
    # Sums of subsets of {1, 2, 3}: 0, 1, 2, 3, 3, 4, 5, 6.
    assert walsh.signed_rank_tail(3) == tuple(k / 8 for k in (1, 2, 3, 5, 6, 7, 8))


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_signed_rank_distribution_equals_the_list_of_subsets(n: int) -> None:
    assert walsh.signed_rank_tail(n) == pytest.approx(slow.signed_rank_tail(n), abs=1e-12)


@pytest.mark.parametrize(
    ("n", "expected"), [(0, None), (5, None), (6, 0), (7, 2), (10, 8), (20, 52)]
)
def test_trims_are_those_of_the_printed_tables(n: int, expected: int | None) -> None:
    assert walsh.n_trimmed(n, 0.05) == expected


def test_the_interval_holds_the_shifts_that_the_signed_rank_test_allows() -> None:
    values = np.array([0.9, 2.1, 1.4, 0.2, 3.3, 1.7, 1.1, 2.8])
    found = walsh.interval(values, 0.05)
    assert found is not None
    tail = walsh.signed_rank_tail(len(values))

    def is_allowed(shift: float) -> bool:
        moved = values - shift
        ranks = np.argsort(np.argsort(np.abs(moved))) + 1
        least = min(int(ranks[moved > 0].sum()), int(ranks[moved < 0].sum()))
        return 2 * tail[least] > 0.05

    low, high = found
    assert [is_allowed(low - 1e-6), is_allowed(low + 1e-6)] == [False, True]
    assert [is_allowed(high - 1e-6), is_allowed(high + 1e-6)] == [True, False]


def test_nothing_has_no_shift() -> None:
    with pytest.raises(ValueError, match="no differences"):
        walsh.shift(np.array([]))
