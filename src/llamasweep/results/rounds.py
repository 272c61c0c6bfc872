"""Tries of one question put together: the last try of each round, and its kept repetitions over all rounds. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from llamasweep.results.machine_record import positive_number
from llamasweep.results.rates import summarise_rates
from llamasweep.results.records import Attempt, Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Kept repetitions of a question, in tokens per second; discarded ones beside them.

    std is the sample standard deviation, None below two kept repetitions. kept is empty where the samples
    are not at hand; then median, low and high come from the attempt's own row.
    """

    median: float
    std: float | None
    low: float | None
    high: float | None
    kept: tuple[float, ...]
    discarded: tuple[float, ...]
    n_kept: int
    n_discarded: int


def by_question(attempts: Iterable[Attempt]) -> dict[tuple[str, str], list[Attempt]]:
    """(cell, build) -> its tries, in the order in which they were first asked."""
    questions: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        build = attempt.build_hash or attempt.build_label or ""
        questions.setdefault((attempt.cell_id, build), []).append(attempt)
    return questions


def by_attempt(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """attempt_id -> its repetitions."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.attempt_id, []).append(sample)
    return found


def latest_per_round(tries: Iterable[Attempt]) -> list[Attempt]:
    """The last try of each round, rounds in their order."""
    rounds: dict[int, Attempt] = {}
    for attempt in tries:
        before = rounds.get(attempt.round_index)
        if before is None or attempt.attempt_index >= before.attempt_index:
            rounds[attempt.round_index] = attempt
    return [rounds[index] for index in sorted(rounds)]


def middle_round(rounds: Sequence[Attempt]) -> Attempt:
    """The round to show where one must stand for all: the one whose rate is in the middle, of two the slower.

    rounds: at least one. The last where none has a rate.
    """
    rated = [attempt for attempt in rounds if attempt.median_tps is not None]
    if not rated:
        return rounds[-1]
    return sorted(rated, key=attrgetter("median_tps"))[(len(rated) - 1) // 2]


def pooled_rates(good: Sequence[Attempt], samples: Mapping[str, Sequence[Sample]]) -> Rates | None:
    """Of one round as its own row tells it, of several over all their kept repetitions; None without a rate.

    good: the rounds that succeeded. samples: by attempt.
    """
    ordered = [
        sample
        for attempt in good
        for sample in sorted(
            samples.get(attempt.attempt_id, ()), key=lambda sample: sample.repetition_index
        )
    ]
    kept = tuple(s.tps for s in ordered if not s.is_discarded and positive_number(s.tps))
    discarded = tuple(s.tps for s in ordered if s.is_discarded)
    if len(good) == 1 and good[0].median_tps is not None:
        return _of_one(good[0], good[0].median_tps, kept, discarded)
    figures = summarise_rates(kept)
    if figures.median_tps is None:
        return None
    return Rates(
        median=figures.median_tps,
        std=figures.sample_std_tps,
        low=figures.min_tps,
        high=figures.max_tps,
        kept=kept,
        discarded=discarded,
        n_kept=figures.n_samples,
        n_discarded=len(discarded),
    )


def _of_one(
    only: Attempt, median_tps: float, kept: tuple[float, ...], discarded: tuple[float, ...]
) -> Rates:
    return Rates(
        median=median_tps,
        std=only.sample_std_tps,
        low=only.min_tps if only.min_tps is not None else min(kept, default=None),
        high=only.max_tps if only.max_tps is not None else max(kept, default=None),
        kept=kept,
        discarded=discarded,
        n_kept=only.n_samples if only.n_samples is not None else len(kept),
        n_discarded=only.n_discarded if only.n_discarded is not None else len(discarded),
    )
