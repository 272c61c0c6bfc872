"""Decisions after each round: when they come, that they stay, and that they come from the data alone."""

from __future__ import annotations

import numpy as np
import pytest

from llamasweep.stats import (
    Candidate,
    SequentialComparison,
    StoppingRule,
    confirm,
    confirmation_rounds,
    decide,
    is_clear,
)

RULE = StoppingRule()


def rounds(
    ratio: float, sigma: float = 0.005, n: int = 20, seed: int = 0
) -> tuple[list[float], list[float]]:
    """Rates of a and b, noise sigma per process."""
    draw = np.random.default_rng(seed)
    a = 100 * np.exp(draw.normal(0, sigma, n))
    b = 100 * ratio * np.exp(draw.normal(0, sigma, n))
    return a.tolist(), b.tolist()


@pytest.mark.parametrize(
    ("ratio", "state", "n_rounds"),
    [(1.0, "same", 6), (0.9, "slower", 7), (1.12, "faster", 7), (0.999, "same", 6)],
)
def test_a_clear_cell_stops_as_early_as_can_be(ratio: float, state: str, n_rounds: int) -> None:
    found = decide(*rounds(ratio), RULE)
    assert (found.state, found.comparison.n_rounds) == (state, n_rounds)
    assert found.comparison.verdict == state


def test_a_noisy_cell_ends_undecided_at_the_last_round() -> None:
    a, b = rounds(1.02, sigma=0.08, seed=3)
    before, after = decide(a[:19], b[:19], RULE), decide(a, b, RULE)
    assert (before.state, before.is_final) == ("continue", False)
    assert before.comparison.verdict == "undecided"
    assert (after.state, after.is_final) == ("undecided", True)


def test_before_the_least_rounds_nothing_is_decided() -> None:
    a, b = rounds(0.5, n=5)
    found = decide(a, b, RULE)
    assert found.state == "continue"
    assert (found.comparison.low, found.comparison.high) == (None, None)
    assert found.comparison.ratio == pytest.approx(0.5, rel=0.02)


def test_no_round_yet_is_no_figure() -> None:
    found = decide([], [], RULE)
    assert (found.state, found.comparison.ratio, found.comparison.p_value) == (
        "continue",
        None,
        None,
    )


@pytest.mark.parametrize("seed", range(8))
def test_rounds_after_the_decision_change_nothing(seed: int) -> None:
    a, b = rounds(0.955, sigma=0.02, seed=seed)
    whole = decide(a, b, RULE)
    n = whole.comparison.n_rounds
    at_stop = decide(a[:n], b[:n], RULE)
    assert (at_stop.state, at_stop.comparison) == (whole.state, whole.comparison)
    if n < 20:
        assert not decide(a[: n - 1], b[: n - 1], RULE).is_final


@pytest.mark.parametrize("seed", range(4))
def test_it_resumes_from_the_pairs_alone(seed: int) -> None:
    data = {key: rounds(ratio, 0.02, seed=seed) for key, ratio in (("x", 1.0), ("y", 0.93))}
    rules = dict.fromkeys(data, RULE)
    through, broken = SequentialComparison(rules=rules), SequentialComparison(rules=rules)
    for i in range(20):
        pairs = {key: (a[i], b[i]) for key, (a, b) in data.items()}
        found = through.add_round(pairs)
        broken = SequentialComparison(rules=rules, pairs=dict(broken.pairs))
        assert broken.add_round(pairs) == found
    assert through.open_cells() == []
    assert through.changed_cells() == {"y": "slower"}


def test_cells_leave_the_list_of_open_ones_one_by_one() -> None:
    data = {"clear": rounds(0.8), "noisy": rounds(1.0, sigma=0.1, seed=1)}
    sequential = SequentialComparison(rules=dict.fromkeys(data, RULE))
    assert sequential.open_cells() == ["clear", "noisy"]
    for i in range(7):
        sequential.add_round({key: (a[i], b[i]) for key, (a, b) in data.items()})
    assert sequential.open_cells() == ["noisy"]


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(KeyError):
        SequentialComparison(rules={"x": RULE}).add_round({"z": (1.0, 1.0)})


