"""Which build is asked for next, and what is said at the end, with answers that are given outright."""

from __future__ import annotations

import math

import pytest

from llamasweep.stats.bisection import (
    MOST_SKIPS,
    Action,
    Answer,
    Bisection,
    Confirm,
    Outcome,
    Probe,
)


def searched(
    n_builds: int, truth: dict[int, Outcome], *, first_bad: int, refuse: int = 0
) -> tuple[Answer, list[Action]]:
    """A whole search; builds that truth does not name are good before first_bad and bad from it on."""
    bisection = Bisection(n_builds=n_builds)
    asked: list[Action] = []
    while not isinstance(action := bisection.next(), Answer):
        asked.append(action)
        assert len(asked) < 3 * n_builds + 20
        if isinstance(action, Probe):
            plain: Outcome = "good" if action.index < first_bad else "bad"
            bisection.tell(action.index, truth.get(action.index, plain))
        else:
            refuse -= 1
            bisection.tell_confirmed(action, is_confirmed=refuse < 0)
    return action, asked


def probed(asked: list[Action]) -> list[int]:
    return [action.index for action in asked if isinstance(action, Probe)]


@pytest.mark.parametrize("n_builds", [2, 3, 5, 64, 513])
def test_every_place_is_found_in_log2_steps_and_confirmed_once(n_builds: int) -> None:
    for first_bad in range(1, n_builds):
        answer, asked = searched(n_builds, {}, first_bad=first_bad)

        assert answer.suspects == (first_bad,)
        assert answer.is_exact
        assert answer.confidence == pytest.approx(0.975)
        assert len(probed(asked)) <= math.ceil(math.log2(n_builds - 1))
        assert asked[-1] == Confirm(good=first_bad - 1, bad=first_bad)


def test_the_least_number_of_steps_is_that_of_a_search_without_noise() -> None:
    assert [Bisection(n_builds=n).least_steps for n in (2, 3, 5, 64, 65)] == [0, 1, 2, 6, 6]


def test_a_single_build_is_no_bisection() -> None:
    with pytest.raises(ValueError, match="two builds"):
        Bisection(n_builds=1)


def test_builds_that_fail_beside_the_place_leave_a_range_that_holds_it() -> None:
    for first_bad in range(1, 33):
        broken: dict[int, Outcome] = dict.fromkeys((7, 8, 9, 20), "skip")
        answer, asked = searched(33, broken, first_bad=first_bad)

        assert first_bad in answer.suspects
        assert answer.is_confirmed
        assert len(answer.suspects) == 1 + sum(answer.good < place < answer.bad for place in broken)
        assert len(probed(asked)) == len(set(probed(asked)))


def test_a_cluster_of_broken_builds_is_jumped_over_and_given_up_after_a_few() -> None:
    broken: dict[int, Outcome] = dict.fromkeys(range(20, 55), "skip")
    answer, asked = searched(64, broken, first_bad=40)

    assert (answer.good, answer.bad) == (19, 55)
    assert sum(index in broken for index in probed(asked)) <= MOST_SKIPS + 4

    answer, asked = searched(64, broken, first_bad=12)

    assert answer.suspects == (12,)
    assert sum(index in broken for index in probed(asked)) <= 5


def test_undecided_builds_widen_the_answer_to_a_range() -> None:
    answer, _ = searched(17, {8: "undecided", 9: "undecided"}, first_bad=9)

    assert answer.suspects == (8, 9, 10)
    assert not answer.is_exact


def test_a_hang_counts_as_slow() -> None:
    answer, asked = searched(17, dict.fromkeys(range(11, 16), "hang"), first_bad=11)

    assert answer.suspects == (11, 12, 13, 14, 15, 16)
    assert answer.hung == ()
    assert asked[-1] == Confirm(good=10, bad=16)


def test_a_hang_among_slow_builds_is_a_range_of_two() -> None:
    answer, _ = searched(17, {11: "hang"}, first_bad=11)

    assert answer.suspects == (11, 12)


def test_a_build_that_hangs_among_fast_ones_is_set_aside_and_told() -> None:
    answer, asked = searched(17, {8: "hang"}, first_bad=13)

    assert answer.suspects == (13,)
    assert answer.hung == (8,)
    assert 9 in probed(asked)


def test_fresh_rounds_that_contradict_make_both_builds_be_measured_again() -> None:
    answer, asked = searched(17, {}, first_bad=6, refuse=1)

    assert answer.suspects == (6,)
    assert answer.confidence == pytest.approx(0.95)
    again = {action.index for action in asked if isinstance(action, Probe) and action.n_before}
    assert again == {5, 6}


def test_contradicted_twice_the_answer_is_an_open_range() -> None:
    answer, asked = searched(17, {}, first_bad=6, refuse=2)

    assert not answer.is_confirmed
    assert answer.confidence is None
    assert {5, 6, 7} <= set(answer.suspects)
    assert sum(isinstance(action, Confirm) for action in asked) == 2


def test_two_ends_that_fresh_rounds_contradict_are_not_asked_again() -> None:
    answer, asked = searched(2, {}, first_bad=1, refuse=1)

    assert answer.suspects == (1,)
    assert not answer.is_confirmed
    assert asked == [Confirm(good=0, bad=1)]


def test_the_same_answers_lead_to_the_same_questions() -> None:
    truth: dict[int, Outcome] = {3: "skip", 30: "hang", 31: "undecided"}

    assert searched(64, truth, first_bad=37) == searched(64, truth, first_bad=37)
