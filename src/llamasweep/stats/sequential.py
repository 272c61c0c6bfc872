"""After each round of pairs: is the cell clear, or does it need another round? From the data alone, so it resumes.

A cell's answer is that of the first round at which it was clear; rounds measured after that do not change it. Knows
nothing of engines and cells' meaning; failing cells are the runner's, see `verdicts.standing_verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import numpy as np

from llamasweep.stats import walsh
from llamasweep.stats.arrays import Floats, Ints
from llamasweep.stats.boundary import Boundary, capped
from llamasweep.stats.compare import TOLERANCE, as_ratios, check_alpha, floor_log
from llamasweep.stats.rounds import Rate, is_usable, paired_logs
from llamasweep.stats.sign_flip import two_sided
from llamasweep.stats.spending import adjusted_interval
from llamasweep.stats.verdicts import Comparison, Direction, SpeedVerdict

State = Literal["continue", "faster", "slower", "same", "undecided"]

Key = TypeVar("Key", bound=Hashable)

HOPELESS_ROUNDS = 3
"""A side that gave no rate in this many rounds, and never before, is not asked again."""

_DIRECTIONS: dict[State, Direction] = {"faster": "faster", "slower": "slower"}
_CODES: tuple[State, ...] = ("continue", "faster", "slower", "same", "undecided")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppingRule:
    """How sure, how small and how long.

    alpha: error of a change that is none, both directions together, over all looks; also of each of the two one-sided
    tests behind "same". floor_fraction: changes up to it do not matter. min_rounds: no answer before. max_rounds: then
    it is undecided. Raises ValueError for a rule that cannot be followed.
    """

    floor_fraction: float = 0.03
    alpha: float = 0.05
    min_rounds: int = 6
    max_rounds: int = 20

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        floor_log(self.floor_fraction)
        if not 1 <= self.min_rounds <= self.max_rounds <= 64:
            raise ValueError(f"rounds from {self.min_rounds} to {self.max_rounds}, of at most 64")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Where a cell stands after the rounds so far.

    state: "continue" until it is clear. comparison: over the rounds up to the decision, with the interval adjusted for
    having looked after each round; its p_value is that of these rounds alone, wild ones capped; its verdict is
    "undecided" while the state is "continue". n_rounds_measured: all rounds handed in, dropped and later ones included.
    """

    state: State
    comparison: Comparison
    n_rounds_measured: int

    @property
    def is_final(self) -> bool:
        """Whether no further round is needed."""
        return self.state != "continue"


def decide(a_tps: Sequence[Rate], b_tps: Sequence[Rate], rule: StoppingRule) -> Decision:
    """Where one cell stands, from all its rounds in the order they were measured.

    faster, slower: the group-sequential sign-flip test has rejected "no change" and the estimate is beyond the floor.
    same: the tests of "slower by the floor or more" and "faster by the floor or more" have both been rejected. A round
    that was dropped counts towards max_rounds and not as evidence. undecided: max_rounds are over, or a side gave no
    rate in any of three rounds or more (then `standing_verdict` has the word). Raises ValueError for unequal numbers of rounds.
    """
    logs, notes = paired_logs(a_tps, b_tps)
    n_usable = len(logs)
    logs = logs[: rule.max_rounds]
    states, stops = decide_many(logs[None, :], rule)
    state, n_used = _CODES[int(states[0])], int(stops[0])
    silent = [side for side, tps in (("a", a_tps), ("b", b_tps)) if not any(map(is_usable, tps))]
    is_hopeless = bool(silent) and len(a_tps) >= HOPELESS_ROUNDS
    if is_hopeless:
        notes = (*notes, f"{' and '.join(silent)} gave no rate in {len(a_tps)} rounds")
    if state == "continue" and (len(a_tps) >= rule.max_rounds or is_hopeless):
        state = "undecided"
    used = logs[:n_used]
    limits = adjusted_interval(
        used, first_round=rule.min_rounds, max_rounds=rule.max_rounds, alpha=rule.alpha
    )
    low, high = (None, None) if limits is None else as_ratios(limits)
    verdict: SpeedVerdict = "undecided" if state == "continue" else state
    return Decision(
        state=state,
        comparison=Comparison(
            verdict=verdict,
            ratio=math.exp(walsh.shift(used)) if len(used) else None,
            low=low,
            high=high,
            p_value=two_sided(capped(used)) if len(used) else None,
            n_rounds=n_used,
            n_dropped=len(a_tps) - n_usable,
            floor_fraction=rule.floor_fraction,
            alpha=rule.alpha,
            evidence="paired",
            notes=notes,
        ),
        n_rounds_measured=len(a_tps),
    )