def test_a_dropped_round_is_no_evidence_and_counts_towards_the_last() -> None:
    a, b = rounds(0.9)
    holes: list[float | None] = [None, *b[1:]]
    found = decide(a, holes, RULE)
    assert (found.state, found.comparison.n_rounds, found.comparison.n_dropped) == ("slower", 7, 1)
    assert found.comparison.notes == ("1 round dropped: b is missing",)
    none: list[float | None] = [None] * 20
    assert decide(a, none, RULE).state == "undecided"


def test_a_side_that_fails_three_times_is_not_asked_again() -> None:
    a, _ = rounds(1.0)
    assert decide(a[:2], [None, None], RULE).state == "continue"
    found = decide(a[:3], [None, None, 0.0], RULE)
    assert (found.state, found.comparison.verdict) == ("undecided", "undecided")
    assert found.comparison.notes[-1] == "b gave no rate in 3 rounds"
    assert decide(a[:4], [None, None, None, 100.0], RULE).state == "continue"
    assert decide([None] * 3, [None] * 3, RULE).comparison.notes[-1].startswith("a and b gave")


def test_one_wild_round_does_not_hide_a_change() -> None:
    a, b = rounds(0.93)
    b[2] = 250.0
    found = decide(a, b, RULE)
    assert found.state == "slower"
    assert found.comparison.n_rounds <= 15


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_rounds": 0},
        {"min_rounds": 21},
        {"max_rounds": 65},
        {"alpha": 0.6},
        {"floor_fraction": -1},
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"rounds|alpha|floor"):
        StoppingRule(**wrong)  # type: ignore[arg-type]


# -- confirmation
@pytest.mark.parametrize(
    ("n_candidates", "clear", "expected"),
    [(1, True, 10), (40, True, 13), (1, False, 20), (10**6, False, 28)],
)
def test_fresh_rounds_suffice_for_the_corrected_p(
    n_candidates: int, clear: bool, expected: int
) -> None:
    n = confirmation_rounds(n_candidates, is_clear=clear)
    assert n == expected
    assert n_candidates * 2.0**-n <= 0.025


def test_a_change_is_clear_where_its_interval_lies_wholly_beyond_the_floor() -> None:
    assert is_clear(decide(*rounds(0.9), RULE).comparison)
    assert is_clear(decide(*rounds(1.12), RULE).comparison)
    assert not is_clear(decide(*rounds(0.955, 0.02), RULE).comparison)
    assert not is_clear(decide([1.0], [2.0], RULE).comparison)


def test_no_candidate_needs_no_rounds() -> None:
    with pytest.raises(ValueError, match="nothing to confirm"):
        confirmation_rounds(0, is_clear=True)


def candidate(ratio: float, direction: str, seed: int = 1) -> Candidate:
    a, b = rounds(ratio, n=10, seed=seed)
    return Candidate(direction=direction, a_tps=a, b_tps=b)  # type: ignore[arg-type]


def test_a_change_is_confirmed_by_fresh_rounds_in_its_own_direction() -> None:
    found = confirm({"real": candidate(0.9, "slower"), "gone": candidate(1.0, "slower")})
    assert [found[key].is_confirmed for key in ("real", "gone")] == [True, False]
    assert found["real"].p_holm == pytest.approx(2 / 1024)
    assert not confirm({"other": candidate(0.9, "faster")})["other"].is_confirmed


def test_a_sure_change_within_the_floor_is_not_confirmed() -> None:
    found = confirm({"small": candidate(0.98, "slower")})["small"]
    assert found.p_holm <= 0.025
    assert not found.is_confirmed


def test_a_sure_change_of_less_than_half_the_floor_has_no_small_p() -> None:
    assert confirm({"small": candidate(0.99, "slower")})["small"].p_holm > 0.5


def test_many_candidates_need_a_smaller_p() -> None:
    few = confirm({i: candidate(0.9, "slower", i) for i in range(3)})
    many = confirm({i: candidate(0.9, "slower", i) for i in range(60)})
    assert all(c.is_confirmed for c in few.values())
    assert not any(c.is_confirmed for c in many.values())


def test_a_candidate_without_a_usable_round_is_not_confirmed() -> None:
    found = confirm({"x": Candidate(direction="slower", a_tps=[None], b_tps=[1.0])})["x"]
    assert (found.is_confirmed, found.p_holm, found.comparison.ratio) == (False, 1.0, None)
