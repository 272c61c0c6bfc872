"""The measured settings of a run, side by side: rounds pooled, retries folded, depth told apart from settings.

Says of each whether its figures can be relied on. Which of them is best is said by `best`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from llamasweep.results.machine_record import positive_number
from llamasweep.results.records import FAILED_STATUSES, Attempt, RunData, Sample
from llamasweep.results.request_load import RequestLoad, request_load
from llamasweep.results.rounds import by_attempt, by_question, latest_per_round, pooled_rates
from llamasweep.sweep.parameters import Scalar

SAME_WITHIN = 0.03
"""Medians closer than this are treated as the same speed (a choice; the samples stay visible)."""

BROKEN_ABOVE = 1.02
"""A share of the exact ceiling above this means that an assumption is wrong, not that the machine is good."""

HARMLESS_FLAGS = frozenset({"first_sample_slow", "far_below_ceiling"})
"""Flags that explain a figure and leave it usable; any other is a doubt, one not known here too."""

Verdict = Literal["faster", "slower", "same", "undecided"]
Settings = tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Tokens per second over the repetitions that were kept. std, low, high: None where they are not known."""

    median: float
    std: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """One cell on one build.

    engine: what measured it. settings: what the sweep asked for, depth left out, by name. n_threads: as asked, else as
    the engine told, None where neither is known. n_context: tokens in the cache at the end of the test. is_reference:
    the ceiling is a peak that may be exceeded. memory_bytes: peak on host and devices together, None if not measured.
    doubts: why the rate is not to be relied on, () if it is.
    """

    engine: str
    build_label: str
    build_hash: str
    build_number: int | None
    model_label: str
    model_hash: str
    settings: Settings
    n_threads: int | None
    kind: str
    test: str
    n_tokens: int
    n_depth: int
    n_context: int
    rate: Rate
    ceiling_fraction: float | None
    is_reference: bool
    memory_bytes: int | None
    doubts: tuple[str, ...]
    attempt_ids: tuple[str, ...]

    @property
    def key(self) -> tuple[str, Settings]:
        """What tells one setting from another: the build and all settings."""
        return self.build_hash, self.settings

    @property
    def load(self) -> RequestLoad:
        """What it was asked at once."""
        return request_load(dict(self.settings))

    def get(self, name: str) -> Scalar | None:
        """The value asked for, None where it was left to the engine."""
        return dict(self.settings).get(name)


def compare(a: Rate, b: Rate) -> Verdict:
    """How a stands to b. Different only where the medians are more than 3 % apart and the ranges do not overlap.

    Undecided: a large difference within the spread, or fewer than two repetitions to see one.
    """
    ratio = a.median / b.median
    if 1 / (1 + SAME_WITHIN) <= ratio <= 1 + SAME_WITHIN:
        return "same"
    if min(a.n, b.n) < 2 or None in (a.low, a.high, b.low, b.high):
        return "undecided"
    assert a.low is not None and a.high is not None  # noqa: S101, PT018  (looked at above)
    assert b.low is not None and b.high is not None  # noqa: S101, PT018  (looked at above)
    if a.low > b.high:
        return "faster"
    return "slower" if a.high < b.low else "undecided"


def contenders(run: RunData) -> tuple[Contender, ...]:
    """Every cell that has a rate, in the order in which it was first tried."""
    samples = by_attempt(run.samples)
    questions = by_question(run.attempts)
    made = (_contender(latest_per_round(tries), samples) for tries in questions.values())
    return tuple(one for one in made if one is not None)


def _contender(
    rounds: Sequence[Attempt], samples: Mapping[str, Sequence[Sample]]
) -> Contender | None:
    good = [a for a in rounds if a.status == "ok" and positive_number(a.median_tps)]
    rate = _rate(good, samples)
    if rate is None:
        return None
    one = good[-1]
    ceiling_tps = positive_number(one.ceiling_tps)
    fraction = rate.median / ceiling_tps if ceiling_tps else None
    n_threads = one.requested.get("n_threads", one.applied.get("n_threads"))
    return Contender(
        engine=one.engine,
        build_label=one.build_label or "build not recorded",
        build_hash=one.build_hash or one.build_label or "",
        build_number=one.build_number,
        model_label=one.model_label,
        model_hash=one.model_hash or one.model_label,
        settings=tuple(
            (name, value)
            for name, value in sorted(one.requested.items())
            if value is not None and name != "n_depth"
        ),
        n_threads=n_threads if isinstance(n_threads, int) else None,
        kind=one.test_kind,
        test=one.test_label,
        n_tokens=one.n_prompt + one.n_gen,
        n_depth=one.n_depth,
        n_context=one.n_depth + one.n_prompt + one.n_gen,
        rate=rate,
        ceiling_fraction=fraction,
        is_reference=any(a.ceiling_is_reference for a in good),
        memory_bytes=_memory(good),
        doubts=_doubts(rounds, good, fraction),
        attempt_ids=tuple(a.attempt_id for a in good),
    )


def _rate(good: Sequence[Attempt], samples: Mapping[str, Sequence[Sample]]) -> Rate | None:
    found = pooled_rates(good, samples)
    if found is None:
        return None
    return Rate(median=found.median, std=found.std, low=found.low, high=found.high, n=found.n_kept)


def _memory(good: Iterable[Attempt]) -> int | None:
    """Largest peak of the rounds, resident memory and device memory together."""
    peaks = []
    for attempt in good:
        told = attempt.telemetry
        if told is not None and told.ram_peak_process_bytes is not None:
            peaks.append(told.ram_peak_process_bytes + (told.vram_peak_device_bytes or 0))
    return max(peaks, default=None)


def _doubts(
    rounds: Sequence[Attempt], good: Sequence[Attempt], fraction: float | None
) -> tuple[str, ...]:
    doubts = [flag for a in good for flag in a.flags if flag not in HARMLESS_FLAGS]
    is_bound = not any(a.ceiling_is_reference for a in good)
    if is_bound and fraction is not None and fraction > BROKEN_ABOVE:
        doubts.append("above_ceiling")
    if any(a.status in FAILED_STATUSES for a in rounds):
        doubts.append("round_failed")
    return tuple(dict.fromkeys(doubts))
