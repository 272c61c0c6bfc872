"""A change that was seen while looking after each round, tried on fresh rounds: only then is it official.

The fresh rounds are as many as were planned, nobody stops in between, and Holm's correction runs over all cells that
are tried. Their estimate is the one to quote: the first one was chosen because it was large.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from llamasweep.stats import sign_flip
from llamasweep.stats.arrays import Floats
from llamasweep.stats.boundary import capped
from llamasweep.stats.compare import TOLERANCE, compare_paired, floor_log
from llamasweep.stats.many import holm
from llamasweep.stats.rounds import Rate, paired_logs
from llamasweep.stats.verdicts import Comparison, Direction

Key = TypeVar("Key", bound=Hashable)

LEAST_ROUNDS = 10
SPARE_ROUNDS = 2
"""Beyond what the smallest p needs, so that one odd round does not undo a change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A change to confirm: what the first rounds said, and the fresh rounds in order."""

    direction: Direction
    a_tps: Sequence[Rate]
    b_tps: Sequence[Rate]
    floor_fraction: float = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation:
    """What the fresh rounds say.

    is_confirmed: the one-sided p of "at most half the floor", corrected by Holm, is at most alpha / 2 and the fresh
    estimate lies beyond the floor in the direction seen before. p_holm: corrected p; 1 without a usable round.
    comparison: of the fresh rounds alone, with a plain interval, as their number was fixed.
    """

    is_confirmed: bool
    direction: Direction
    p_holm: float
    comparison: Comparison


def confirmation_rounds(
    n_candidates: int, *, is_clear: bool, alpha: float = 0.05, max_rounds: int = 20
) -> int:
    """Fresh rounds for one of so many candidates: what the least corrected p of a sign-flip test needs, and two to spare.

    2^-n × candidates ≤ alpha / 2, at least ten. is_clear: whether the first interval lies wholly beyond the floor
    (`is_clear`); if not, the cell gets max_rounds, because its estimate must be good. Raises ValueError for fewer than
    one candidate.
    """
    if n_candidates < 1:
        raise ValueError("nothing to confirm")
    for_least_p = math.ceil(math.log2(2 * n_candidates / alpha)) + SPARE_ROUNDS
    return max(LEAST_ROUNDS, for_least_p, 0 if is_clear else max_rounds)


def is_clear(first: Comparison) -> bool:
    """Whether the interval of the first rounds lies wholly beyond the floor, to either side."""
    if first.low is None or first.high is None:
        return False
    floor = floor_log(first.floor_fraction)
    return math.log(first.low) > floor or math.log(first.high) < -floor


def confirm(candidates: Mapping[Key, Candidate], *, alpha: float = 0.05) -> dict[Key, Confirmation]:
    """Which candidates hold on their fresh rounds.

    alpha: of calling any change of up to half the floor official in the whole sweep, both directions together.
    """
    p_values = [_one_sided(candidate) for candidate in candidates.values()]
    return {
        key: _confirmation(candidate, p_holm, alpha)
        for (key, candidate), p_holm in zip(candidates.items(), holm(p_values), strict=True)
    }


def _one_sided(candidate: Candidate) -> float:
    d, _ = paired_logs(candidate.a_tps, candidate.b_tps)
    return p_beyond_half_floor(
        d if candidate.direction == "faster" else -d, floor_log(candidate.floor_fraction)
    )


def p_beyond_half_floor(towards: Floats, floor: float) -> float:
    """p of the sign-flip test that the change is at most half the floor. towards, floor: logs, upwards; 1 of nothing."""
    return sign_flip.greater(capped(towards - floor / 2)) if len(towards) else 1.0


def _confirmation(candidate: Candidate, p_holm: float, alpha: float) -> Confirmation:
    fresh = compare_paired(
        candidate.a_tps, candidate.b_tps, floor_fraction=candidate.floor_fraction, alpha=alpha
    )
    towards = 1 if candidate.direction == "faster" else -1
    is_beyond = fresh.ratio is not None and (
        towards * math.log(fresh.ratio) > floor_log(candidate.floor_fraction) + TOLERANCE
    )
    return Confirmation(
        is_confirmed=p_holm <= alpha / 2 and is_beyond,
        direction=candidate.direction,
        p_holm=p_holm,
        comparison=fresh,
    )
