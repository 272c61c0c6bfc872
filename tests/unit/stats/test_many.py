"""Corrections for many tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from llamasweep.stats import benjamini_hochberg, holm


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.04, then the running maximum.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_benjamini_hochberg_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.5 times 4/1, 4/2, 4/3, 4/4: 0.04, 0.04, 0.04, 0.5.
    assert benjamini_hochberg([0.03, 0.5, 0.01, 0.02]) == pytest.approx([0.04, 0.5, 0.04, 0.04])


def test_benjamini_hochberg_equals_scipy() -> None:
    p = np.random.default_rng(1).random(30) ** 2
    assert benjamini_hochberg(p.tolist()) == pytest.approx(
        scipy_stats.false_discovery_control(p).tolist()
    )


def test_nothing_to_correct_is_nothing() -> None:
    assert holm([]) == benjamini_hochberg([]) == []


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="not probabilities"):
        holm([0.5, wrong])
