"""Mann–Whitney and the shift of two samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from tests.unit.stats import slow

from llamasweep.stats import rank_sum


def test_three_against_three_by_hand() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    assert rank_sum.greater(a, b) == pytest.approx(1 / 20)
    assert rank_sum.greater(b, a) == 1.0
    assert rank_sum.two_sided(a, b) == pytest.approx(2 / 20)
    assert rank_sum.shift(a, b) == 3.0
    assert rank_sum.interval(a, b, 0.05) is None


@pytest.mark.parametrize("seed", range(10))
def test_it_equals_the_list_of_all_choices_with_ties(seed: int) -> None:
    draw = np.random.default_rng(seed)
    a = np.round(draw.normal(0, 1, size=2 + seed % 4))
    b = np.round(draw.normal(0.8, 1, size=5 - seed % 3))
    expected = slow.rank_sum_greater(a.tolist(), b.tolist())
    assert rank_sum.greater(a, b) == pytest.approx(expected, abs=1e-12)


def test_it_equals_scipy_without_ties() -> None:
    draw = np.random.default_rng(8)
    a, b = draw.normal(0, 1, size=9), draw.normal(0.9, 1, size=12)
    theirs = scipy_stats.mannwhitneyu(b, a, alternative="two-sided", method="exact")
    assert rank_sum.two_sided(a, b) == pytest.approx(float(theirs.pvalue), abs=1e-12)


def test_many_values_use_the_normal_approximation_of_scipy() -> None:
    draw = np.random.default_rng(9)
    a, b = np.round(draw.normal(0, 1, size=40), 1), np.round(draw.normal(0.4, 1, size=45), 1)
    theirs = scipy_stats.mannwhitneyu(b, a, alternative="greater", method="asymptotic")
    assert rank_sum.greater(a, b) == pytest.approx(float(theirs.pvalue), rel=1e-6)


@pytest.mark.parametrize(
    ("n_a", "n_b", "expected"),
    [(3, 4, None), (3, 5, 0), (5, 5, 2), (8, 8, 13), (20, 20, 127), (0, 4, None)],
)
def test_trims_are_those_of_the_printed_tables(n_a: int, n_b: int, expected: int | None) -> None:
    assert rank_sum.n_trimmed(n_a, n_b, 0.05) == expected


def test_the_approximate_trim_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = rank_sum.n_trimmed.__wrapped__(29, 30, 0.05)
    monkeypatch.setattr(rank_sum, "EXACT_VALUES", 10)
    assert rank_sum.n_trimmed.__wrapped__(29, 30, 0.05) == pytest.approx(exact, abs=1)


def test_an_empty_side_says_nothing() -> None:
    some, none = np.array([1.0]), np.array([])
    assert rank_sum.two_sided(some, none) == 1.0
    with pytest.raises(ValueError, match="empty side"):
        rank_sum.shift(some, none)


def test_equal_values_on_both_sides_are_no_evidence_either_way() -> None:
    assert rank_sum.two_sided(np.ones(6), np.ones(6)) == 1.0
    assert rank_sum.greater(np.ones(40), np.ones(40)) == 1.0