def decide_many(differences: Floats, rule: StoppingRule) -> tuple[Ints, Ints]:
    """Rows of log ratios, all with the same number of rounds -> (state, round of the decision) of each row.

    state: index into continue, faster, slower, same, undecided. Undecided only where max_rounds are there.
    """
    n_rows, n_rounds = differences.shape
    states = np.zeros(n_rows, dtype=np.int64)
    stops = np.full(n_rows, n_rounds, dtype=np.int64)
    open_rows = np.arange(n_rows)
    floor = floor_log(rule.floor_fraction)
    shifts = (0.0, -floor, floor)
    tests = [
        Boundary(n_rows, max_rounds=rule.max_rounds, alpha=alpha)
        for alpha in (rule.alpha, 2 * rule.alpha, 2 * rule.alpha)
    ]
    for n in range(rule.min_rounds, n_rounds + 1):
        d = differences[open_rows, :n]
        for test, moved in zip(tests, shifts, strict=True):
            test.look(d + moved)
        found = _found([test.crossed for test in tests], d, floor)
        if n == rule.max_rounds:
            found[found == 0] = _CODES.index("undecided")
        states[open_rows], stops[open_rows] = found, np.where(found > 0, n, n_rounds)
        for test in tests:
            test.keep(found == 0)
        open_rows = open_rows[found == 0]
        if not len(open_rows):
            break
    return states, stops


def _found(crossed: Sequence[Ints], d: Floats, floor: float) -> Ints:
    """State of each row: crossed of the tests of no change, of "up by the floor", of "down by the floor"."""
    change, up, down = crossed
    found = np.zeros(len(d), dtype=np.int64)
    may = (change != 0) | ((up < 0) & (down > 0))
    if not may.any():
        return found
    shift = np.zeros(len(d))
    shift[may] = np.median(walsh.walsh_averages(d[may]), axis=1)
    found[(up < 0) & (down > 0) & (np.abs(shift) <= floor)] = _CODES.index("same")
    found[(change > 0) & (shift > floor + TOLERANCE)] = _CODES.index("faster")
    found[(change < 0) & (shift < -floor - TOLERANCE)] = _CODES.index("slower")
    return found


@dataclass(kw_only=True, slots=True)
class SequentialComparison(Generic[Key]):
    """Many cells measured by turns, fed round by round. Holds the pairs and nothing else: made again from stored
    pairs, it stands where it stood.

    rules: of each cell, because floors differ by kind of test. pairs: (a_tps, b_tps) of each cell in order of rounds.
    """

    rules: Mapping[Key, StoppingRule]
    pairs: dict[Key, list[tuple[Rate, Rate]]] = field(default_factory=dict)
    _decided: dict[Key, tuple[int, Decision]] = field(default_factory=dict, repr=False)
    """Number of rounds and the decision made from them: a decision takes some 10 ms, and is asked for often."""

    def add_round(self, measured: Mapping[Key, tuple[Rate, Rate]]) -> dict[Key, Decision]:
        """Add one round of some cells; their decisions. A side that failed is None. Raises KeyError for an unknown cell."""
        for key, pair in measured.items():
            if key not in self.rules:
                raise KeyError(key)
            self.pairs.setdefault(key, []).append(pair)
        return {key: self.decision(key) for key in measured}

    def decision(self, key: Key) -> Decision:
        """Where a cell stands. Raises KeyError for an unknown one."""
        pairs = self.pairs.get(key, [])
        n_rounds, decision = self._decided.get(key, (None, None))
        if decision is None or n_rounds != len(pairs):
            decision = decide([a for a, _ in pairs], [b for _, b in pairs], self.rules[key])
            self._decided[key] = len(pairs), decision
        return decision

    def open_cells(self) -> list[Key]:
        """Cells that need another round, in the order of the rules."""
        return [key for key in self.rules if not self.decision(key).is_final]

    def changed_cells(self) -> dict[Key, Direction]:
        """Cells whose first rounds say faster or slower: those that fresh rounds must confirm."""
        found: dict[Key, Direction] = {}
        for key in self.rules:
            state = self.decision(key).state
            if state in _DIRECTIONS:
                found[key] = _DIRECTIONS[state]
        return found
