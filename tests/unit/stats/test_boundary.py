"""The group-sequential sign-flip test spends exactly what it may, and the interval that goes with it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from llamasweep.stats import spending
from llamasweep.stats.arrays import Floats, Ints
from llamasweep.stats.boundary import Boundary, capped, sign_patterns
from llamasweep.stats.spending import adjusted_interval, interval_trims, spent

SIZES = np.abs(np.random.default_rng(2).normal(size=10)) + 0.1


def first_crossings(rows: Floats, max_rounds: int, alpha: float) -> Ints:
    """Round at which each row crosses when looked at after each round, 0 if never."""
    test = Boundary(len(rows), max_rounds=max_rounds, alpha=alpha)
    first = np.zeros(len(rows), dtype=np.int64)
    for n in range(1, rows.shape[1] + 1):
        test.look(rows[:, :n])
        first[(test.crossed != 0) & (first == 0)] = n
    return first


def all_rows(sizes: Floats) -> Floats:
    """The sizes under all sign patterns: what equal builds give, each row equally likely."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(sizes))))
    return np.asarray(signs * sizes)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_equal_builds_cross_as_often_as_may_be_spent_and_no_oftener(alpha: float) -> None:
    first = first_crossings(all_rows(SIZES), 10, alpha)
    for n in range(1, 11):
        share = float(np.mean((first > 0) & (first <= n)))
        assert share <= spent(n, 10, alpha) + 1e-12
    assert float(np.mean(first > 0)) == pytest.approx(alpha, abs=4 / 2**9)


def test_of_twenty_rounds_the_seventh_is_the_first_that_can_reject() -> None:
    rows = np.ones((1, 20)) * np.linspace(1, 2, 20)
    assert first_crossings(rows, 20, 0.05).tolist() == [7]


def test_a_slow_version_puts_the_same_rows_beyond_the_boundary() -> None:
    """Pattern by pattern, with sets instead of arrays."""
    sizes, alpha, max_rounds = SIZES[:8], 0.2, 8
    beyond: set[tuple[float, ...]] = set()
    first: dict[tuple[float, ...], int] = {}
    for n in range(1, max_rounds + 1):
        patterns = list(itertools.product((1.0, -1.0), repeat=n))
        beyond = {p for p in patterns if p[:-1] in beyond}
        limit = 2 * float(np.median(sizes[:n]))
        sums = {
            p: abs(sum(s * min(size, limit) for s, size in zip(p, sizes, strict=False)))
            for p in patterns
        }
        n_may = 2 * (math.floor(spent(n, max_rounds, alpha) * 2 ** (n - 1) + 1e-9))
        left = sorted((p for p in patterns if p not in beyond), key=lambda p: -sums[p])
        room = n_may - len(beyond)
        if room > 0:
            edge = sums[left[room]] if room < len(left) else -1.0
            beyond |= {p for p in left if sums[p] > edge + 1e-9}
        first |= {p: n for p in beyond if p[:-1] not in first and p not in first}
    rows = all_rows(sizes)
    found = first_crossings(rows, max_rounds, alpha)
    for row, crossing in zip(rows, found, strict=True):
        signs = tuple(np.sign(row).tolist())
        expected = min((first[signs[:k]] for k in range(1, 9) if signs[:k] in first), default=0)
        assert crossing == expected


def test_tied_sums_stay_on_this_side_of_the_boundary() -> None:
    first = first_crossings(all_rows(np.ones(9)), 9, 0.05)
    assert float(np.mean(first > 0)) <= 0.05


def test_the_sign_of_a_crossing_is_that_of_the_sum() -> None:
    test = Boundary(2, max_rounds=20, alpha=0.05)
    rows = np.vstack([np.linspace(1, 2, 9), -np.linspace(1, 2, 9)])
    test.look(rows)
    assert test.crossed.tolist() == [1, -1]


def test_beyond_fourteen_rounds_the_error_stays_near_alpha() -> None:
    draw = np.random.default_rng(4)
    crossed = []
    for _ in range(4):
        rows = draw.normal(size=(100, 20))
        crossed += (first_crossings(rows, 20, 0.05) > 0).tolist()
    assert np.mean(crossed) == pytest.approx(0.05, abs=0.035)


def test_patterns_of_few_rounds_are_all_patterns() -> None:
    signs = sign_patterns(6)
    assert sorted(map(tuple, signs.tolist())) == sorted(
        p for p in itertools.product((1.0, -1.0), repeat=6) if p[0] == 1.0
    )
    assert sign_patterns(20).shape == (2**13, 20)
    assert np.array_equal(sign_patterns(20)[:32, :6], signs)


def test_a_wild_round_counts_twice_the_median() -> None:
    assert capped(np.array([1.0, -2.0, 1.0, 50.0, -1.0])).tolist() == [1.0, -2.0, 1.0, 2.0, -1.0]


def test_spending_by_hand() -> None:
    assert spent(20, 20, 0.05) == pytest.approx(0.05)
    assert spent(40, 20, 0.05) == pytest.approx(0.05)
    assert spent(0, 20, 0.05) == 0
    assert spent(10, 20, 0.05) == pytest.approx(0.05 * math.log(1 + (math.e - 1) / 2))


def test_the_adjusted_interval_is_wider_than_the_plain_one_until_the_end() -> None:
    trims = interval_trims(6, 20, 0.05)
    plain = {7: 2, 10: 8, 20: 52}
    assert all(trims[n - 1] < k for n, k in plain.items())
    assert list(trims) == sorted(trims)


def test_the_adjusted_interval_holds_the_shift_at_every_round_at_once() -> None:
    draw = np.random.default_rng(12)
    n_missed = 0
    for _ in range(600):
        values = draw.standard_t(3, size=12)
        limits = [
            adjusted_interval(values[:n], first_round=7, max_rounds=12, alpha=0.1)
            for n in range(7, 13)
        ]
        n_missed += any(found is not None and not found[0] <= 0 <= found[1] for found in limits)
    assert n_missed / 600 == pytest.approx(0.1, abs=0.035)


def test_no_interval_before_the_first_round_that_counts() -> None:
    assert adjusted_interval(np.ones(5), first_round=6, max_rounds=20, alpha=0.05) is None


def test_least_signed_ranks_follow_their_own_distribution() -> None:
    least = spending._least_signed_rank(4)
    # Of four ranks min(W+, W-) is 0 for 2 of 16 patterns, at most 1 for 4.
    assert np.mean(least[:, 3] == 0) == pytest.approx(2 / 16, abs=0.01)
    assert np.mean(least[:, 3] <= 1) == pytest.approx(4 / 16, abs=0.01)
