"""The sign-flip test, by hand and against all patterns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from tests.unit.stats import slow

from llamasweep.stats import sign_flip


def test_three_rounds_by_hand() -> None:
    # Sums of ±1 ±2 ±3: 6, 4, 2, 0, 0, -2, -4, -6. Seen: 3 - 1 + 2 = 4.
    d = np.array([3.0, -1.0, 2.0])
    assert sign_flip.greater(d) == 2 / 8
    assert sign_flip.two_sided(d) == 4 / 8


def test_six_equal_signs_have_the_least_p_there_is() -> None:
    d = np.array([0.1, 0.2, 0.15, 0.3, 0.11, 0.12])
    assert sign_flip.greater(d) == 1 / 64
    assert sign_flip.greater(-d) == 1.0
    assert sign_flip.two_sided(d) == 2 / 64


@pytest.mark.parametrize("seed", range(12))
def test_it_equals_the_count_of_all_patterns(seed: int) -> None:
    draw = np.random.default_rng(seed)
    d = np.round(draw.normal(0.5, 1, size=1 + seed % 10), seed % 3)
    assert sign_flip.greater(d) == pytest.approx(slow.sign_flip_greater(d.tolist()), abs=1e-12)
    assert sign_flip.two_sided(d) == pytest.approx(slow.sign_flip_two_sided(d.tolist()), abs=1e-12)


def test_it_equals_scipy_on_twelve_rounds() -> None:
    d = np.random.default_rng(3).normal(0.4, 1, size=12)
    theirs = scipy_stats.permutation_test(
        (d,), np.sum, permutation_type="samples", alternative="greater", n_resamples=2**12
    )
    assert sign_flip.greater(d) == pytest.approx(float(theirs.pvalue), abs=1e-12)


def test_random_patterns_agree_with_the_exact_count(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(5).normal(0.35, 1, size=20)
    exact = sign_flip.two_sided(d)
    monkeypatch.setattr(sign_flip, "EXACT_ROUNDS", 14)
    drawn = sign_flip.two_sided(d)
    assert drawn == sign_flip.two_sided(d)
    assert drawn == pytest.approx(exact, abs=4 * (exact / sign_flip.MONTE_CARLO_PATTERNS) ** 0.5)
    assert drawn != exact


def test_random_patterns_never_give_a_p_of_zero() -> None:
    assert sign_flip.greater(np.ones(40)) == pytest.approx(1e-5, rel=0.01)


def test_nothing_is_no_evidence() -> None:
    assert sign_flip.two_sided(np.array([])) == 1.0
    assert sign_flip.greater(np.array([])) == 1.0
    assert sign_flip.two_sided(np.zeros(7)) == 1.0
