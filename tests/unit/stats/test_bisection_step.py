"""One step of a bisection: a build against both ends, as rounds come in."""

from __future__ import annotations

import numpy as np
import pytest

from llamasweep.stats.bisection_step import (
    FIRST_ROUNDS,
    STEP_ROUNDS,
    Fate,
    StepJudged,
    StepRates,
    confirm_answer,
    ends_decision,
    ends_differ_again,
    fresh_rounds,
    half_way,
    is_settled,
    judge_step,
    share_explained,
)

GOOD, BAD = 100.0, 94.0
FLOOR = half_way([GOOD], [BAD])


def noisy(level: float, n: int, seed: int, sigma: float = 0.01) -> list[float]:
    draw = np.random.default_rng([int(level * 10), seed])
    return [float(v) for v in level * np.exp(sigma * draw.standard_normal(n))]


def judged(level: float, n: int, *, bad: float = BAD, sigma: float = 0.01) -> StepJudged:
    good, build, worse = (noisy(v, n, i, sigma) for i, v in enumerate((GOOD, level, bad)))
    fates: list[Fate] = ["rate"] * n
    return judge_step(
        StepRates(good_tps=good, build_tps=build, bad_tps=worse, fates=fates),
        floor_fraction=half_way(good, worse),
        practical_floor=0.03,
    )


def first_outcome(level: float, **more: float) -> tuple[str, int, StepJudged]:
    for n in range(1, STEP_ROUNDS + 1):
        found = judged(level, n, **more)
        if found.outcome is not None:
            return found.outcome, n, found
    raise AssertionError("no outcome after the last round")


def failing(*fates: Fate, rate: float | None = None) -> str | None:
    build = [rate if fate == "rate" else None for fate in fates]
    n = len(fates)
    rates = StepRates(good_tps=[GOOD] * n, build_tps=build, bad_tps=[BAD] * n, fates=fates)
    return judge_step(rates, floor_fraction=FLOOR, practical_floor=0.03).outcome


def test_half_of_the_way_is_as_far_from_either_end() -> None:
    assert pytest.approx(BAD * (1 + FLOOR)) == GOOD / (1 + FLOOR)
    with pytest.raises(ValueError, match="no round in common"):
        half_way([None, 1.0], [1.0, None])


def test_ends_that_lie_very_far_apart_are_told_apart_all_the_same() -> None:
    assert half_way([GOOD], [GOOD / 10]) == 0.5
    assert first_outcome(GOOD / 10, bad=GOOD / 10)[0] == "bad"
    assert first_outcome(GOOD, bad=GOOD / 10)[0] == "good"
    outcome, _, found = first_outcome(GOOD / 3, bad=GOOD / 10)
    assert (outcome, found.is_between) == ("bad", True)


def test_a_build_as_fast_as_the_good_end_is_good_after_six_to_ten_rounds() -> None:
    outcome, n, found = first_outcome(GOOD)

    assert outcome == "good"
    assert 6 <= n <= 10
    assert found.to_bad.verdict == "faster" or found.to_good.verdict == "same"


def test_a_build_as_slow_as_the_bad_end_is_bad_after_six_to_ten_rounds() -> None:
    outcome, n, found = first_outcome(BAD)

    assert outcome == "bad"
    assert 6 <= n <= 10
    assert not found.is_between


def test_a_build_that_is_now_fast_and_now_slow_takes_more_rounds_and_is_undecided() -> None:
    def after(n: int) -> str | None:
        good, bad = noisy(GOOD, n, 1), noisy(BAD, n, 2)
        build = [(good, bad)[i % 2][i] for i in range(n)]
        fates: list[Fate] = ["rate"] * n
        rates = StepRates(good_tps=good, build_tps=build, bad_tps=bad, fates=fates)
        return judge_step(rates, floor_fraction=FLOOR, practical_floor=0.03).outcome

    assert [after(n) for n in (6, FIRST_ROUNDS, STEP_ROUNDS - 1)] == [None] * 3
    assert after(STEP_ROUNDS) == "undecided"


def test_a_build_between_two_changes_counts_as_slow_and_is_told() -> None:
    outcome, n, found = first_outcome(90.0, bad=80.0)

    assert outcome == "bad"
    assert found.is_between
    assert n <= 10


def test_a_crash_is_tried_once_more_and_then_skipped() -> None:
    assert failing("failed") is None
    assert failing("failed", "failed") == "skip"
    assert failing("rate", "failed", "failed", rate=GOOD) is None


def test_a_build_that_cannot_be_asked_is_skipped_at_once() -> None:
    assert failing("refused") == "skip"


def test_a_hang_counts_as_slow_unless_rates_came_before() -> None:
    assert failing("hang") == "hang"
    assert failing("rate", "hang", rate=GOOD) is None
    assert failing("rate", "hang", "hang", rate=GOOD) == "hang"


def test_ends_are_settled_when_clear_used_up_or_silent() -> None:
    good, bad = noisy(GOOD, 40, 1), noisy(BAD, 40, 2)
    clear = ends_decision(good[:8], bad[:8], 0.03)
    assert clear.state == "slower"
    assert is_settled(clear, 8)

    early = ends_decision(good[:3], bad[:3], 0.03)
    assert not is_settled(early, 3)
    silent = ends_decision(good[:3], [None] * 3, 0.03)
    assert is_settled(silent, 3)
    vague = ends_decision(noisy(GOOD, 40, 3, 0.1), noisy(97.0, 40, 4, 0.1), 0.03)
    assert vague.state == "undecided"
    assert is_settled(vague, 40)


def test_an_answer_is_confirmed_by_a_real_step_and_by_no_noise() -> None:
    n = fresh_rounds(ends_differ_again(noisy(GOOD, 30, 5), noisy(BAD, 30, 6), 0.03))
    assert n == 10
    assert confirm_answer(noisy(GOOD, n, 7), noisy(BAD, n, 8), floor_fraction=0.03).is_confirmed
    assert not confirm_answer(
        noisy(GOOD, n, 7), noisy(GOOD, n, 8), floor_fraction=0.03
    ).is_confirmed


def test_the_share_of_a_step_is_on_the_log_scale() -> None:
    whole, part, none = (
        ends_differ_again([GOOD] * 8, [bad] * 8, 0.01) for bad in (81.0, 90.0, GOOD)
    )
    assert share_explained(part, whole) == pytest.approx(0.5)
    assert share_explained(whole, none) is None
