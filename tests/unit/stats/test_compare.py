"""Comparisons of two sides: verdicts, intervals, and what is dropped."""

from __future__ import annotations

import math

import pytest

from llamasweep.stats import compare_paired, compare_unpaired

A = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 100.8, 99.9]


def scaled(factor: float, values: list[float] = A) -> list[float]:
    """b that is `factor` times a, with a little noise of its own."""
    noise = [1.002, 0.999, 1.001, 0.998, 1.003, 0.997, 1.0005, 1.0]
    return [v * factor * n for v, n in zip(values, noise, strict=True)]


def test_a_paired_comparison_by_hand() -> None:
    # b / a: 0.9, 0.8, 0.9, 0.8, 0.9, 0.8: six drops, p = 2/64; Walsh averages are ln 0.9 (6 of 21), ln √0.72 (9)
    # and ln 0.8 (6), so their median is ln √0.72, and the exact interval of six values is their full range.
    found = compare_paired([10, 10, 20, 20, 30, 30], [9, 8, 18, 16, 27, 24])
    assert found.verdict == "slower"
    assert found.ratio == pytest.approx(math.sqrt(0.72))
    assert found.low == pytest.approx(0.8)
    assert found.high == pytest.approx(0.9)
    assert found.p_value == 2 / 64
    assert (found.n_rounds, found.n_dropped, found.evidence) == (6, 0, "paired")


@pytest.mark.parametrize("compare", [compare_paired, compare_unpaired])
@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.9, "slower"), (1.1, "faster"), (1.0, "same"), (1.01, "same")]
)
def test_clear_cases_have_clear_verdicts(
    compare: type[object], factor: float, verdict: str
) -> None:
    found = compare(A, scaled(factor))  # type: ignore[call-arg]
    assert found.verdict == verdict  # type: ignore[attr-defined]


def test_a_significant_change_within_the_floor_is_the_same() -> None:
    found = compare_paired(A, scaled(1.015))
    assert found.p_value is not None
    assert found.p_value <= 0.05
    assert found.verdict == "same"


def test_a_narrower_floor_makes_it_a_change() -> None:
    assert compare_paired(A, scaled(1.015), floor_fraction=0.01).verdict == "faster"


def test_no_significance_is_not_the_same() -> None:
    b = [90.0, 112.0, 93.0, 109.0, 91.0, 110.0, 92.0, 111.0]
    found = compare_paired(A, b)
    assert found.p_value is not None
    assert found.p_value > 0.05
    assert found.verdict == "undecided"


def test_three_rounds_are_undecided_and_have_no_interval() -> None:
    found = compare_paired([100, 100, 100], [50, 50, 50])
    assert found.verdict == "undecided"
    assert found.ratio == pytest.approx(0.5)
    assert (found.low, found.high) == (None, None)
    assert found.p_value == 0.25
    assert found.notes == ("too few values for an interval of 95%",)


def test_unusable_values_are_dropped_with_a_note() -> None:
    bad: list[float | None] = [None, math.nan, 0.0, -5.0, math.inf]
    found = compare_paired([*A, *bad], [*scaled(0.9), *[100.0] * 5])
    clean = compare_paired(A, scaled(0.9))
    assert (found.ratio, found.low, found.high) == (clean.ratio, clean.low, clean.high)
    assert (found.n_rounds, found.n_dropped) == (8, 5)
    assert found.notes == (
        "1 round dropped: a is 0",
        "1 round dropped: a is infinite",
        "2 rounds dropped: a is missing",
        "1 round dropped: a is negative",
    )


def test_a_round_that_lacks_both_is_told_once() -> None:
    found = compare_paired([100.0, None], [100.0, 0.0])
    assert found.notes[0] == "1 round dropped: a is missing and b is 0"
    assert found.n_dropped == 1


@pytest.mark.parametrize("compare", [compare_paired, compare_unpaired])
def test_nothing_usable_has_no_figures(compare: type[object]) -> None:
    found = compare([None], [None])  # type: ignore[call-arg]
    figures = [getattr(found, name) for name in ("ratio", "low", "high", "p_value")]
    assert figures == [None] * 4
    assert found.verdict == "undecided"  # type: ignore[attr-defined]


def test_unequal_rounds_cannot_be_paired_but_compared() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        compare_paired(A, A[:-1])
    assert compare_unpaired(A, scaled(0.9)[:-1]).verdict == "slower"


def test_an_unpaired_comparison_by_hand() -> None:
    # All six of b are below all four of a: 2 / C(10, 4).
    found = compare_unpaired([110, 120, 130, 140], [50, 51, 52, 53, 54, 55])
    assert found.p_value == pytest.approx(2 / 210)
    assert (found.verdict, found.evidence, found.n_rounds) == ("slower", "unpaired", 4)


def test_drift_between_the_rounds_hides_a_change_from_the_unpaired_test_only() -> None:
    drift = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    a = [v * f for v, f in zip(A, drift, strict=True)]
    b = [v * f for v, f in zip(scaled(0.93), drift, strict=True)]
    assert compare_paired(a, b).verdict == "slower"
    assert compare_unpaired(a, b).verdict == "undecided"


@pytest.mark.parametrize("floor", [-0.01, 1.0, math.nan])
def test_a_floor_that_is_none_is_refused(floor: float) -> None:
    with pytest.raises(ValueError, match="floor"):
        compare_paired(A, A, floor_fraction=floor)


@pytest.mark.parametrize("alpha", [0.0, 0.5, math.nan])
def test_an_alpha_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        compare_unpaired(A, A, alpha=alpha)
