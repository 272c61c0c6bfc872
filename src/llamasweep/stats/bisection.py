"""Which build to measure next, and what is known at the end: a bisection over builds of which some give no answer.

Knows places in a list (0 is the good end, the last the bad one) and what was found there; who measures, and how a build is
judged, is not known here (`bisection_step` judges). Told the same answers, it asks the same questions: so a bisection resumes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["good", "bad", "hang", "skip", "undecided"]
"""good, bad: as fast as the good end, or slower. hang: it gave no answer in time, which counts as slow. skip: it does not
compile or crashes. undecided: the rounds are used up and it is neither."""

MOST_SKIPS = 8
"""After so many builds without an answer, those that stand among them are no longer tried, and the answer is a range."""

MOST_REFUTED = 2
"""So often the fresh rounds may contradict the answer before it is left open."""

CONFIRM_ERROR = 0.025
"""Chance that fresh rounds confirm two builds that are equally fast (one side of the 5 % of `confirm`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """Measure the build at `index` against both ends. n_before: how often it was measured and the answer taken back."""

    index: int
    n_before: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirm:
    """Measure these two against each other on fresh rounds: good is the last fast build, bad the first slow one."""

    good: int
    bad: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Between `good` and `bad` it became slower.

    suspects: places of the builds of which one did it, in order; one of them where the place is exact. is_confirmed: fresh
    rounds show that `bad` is slower than `good`. confidence: at least so sure of that, as a fraction; None where not confirmed.
    That there is one change only is taken for true. hung: places that hang, are fast again right after, and are no part of
    the answer.
    """

    good: int
    bad: int
    is_confirmed: bool
    confidence: float | None
    hung: tuple[int, ...] = ()

    @property
    def suspects(self) -> tuple[int, ...]:
        return tuple(range(self.good + 1, self.bad + 1))

    @property
    def is_exact(self) -> bool:
        """Whether one build is left."""
        return self.bad - self.good == 1


Action = Probe | Confirm | Answer


@dataclass(slots=True)
class Bisection:
    """One search. n_builds: both ends included. Raises ValueError for fewer than two.

    The build judged last on either side of the boundary is wrong wherever the boundary is: so fresh rounds of these two
    alone make the answer sure, and the error of all steps before does not add up.
    """

    n_builds: int
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    n_refuted: int = 0
    _n_taken_back: dict[int, int] = field(default_factory=dict)
    _confirmed: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.n_builds < 2:
            raise ValueError("a bisection needs two builds")
        self.outcomes = {0: "good", self.n_builds - 1: "bad", **self.outcomes}

    @property
    def least_steps(self) -> int:
        """Builds that a search without noise and failures measures at most: log2 of the places where the change can be."""
        return math.ceil(math.log2(self.n_builds - 1))

    def next(self) -> Action:
        """What to do now."""
        good, slow = self.bounds()
        index = self._between(good, slow)
        if index is None and self.outcomes[slow] == "hang":
            index = self._behind_hang(slow)
        if index is not None:
            return Probe(index=index, n_before=self._n_taken_back.get(index, 0))
        bad = self._first_measured_bad(slow)
        is_confirmed = (good, bad) in self._confirmed
        if not is_confirmed and self.n_refuted < MOST_REFUTED:
            return Confirm(good=good, bad=bad)
        sure = 1 - CONFIRM_ERROR * (1 + self.n_refuted)
        return Answer(
            good=good,
            bad=bad,
            is_confirmed=is_confirmed,
            confidence=sure if is_confirmed else None,
            hung=tuple(i for i, o in sorted(self.outcomes.items()) if o == "hang" and i < good),
        )

    def tell(self, index: int, outcome: Outcome) -> None:
        """What a probe found."""
        self.outcomes[index] = outcome

    def tell_confirmed(self, action: Confirm, *, is_confirmed: bool) -> None:
        """What the fresh rounds say. Where they contradict, both answers are taken back and the builds measured again."""
        if is_confirmed:
            self._confirmed.add((action.good, action.bad))
            return
        self.n_refuted += 1
        inner = [i for i in (action.good, action.bad) if 0 < i < self.n_builds - 1]
        if not inner:
            self.n_refuted = MOST_REFUTED
        for index in inner:
            del self.outcomes[index]
            self._n_taken_back[index] = self._n_taken_back.get(index, 0) + 1
            if self.n_refuted >= MOST_REFUTED:
                self.outcomes[index] = "undecided"

    def bounds(self) -> tuple[int, int]:
        """The last good build, and the first after it that is slow or hangs."""
        good = max(i for i, o in self.outcomes.items() if o == "good")
        return good, min(i for i, o in self.outcomes.items() if i > good and o in ("bad", "hang"))

    def _between(self, good: int, slow: int) -> int | None:
        """The build not tried yet that promises to tell most: near the middle, and away from those that gave no answer.

        Bits of a split times the chance of an answer; failures stand together, so 1 ÷ (1 + distance) is taken off for each.
        """
        untried = [i for i in range(good + 1, slow) if i not in self.outcomes]
        failed = [i for i in range(good + 1, slow) if i in self.outcomes]
        if len(failed) >= MOST_SKIPS:
            untried = [i for i in untried if not failed[0] < i < failed[-1]]
        if not untried or self.n_refuted >= MOST_REFUTED:
            return None

        def promise(index: int) -> tuple[float, int]:
            share = (index - good) / (slow - good)
            bits = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
            chance = math.prod(1 - 1 / (1 + abs(index - place)) for place in failed)
            return round(bits * chance, 9), -index

        return max(untried, key=promise)

    def _behind_hang(self, hung: int) -> int | None:
        """The next build after one that hangs: if it is fast, the hang is a fault of its own."""
        bad = self._first_measured_bad(hung)
        untried = [i for i in range(hung + 1, bad) if i not in self.outcomes]
        n_failed = bad - hung - 1 - len(untried)
        is_over = n_failed >= MOST_SKIPS or self.n_refuted >= MOST_REFUTED
        return None if is_over or not untried else untried[0]

    def _first_measured_bad(self, slow: int) -> int:
        return min(i for i, o in self.outcomes.items() if i >= slow and o == "bad")
