"""Summaries of repetitions and the rule for leading ones."""

from __future__ import annotations

import statistics

import pytest

from llamasweep.results.rates import DiscardRule, leading_discards, summarise_rates


def test_a_summary_by_hand() -> None:
    summary = summarise_rates([10.0, 12.0, 11.0, 15.0])
    assert summary.n_samples == 4
    assert summary.median_tps == 11.5
    assert summary.mean_tps == 12.0
    assert summary.sample_std_tps == pytest.approx((14 / 3) ** 0.5)
    assert summary.mad_tps == 1.0
    assert (summary.min_tps, summary.max_tps) == (10.0, 15.0)


def test_one_repetition_has_no_standard_deviation() -> None:
    summary = summarise_rates([7.0])
    assert summary.sample_std_tps is None
    assert (summary.median_tps, summary.mad_tps) == (7.0, 0.0)


def test_no_repetition_gives_none_everywhere() -> None:
    summary = summarise_rates([])
    assert summary.n_samples == 0
    assert summary.median_tps is summary.mean_tps is summary.sample_std_tps is None
    assert summary.mad_tps is summary.min_tps is summary.max_tps is None


@pytest.mark.parametrize(
    ("values", "n_dropped"),
    [
        ([], 0),
        ([50.0], 0),
        ([50.0, 100.0, 101.0], 0),  # fewer than four: nothing
        ([50.0, 100.0, 101.0, 99.0], 1),
        ([101.0, 100.0, 101.5, 99.0, 100.5], 0),
        ([50.0, 100.0, 101.0, 99.0, 100.5], 1),
        ([150.0, 100.0, 101.0, 99.0, 100.5], 1),  # too fast at first is not level either
        ([30.0, 60.0, 100.0, 101.0, 99.0], 2),
        ([30.0, 40.0, 60.0, 100.0, 101.0, 99.0], 3),
        (
            [20.0, 30.0, 40.0, 50.0, 100.0, 101.0, 99.0],
            0,
        ),  # the ramp is the larger half: its MAD hides it
        ([100.0, 50.0, 100.0, 101.0, 99.0], 0),  # only leading ones
        ([100.0, 100.0, 100.0, 100.0], 0),
        ([99.5, 100.0, 100.0, 100.0], 0),  # MAD 0: within one percent
        ([90.0, 100.0, 100.0, 100.0], 1),  # MAD 0: beyond it
    ],
)
def test_auto_drops_leading_repetitions_that_are_not_level(
    values: list[float], n_dropped: int
) -> None:
    assert leading_discards(values, "auto") == n_dropped


@pytest.mark.parametrize(("rule", "n_dropped"), [(0, 0), (2, 2), (4, 4), (5, 4), (99, 4)])
def test_a_number_drops_that_many_and_always_leaves_one(rule: DiscardRule, n_dropped: int) -> None:
    assert leading_discards([1.0, 2.0, 3.0, 4.0, 5.0], rule) == n_dropped


def test_a_number_of_nothing_is_nothing_and_a_negative_one_is_refused() -> None:
    assert leading_discards([], 3) == 0
    with pytest.raises(ValueError, match="-1"):
        leading_discards([1.0], -1)


def test_the_reported_case_of_a_cold_first_repetition_becomes_level() -> None:
    values = [5200.0, 10_790.0, 10_802.0, 10_811.0, 10_798.0]
    kept = values[leading_discards(values, "auto") :]
    assert statistics.stdev(kept) / statistics.mean(kept) < 0.001
