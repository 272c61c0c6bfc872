"""One step of a bisection judged: is this build as fast as the good end, or as slow as the bad one?

The build and both ends run once in each round; after each round the sequential test compares the build with either end. Rates
in, an outcome out; which build it is, and what comes next, is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llamasweep.stats import walsh
from llamasweep.stats.bisection import Outcome
from llamasweep.stats.compare import compare_paired
from llamasweep.stats.confirm import Candidate, Confirmation, confirm, confirmation_rounds, is_clear
from llamasweep.stats.rounds import Rate, paired_logs
from llamasweep.stats.sequential import Decision, StoppingRule, decide
from llamasweep.stats.verdicts import Comparison

FIRST_ROUNDS = 20
STEP_ROUNDS = 40
"""A step that is undecided after the first rounds gets as many again."""
CRASHES = 2
"""A build that gave no rate and failed so often is skipped."""
WIDEST_FLOOR = 0.5
"""So far from an end is far, however much farther the other one is."""
WIDE_SHARE = 0.8
"""Only where the machine's floor is less than this share of half the way is there room between the ends."""
_CELL = "cell"

Fate = Literal["rate", "failed", "hang", "refused"]
"""What became of one process: it gave a rate; it crashed; its time was up; it cannot be asked for this cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRates:
    """The rounds of one step in their order, one entry per round on each side; None where a process gave no rate.

    fates: of the build's own processes.
    """

    good_tps: Sequence[Rate]
    build_tps: Sequence[Rate]
    bad_tps: Sequence[Rate]
    fates: Sequence[Fate]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepJudged:
    """outcome: None while more rounds are needed. is_between: slower than the good end and faster than the bad one, so that
    there is more than one change. to_good, to_bad: the build against either end.
    """

    outcome: Outcome | None
    to_good: Comparison
    to_bad: Comparison
    is_between: bool = False


def half_way(good_tps: Sequence[Rate], bad_tps: Sequence[Rate]) -> float:
    """The floor of a step: half of the way between the ends as a fraction, on the log scale, from all their rounds so far;
    at most `WIDEST_FLOOR`.

    Raises ValueError without a round in which both have a rate.
    """
    logs, _ = paired_logs(good_tps, bad_tps)
    if not len(logs):
        raise ValueError("the ends have no round in common")
    return min(math.expm1(abs(walsh.shift(logs)) / 2), WIDEST_FLOOR)


def ends_decision(
    good_tps: Sequence[Rate], bad_tps: Sequence[Rate], floor_fraction: float
) -> Decision:
    """The bad end against the good one after so many rounds."""
    return _decide(good_tps, bad_tps, floor_fraction)


def judge_step(rates: StepRates, *, floor_fraction: float, practical_floor: float) -> StepJudged:
    """Where a step stands.

    floor_fraction: half the way between the ends (`half_way`), so that "within it of one end" and "beyond it from the
    other" mean the same. practical_floor: of the machine; a build that differs from both ends by more lies between them, and
    counts as slow, because the first change is looked for.
    """
    to_good = _decide(rates.good_tps, rates.build_tps, floor_fraction)
    to_bad = _decide(rates.bad_tps, rates.build_tps, floor_fraction)
    is_between = practical_floor < WIDE_SHARE * floor_fraction and _is_between(
        rates, practical_floor
    )
    outcome = _failure(rates.fates) or ("bad" if is_between else _speed(to_good, to_bad))
    if outcome is None and len(rates.build_tps) >= STEP_ROUNDS:
        outcome = "undecided"
    return StepJudged(
        outcome=outcome,
        to_good=to_good.comparison,
        to_bad=to_bad.comparison,
        is_between=is_between and outcome == "bad",
    )


def _speed(to_good: Decision, to_bad: Decision) -> Outcome | None:
    """One clear test decides unless the other contradicts it."""
    is_good = to_bad.state == "faster" or to_good.state == "same"
    is_bad = to_good.state == "slower" or to_bad.state == "same"
    if is_good == is_bad:
        return None
    return "good" if is_good else "bad"


def _is_between(rates: StepRates, floor_fraction: float) -> bool:
    to_good = _decide(rates.good_tps, rates.build_tps, floor_fraction)
    to_bad = _decide(rates.bad_tps, rates.build_tps, floor_fraction)
    return to_good.state == "slower" and to_bad.state == "faster"


def _failure(fates: Sequence[Fate]) -> Outcome | None:
    """What the processes alone say of a build; None where its rates decide. A hang now and then is a lost round."""
    n_hangs, has_rate = fates.count("hang"), "rate" in fates
    if "refused" in fates:
        return "skip"
    if n_hangs > 1 or (n_hangs and not has_rate):
        return "hang"
    return "skip" if not has_rate and fates.count("failed") >= CRASHES else None


def _decide(a_tps: Sequence[Rate], b_tps: Sequence[Rate], floor_fraction: float) -> Decision:
    """The first rounds under their own rule, so that they decide soon; then all rounds under that of twice as many."""
    first = decide(
        a_tps[:FIRST_ROUNDS],
        b_tps[:FIRST_ROUNDS],
        StoppingRule(floor_fraction=floor_fraction, max_rounds=FIRST_ROUNDS),
    )
    if first.state != "undecided" or len(a_tps) <= FIRST_ROUNDS:
        return first
    more = StoppingRule(
        floor_fraction=floor_fraction, min_rounds=FIRST_ROUNDS + 1, max_rounds=STEP_ROUNDS
    )
    return decide(a_tps, b_tps, more)


def is_settled(decision: Decision, n_rounds: int) -> bool:
    """Whether the two ends need no further round: they are clear, the rounds are used up, or a side gives no rate."""
    if decision.state in ("continue", "undecided"):
        return n_rounds >= STEP_ROUNDS or (n_rounds >= 3 and decision.comparison.ratio is None)
    return True


def fresh_rounds(ends: Comparison) -> int:
    """Fresh rounds for the answer: more where the way between the ends is not clear. ends: all their rounds so far."""
    return confirmation_rounds(1, is_clear=is_clear(ends))


def confirm_answer(
    good_tps: Sequence[Rate], bad_tps: Sequence[Rate], *, floor_fraction: float
) -> Confirmation:
    """Whether fresh rounds show that the first slow build is slower than the last fast one."""
    candidate = Candidate(
        direction="slower", a_tps=good_tps, b_tps=bad_tps, floor_fraction=floor_fraction
    )
    return confirm({_CELL: candidate})[_CELL]


def ends_differ_again(
    good_tps: Sequence[Rate], bad_tps: Sequence[Rate], floor_fraction: float
) -> Comparison:
    """Both ends over the rounds of all steps so far, which had no part in choosing them."""
    return compare_paired(good_tps, bad_tps, floor_fraction=floor_fraction)


def share_explained(step: Comparison, ends: Comparison) -> float | None:
    """How much of the way between the ends the step found is, on the log scale; None where a side has no rate."""
    if step.ratio is None or ends.ratio is None or ends.ratio == 1:
        return None
    return math.log(step.ratio) / math.log(ends.ratio)
