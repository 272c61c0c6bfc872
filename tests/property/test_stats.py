"""Verdicts do not depend on the unit, mirror when the sides are swapped, and know no order of rounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamasweep.stats import (
    Comparison,
    StoppingRule,
    benjamini_hochberg,
    change_points,
    compare_paired,
    compare_unpaired,
    decide,
    holm,
)

QUICK = settings(max_examples=60, deadline=None)  # other processes share the machine
RULE = StoppingRule()
MIRRORED = {"faster": "slower", "slower": "faster"}

good = st.floats(min_value=20.0, max_value=200.0).map(lambda v: round(v, 2))
bad = st.sampled_from([None, math.nan, 0.0, -3.0, math.inf, -math.inf])
pairs = st.lists(st.tuples(good, good), min_size=1, max_size=16)
near = st.integers(90, 110).flatmap(
    lambda middle: st.lists(
        st.tuples(
            st.floats(99.0, 101.0).map(lambda v: round(v, 2)),
            st.floats(middle - 2.0, middle + 2.0).map(lambda v: round(v, 2)),
        ),
        min_size=6,
        max_size=16,
    )
)
"""Builds that differ by a little: the cases near the verdicts' borders."""

some_pairs = pairs | near


def sides(rounds: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in rounds], [b for _, b in rounds]


def figures(found: Comparison) -> list[float | None]:
    return [found.ratio, found.low, found.high, found.p_value]


def assert_equal(found: Comparison, expected: Comparison) -> None:
    assert found.verdict == expected.verdict
    assert found.n_rounds == expected.n_rounds
    for mine, theirs in zip(figures(found), figures(expected), strict=True):
        assert mine == (None if theirs is None else pytest.approx(theirs, rel=1e-9))


def assert_mirrored(found: Comparison, expected: Comparison) -> None:
    assert found.verdict == MIRRORED.get(expected.verdict, expected.verdict)
    assert found.p_value == pytest.approx(expected.p_value)
    for mine, theirs in (
        (found.ratio, expected.ratio),
        (found.low, expected.high),
        (found.high, expected.low),
    ):
        assert mine == (None if theirs is None else pytest.approx(1 / theirs))


@QUICK
@given(some_pairs, st.sampled_from([1e-3, 0.37, 3.0, 1e6]))
def test_the_unit_does_not_matter(rounds: list[tuple[float, float]], factor: float) -> None:
    a, b = sides(rounds)
    a_scaled, b_scaled = [factor * v for v in a], [factor * v for v in b]
    assert_equal(compare_paired(a_scaled, b_scaled), compare_paired(a, b))
    assert_equal(compare_unpaired(a_scaled, b_scaled), compare_unpaired(a, b))
    scaled, plain = decide(a_scaled, b_scaled, RULE), decide(a, b, RULE)
    assert scaled.state == plain.state
    assert_equal(scaled.comparison, plain.comparison)


@QUICK
@given(some_pairs)
def test_swapped_sides_mirror(rounds: list[tuple[float, float]]) -> None:
    a, b = sides(rounds)
    assert_mirrored(compare_paired(b, a), compare_paired(a, b))
    assert_mirrored(compare_unpaired(b, a), compare_unpaired(a, b))
    swapped, plain = decide(b, a, RULE), decide(a, b, RULE)
    assert swapped.state == MIRRORED.get(plain.state, plain.state)
    assert_mirrored(swapped.comparison, plain.comparison)


@QUICK
@given(some_pairs, st.randoms(use_true_random=False))
def test_the_order_of_rounds_does_not_matter(
    rounds: list[tuple[float, float]], shuffler: object
) -> None:
    mixed = list(rounds)
    shuffler.shuffle(mixed)  # type: ignore[attr-defined]
    assert_equal(compare_paired(*sides(mixed)), compare_paired(*sides(rounds)))
    assert_equal(compare_unpaired(*sides(mixed)), compare_unpaired(*sides(rounds)))


@QUICK
@given(some_pairs, st.lists(st.tuples(good, bad, st.booleans(), st.integers(0, 20)), max_size=4))
def test_unusable_values_are_never_averaged_in(
    rounds: list[tuple[float, float]], spoilt: list[tuple[float, float | None, bool, int]]
) -> None:
    mixed: list[tuple[float | None, float | None]] = list(rounds)
    for fine, wrong, is_a, place in spoilt:
        mixed.insert(min(place, len(mixed)), (wrong, fine) if is_a else (fine, wrong))
    found = compare_paired([a for a, _ in mixed], [b for _, b in mixed])
    assert_equal(found, compare_paired(*sides(rounds)))
    assert found.n_dropped == len(spoilt)
    assert bool(spoilt) == any("dropped" in note for note in found.notes)


@QUICK
@given(some_pairs)
def test_figures_are_in_their_ranges_and_agree(rounds: list[tuple[float, float]]) -> None:
    a, b = sides(rounds)
    for found in (compare_paired(a, b), compare_unpaired(a, b), decide(a, b, RULE).comparison):
        assert found.p_value is not None
        assert 0 < found.p_value <= 1
        assert found.ratio is not None
        if found.low is not None and found.high is not None:
            assert found.low <= found.ratio * (1 + 1e-12)
            assert found.ratio <= found.high * (1 + 1e-12)
        if found.verdict == "faster":
            assert found.ratio > 1.03
        if found.verdict == "slower":
            assert found.ratio < 1 / 1.03


@QUICK
@given(st.lists(st.floats(0, 1), max_size=30))
def test_corrected_p_are_no_smaller_and_keep_their_order(p_values: list[float]) -> None:
    for corrected in (holm(p_values), benjamini_hochberg(p_values)):
        assert all(after >= before for after, before in zip(corrected, p_values, strict=True))
        assert all(p <= 1 for p in corrected)
        by_p = [c for _, c in sorted(zip(p_values, corrected, strict=True))]
        assert by_p == sorted(by_p)
    assert all(h >= b for h, b in zip(holm(p_values), benjamini_hochberg(p_values), strict=True))


series = st.lists(st.one_of(good, bad), max_size=40)


@QUICK
@given(series)
def test_changes_of_any_series_lie_within_it_and_in_order(values: list[float | None]) -> None:
    found = change_points(values)
    assert [c.index for c in found] == sorted(c.index for c in found)
    for change in found:
        assert values[change.index] is not None
        assert 0 <= change.index <= change.last_index < len(values)
        assert change.before_index is None or change.before_index < change.index
        assert math.isfinite(change.ratio)
        assert change.ratio > 0


@QUICK
@given(series)
def test_changes_do_not_depend_on_the_unit(values: list[float | None]) -> None:
    scaled = [None if v is None else 8.0 * v for v in values]
    expected = [(c.index, c.kind) for c in change_points(values)]
    assert [(c.index, c.kind) for c in change_points(scaled)] == expected
