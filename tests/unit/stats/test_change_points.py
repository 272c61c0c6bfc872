"""Steps, spikes and drifts in a history, against slow versions and on seeded series."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from benchmarks import history_simulation as history
from scipy import stats as scipy_stats
from tests.unit.stats import slow

from llamasweep.stats import ChangePoint, change_points, changes_of_series
from llamasweep.stats.odd_builds import farthest
from llamasweep.stats.ramps import best_ramp, line, student_quantile
from llamasweep.stats.segments import best_fits, chosen_fit
from llamasweep.stats.spikes import distances, far_points, scatter


def noisy(levels: list[float], sigma: float = 0.004, seed: int = 0) -> list[float | None]:
    """Speeds at these levels with noise."""
    draw = np.random.default_rng(seed)
    return [float(v * math.exp(draw.normal(0, sigma))) for v in levels]


def told(found: list[ChangePoint]) -> list[tuple[int, str]]:
    return [(change.index, change.kind) for change in found]


def test_a_step_is_found_with_its_size_and_the_builds_around_it() -> None:
    (found,) = change_points(noisy([50.0] * 12 + [46.0] * 12))
    assert (found.index, found.kind, found.before_index, found.last_index) == (12, "step", 11, 23)
    assert found.ratio == pytest.approx(0.92, rel=0.005)
    assert found.low is not None
    assert found.high is not None
    assert 0.91 < found.low < 0.92 < found.high < 0.93


def test_a_step_by_hand_without_noise() -> None:
    # All 5 x 5 differences are ln 0.9, so the shift and both ends of its interval are.
    (found,) = change_points([100.0] * 5 + [90.0] * 5)
    assert told([found]) == [(5, "step")]
    assert [found.ratio, found.low, found.high] == pytest.approx([0.9, 0.9, 0.9])


def test_noise_alone_is_no_change() -> None:
    assert change_points(noisy([50.0] * 40)) == []
    assert change_points([50.0] * 40) == []


def test_rounded_speeds_have_no_changes_in_their_last_digit() -> None:
    assert change_points([50.0] * 9 + [50.01] + [50.0] * 9 + [50.01] * 9) == []


@pytest.mark.parametrize("values", [[50.0, 40.0, 50.0, 50.0, 50.0, 90.0], [1.0, 9.0] * 3])
def test_six_points_of_which_some_are_odd_do_not_fail(values: list[float]) -> None:
    assert all(change.kind == "spike" for change in change_points(values))


@pytest.mark.parametrize("n_odd", [1, 2])
@pytest.mark.parametrize("place", [0, 9, 18])
def test_one_or_two_odd_builds_are_a_spike_and_no_step(n_odd: int, place: int) -> None:
    levels = [50.0] * 20
    levels[place : place + n_odd] = [40.0] * n_odd
    (found,) = change_points(noisy(levels, seed=1))
    assert (found.index, found.kind, found.last_index) == (place, "spike", place + n_odd - 1)
    assert found.ratio == pytest.approx(0.8, rel=0.01)
    assert found.before_index == (place - 1 if place else None)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.8 < found.high


def test_a_third_build_makes_it_a_step() -> None:
    assert told(change_points(noisy([50.0] * 17 + [40.0] * 3, seed=1))) == [(17, "step")]


def test_a_level_that_comes_back_is_two_steps() -> None:
    found = change_points(noisy([50.0] * 15 + [44.0] * 8 + [50.0] * 15, seed=1))
    assert told(found) == [(15, "step"), (23, "step")]
    assert found[0].last_index == 22


def test_a_slow_loss_is_a_drift() -> None:
    levels = [50.0] * 10 + [50.0 * (1 - 0.005 * k) for k in range(20)] + [45.25] * 10
    (found,) = change_points(noisy(levels))
    assert found.kind == "drift"
    assert found.index == pytest.approx(11, abs=4)
    assert found.last_index == pytest.approx(29, abs=4)
    assert found.ratio == pytest.approx(0.905, rel=0.01)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.905 < found.high


def test_a_drift_over_the_whole_series_too_small_for_a_step_is_a_drift() -> None:
    levels = [50.0 * math.exp(0.012 * i / 59) for i in range(60)]
    (found,) = change_points(noisy(levels, seed=1))
    assert (found.kind, found.last_index) == ("drift", 59)


def test_gaps_are_left_out_and_indices_count_them() -> None:
    values = noisy([50.0] * 12 + [46.0] * 12)
    gaps: list[float | None] = [None, math.nan, 0.0, -1.0, math.inf]
    found = change_points([*values[:12], *gaps, *values[12:]])
    (plain,) = change_points(values)
    assert [(c.index, c.before_index, c.last_index) for c in found] == [(17, 11, 28)]
    assert (found[0].ratio, found[0].low, found[0].high) == (plain.ratio, plain.low, plain.high)


@pytest.mark.parametrize("values", [[], [None] * 9, [50.0] * 3 + [10.0] * 2, [math.nan]])
def test_fewer_than_six_points_tell_nothing(values: list[float | None]) -> None:
    assert change_points(values) == []


def test_three_points_against_three_have_no_interval() -> None:
    (found,) = change_points([100.0, 101.0, 100.5, 50.0, 50.4, 50.2])
    assert told([found]) == [(3, "step")]
    assert (found.low, found.high) == (None, None)


# -- the parts, against slow versions
@pytest.mark.parametrize("seed", range(6))
def test_fits_equal_those_of_trying_every_place(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=9 + seed)
    for k, (error, steps) in enumerate(best_fits(values)):
        expected, places = slow.best_fit(values.tolist(), k)
        assert error == pytest.approx(expected)
        assert steps == places


def test_too_few_points_make_no_stretch() -> None:
    with pytest.raises(ValueError, match="no stretch"):
        best_fits(np.ones(2))


def test_the_number_of_steps_by_hand() -> None:
    # 8 points, penalty 8.8 + 0.5 ln 8 = 9.84. A step of 2 with errors of 0.5: the sum of squares falls from 10 to 2, and
    # 8 ln(10 / 2) = 12.9 is more. One of 1 with the same errors: from 4 to 2, and 8 ln 2 = 5.5 is less.
    errors = np.tile([-0.5, 0.5], 4)
    error, steps = chosen_fit(errors + np.repeat([0.0, 2.0], 4))
    assert error == pytest.approx(2.0)
    assert steps == (4,)
    error, steps = chosen_fit(errors + np.repeat([0.0, 1.0], 4))
    assert error == pytest.approx(4.0)
    assert steps == ()
    assert chosen_fit(np.zeros(8)) == (0.0, ())
    with pytest.raises(ValueError, match="2 points make no stretch"):
        chosen_fit(np.zeros(2))


def test_one_level_against_odd_builds_by_hand() -> None:
    cases = (
        ([3.0, 3.0, 3.0], 0, 9.0),  # the third gains 1 * 9, the odd pair loses nothing
        ([2.0, 6.0, 6.0], 1, 4 - 32 / 3),  # the other gains 4; the pair loses (6 - 2)^2 * 2 / 3
        (
            [1.0, 6.0, 4.0, 3.0],
            1,
            8 - 9,
        ),  # two others with mean 2 gain 8; the pair has mean 5 and loses 9 * 4 / 4
        ([-0.1, 6.0, 6.0], 1, -math.inf),  # one that leans the other way shares nothing
    )
    for sizes, first, gain in cases:
        found = farthest(np.array(sizes))
        assert found[0] == first
        assert found[1] == pytest.approx(gain)
    with pytest.raises(ValueError, match="2 builds leave none"):
        farthest(np.array([6.0, 6.0]))


def test_two_odd_builds_beside_one_that_leans_the_same_way_are_a_spike() -> None:
    values = noisy([100.0] * 40)
    sizes = {20: 6.1, 21: 5.4, 22: 2.6}
    leaning: list[float | None] = [
        100 * math.exp(0.004 * sizes[i]) if i in sizes else v for i, v in enumerate(values)
    ]
    found = change_points(leaning)
    assert told(found) == [(20, "spike")]
    assert found[0].last_index == 21


def test_three_far_neighbours_are_left_for_steps() -> None:
    values = np.tile([0.0, 1.0], 12)
    values[10:12] += 20
    assert list(np.flatnonzero(far_points(values, 5))) == [10, 11]
    values[12] += 20
    assert not far_points(values, 5).any()


def test_three_builds_that_share_a_change_are_a_level() -> None:
    values = noisy([100.0] * 20 + [103.0] * 3 + [100.0] * 20)
    assert told(change_points(values)) == [(20, "step"), (23, "step")]


def test_a_line_equals_least_squares() -> None:
    values = np.random.default_rng(2).normal(size=20) + np.arange(20) * 0.3
    slope, _ = np.polyfit(np.arange(20), values, 1)
    theirs = scipy_stats.linregress(np.arange(20), values)
    found = line(values)
    assert found.size == pytest.approx(19 * slope)
    assert found.size_error == pytest.approx(19 * float(theirs.stderr))


def test_the_best_ramp_equals_trying_every_pair_of_ends() -> None:
    values = np.random.default_rng(4).normal(size=18)
    values += 4 * np.clip((np.arange(18) - 4) / 8, 0, 1)
    errors = {}
    for start in range(18):
        for end in range(start + 5, 18):
            share = np.clip((np.arange(18) - start) / (end - start), 0, 1)
            design = np.column_stack([np.ones(18), share])
            solution, *_ = np.linalg.lstsq(design, values, rcond=None)
            errors[start, end] = float(np.sum((values - design @ solution) ** 2))
    found = best_ramp(values)
    assert found.error == pytest.approx(min(errors.values()))
    assert (found.start, found.end) == min(errors, key=lambda ends: errors[ends])
    with pytest.raises(ValueError, match="no drift"):
        best_ramp(values[:5])


@pytest.mark.parametrize("n", [4, 5, 6, 7, 15])
def test_distances_equal_those_of_looking_at_each_point(n: int) -> None:
    values = np.round(np.random.default_rng(n).normal(size=n), 1).tolist()
    for i, found in enumerate(distances(np.array(values))):
        levels = [v for v in (values[max(0, i - 3) : i], values[i + 1 : i + 4]) if v]
        off = [values[i] - statistics.median(level) for level in levels]
        expected = 0.0 if min(off) < 0 < max(off) else min(map(abs, off))
        assert found == pytest.approx(expected)


def test_five_points_have_no_far_ones() -> None:
    assert not far_points(np.array([0.0, 0.0, 9.0, 0.0, 0.0]), 3.0).any()
    assert far_points(np.array([0.0, 0.1, 9.0, 0.0, 0.1, 0.0]), 3.0).tolist() == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]


def test_three_points_have_no_levels_around_them() -> None:
    with pytest.raises(ValueError, match="no levels"):
        distances(np.ones(3))


def test_the_scatter_does_not_see_steps() -> None:
    values = np.random.default_rng(6).normal(size=400)
    stepped = values + np.repeat([0.0, 9.0, 3.0, 20.0], 100)
    assert scatter(stepped) == pytest.approx(1.0, abs=0.15)
    assert scatter(np.ones(1)) == 0.0


def test_distances_by_hand() -> None:
    # 9 lies 8 over the median of (0, 1, 1) and 7 over that of (2, 2, 3); 1 lies between 0 and 2.
    values = np.array([0.0, 1.0, 1.0, 9.0, 2.0, 2.0, 3.0])
    assert distances(values)[3] == 7.0
    assert distances(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0]))[3] == 0.0


@pytest.mark.parametrize("freedom", [5, 10, 40])
def test_the_quantile_of_student_equals_scipy(freedom: int) -> None:
    expected = float(scipy_stats.t.ppf(0.975, freedom))
    assert student_quantile(0.975, freedom) == pytest.approx(expected, rel=0.01)


# -- series that are split
def test_a_new_driver_splits_a_series_and_is_no_change() -> None:
    values = noisy([50.0] * 10 + [40.0] * 10 + [36.0] * 10)
    facts = [{"driver": "1" if i < 10 else "2", "kernel": "6.1"} for i in range(30)]
    first, second = changes_of_series(values, facts)
    assert (first.start, first.end, first.differs, first.changes) == (0, 10, (), ())
    assert (second.start, second.end, second.differs) == (10, 30, ("driver",))
    assert [(c.index, c.before_index, c.last_index) for c in second.changes] == [(20, 19, 29)]


def test_a_fact_that_is_not_known_counts_as_unchanged() -> None:
    facts: list[dict[str, str | None]] = [
        {"driver": "1"},
        {"driver": None},
        {},
        {"driver": "1"},
        {"driver": "2"},
    ]
    found = changes_of_series([1.0] * 5, facts)
    assert [(s.start, s.differs) for s in found] == [(0, ()), (4, ("driver",))]


def test_a_gap_does_not_split() -> None:
    facts = [{"kernel": "a"}, {"kernel": "b"}, {"kernel": "a"}]
    assert len(changes_of_series([1.0, None, 1.0], facts)) == 1
    assert len(changes_of_series([1.0, 1.0, 1.0], facts)) == 3


def test_each_value_needs_a_fingerprint() -> None:
    with pytest.raises(ValueError, match="2 values and 1 fingerprints"):
        changes_of_series([1.0, 2.0], [{}])


# -- seeded series as in benchmarks/history_simulation.py, few enough for every run
N_SERIES = 40


def test_steps_of_three_sigmas_are_found_within_one_build() -> None:
    found = history.simulate("step of 3 sigmas", N_SERIES)
    assert found["within_1"] >= 0.9
    assert found["within_3"] >= 0.95
    assert found["as_spike"] == 0


def test_clean_series_have_no_changes() -> None:
    assert history.simulate("clean", N_SERIES)["any"] <= 0.1


@pytest.mark.parametrize("name", ["spike of 6 sigmas", "spike of 10 sigmas", "spike of 30 sigmas"])
def test_a_spike_is_never_a_step(name: str) -> None:
    found = history.simulate(name, N_SERIES)
    assert found["as_step"] == 0
    assert found["found"] >= (0.6 if "6" in name else 0.95)


def test_drifts_are_named_as_such() -> None:
    found = history.simulate("drift of 8 sigmas", N_SERIES)
    assert found["found"] >= 0.9


def test_a_changed_driver_is_no_change_of_the_builds() -> None:
    found = history.simulate("driver changes", N_SERIES)
    assert found["split"] == 1
    assert found["any"] <= 0.15
