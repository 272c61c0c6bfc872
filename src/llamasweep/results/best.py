"""Which settings measured best, per model: for generation, for prompts, and the cheapest that is nearly as fast.

A setting is a build with everything that the sweep asked for but the depth and the load. A figure with a doubt is chosen
only where it is clearly faster than every one without, and named where it was passed over. Knows no command line and no words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from llamasweep.results.contenders import SAME_WITHIN, Contender, Rate, compare, contenders
from llamasweep.results.records import RunData
from llamasweep.results.request_load import least_load
from llamasweep.sweep.parameters import Scalar

Purpose = Literal["tg", "pp"]
PURPOSES: tuple[Purpose, ...] = ("tg", "pp")
MEMORY_STEP_BYTES = 64 << 20
"""Peaks closer than this are the same memory."""

Key = tuple[str, tuple[tuple[str, Scalar], ...]]


UNUSABLE_DOUBTS = frozenset({"applied_differs", "clamped", "unpinned"})
"""The engine did not run with the setting that was asked for: its rate says nothing about that setting."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The fastest setting for one kind of test.

    n_others: how many settings it was compared with. tied: those without a doubt that are not clearly slower, fastest
    first. second: the fastest without a doubt that is clearly slower, None where there is none. untouched: the one that
    leaves everything to the engine, None where none was measured or it is the chosen. passed_over: faster ones with
    doubts. are_all_doubtful: nothing without a doubt was measured. best_trusted: the fastest without a doubt, which the
    chosen one, doubtful as it is, clearly beats; None where the chosen bears no doubt or all do. deepest: what is
    clearly faster at the deepest depth that was measured, None if nothing.
    """

    purpose: Purpose
    chosen: Contender
    n_others: int
    tied: tuple[Contender, ...]
    second: Contender | None
    untouched: Contender | None
    passed_over: tuple[Contender, ...]
    are_all_doubtful: bool
    best_trusted: Contender | None
    deepest: Contender | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Frugal:
    """The cheapest setting within 3 % of the fastest that costs less: fewest threads, then least memory, then the fastest.

    by_purpose: its rows, by kind of test. within: the kinds in which it is within 3 %. saved_threads, saved_memory_bytes:
    against the fastest setting of the first kind; None where not known or none.
    """

    by_purpose: Mapping[Purpose, Contender]
    within: tuple[Purpose, ...]
    saved_threads: int | None
    saved_memory_bytes: int | None

    @property
    def contender(self) -> Contender:
        """Its row of the first kind that it is chosen for."""
        return self.by_purpose[self.within[0]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelBest:
    """One model of one run, as one engine measured it. choices: by kind, as far as measured. frugal: None where
    nothing within 3 % costs less. n_context: most tokens that were in the cache of any setting. n_other_loads: rows of
    these kinds that are not compared, since they answer several requests at once or a prompt that was read before."""

    engine: str
    model_label: str
    model_hash: str
    choices: Mapping[Purpose, Choice]
    frugal: Frugal | None
    n_context: int
    n_other_loads: int

    @property
    def one_for_all(self) -> bool:
        """Whether one setting is the fastest for generation and for prompts."""
        return len(self.choices) == 2 and len({c.chosen.key for c in self.choices.values()}) == 1

    @property
    def differs_in_threads_alone(self) -> bool:
        """Whether the fastest for generation and for prompts differ in their threads and in nothing else."""
        chosen = [choice.chosen for choice in self.choices.values()]
        if len(chosen) < 2 or self.one_for_all or None in (c.n_threads for c in chosen):
            return False
        return len({_without_threads(c) for c in chosen}) == 1


def best_of(run: RunData) -> tuple[ModelBest, ...]:
    """Every model of the run with a rate, in the order of the run."""
    by_model: dict[tuple[str, str], list[Contender]] = {}
    for one in contenders(run):
        by_model.setdefault((one.engine, one.model_hash), []).append(one)
    made = (_of_model(rows) for rows in by_model.values())
    return tuple(one for one in made if one.choices)


def _of_model(rows: Sequence[Contender]) -> ModelBest:
    of_kind = {purpose: [row for row in rows if row.kind == purpose] for purpose in PURPOSES}
    alike = {purpose: least_load(found, lambda row: row.load) for purpose, found in of_kind.items()}
    fields = {purpose: _longest(found) for purpose, found in alike.items()}
    choices = {purpose: _choice(purpose, field) for purpose, field in fields.items() if field}
    return ModelBest(
        engine=rows[0].engine,
        model_label=rows[0].model_label,
        model_hash=rows[0].model_hash,
        choices=choices,
        frugal=_frugal(
            choices,
            {p: _at_depth(fields[p], choice.chosen.n_depth) for p, choice in choices.items()},
        ),
        n_context=max(row.n_context for row in rows),
        n_other_loads=sum(len(of_kind[purpose]) - len(alike[purpose]) for purpose in PURPOSES),
    )


def _longest(rows: Sequence[Contender]) -> list[Contender]:
    """Rows of the longest test, the one that the report speaks of."""
    longest = max((row.n_tokens for row in rows), default=0)
    return [row for row in rows if row.n_tokens == longest]


def _at_depth(rows: Iterable[Contender], depth: int) -> list[Contender]:
    return [row for row in rows if row.n_depth == depth]


def _choice(purpose: Purpose, rows: Sequence[Contender]) -> Choice:
    """Among the settings at the depth where most were measured, the least of such depths."""
    n_at = Counter(row.n_depth for row in rows)
    depth = min(n_at, key=lambda d: (-n_at[d], d))
    field = sorted(_at_depth(rows, depth), key=lambda row: -row.rate.median)
    trusted = [row for row in field if not row.doubts]
    chosen = _fastest(field, trusted)
    others = [row for row in trusted or field if row is not chosen]
    tied = [row for row in others if compare(chosen.rate, row.rate) != "faster"]
    return Choice(
        purpose=purpose,
        chosen=chosen,
        n_others=len(field) - 1,
        tied=tuple(tied),
        second=next((row for row in others if row not in tied), None),
        untouched=next((row for row in others if not row.settings), None),
        passed_over=tuple(
            row for row in field if row.doubts and row.rate.median > chosen.rate.median
        ),
        are_all_doubtful=not trusted,
        best_trusted=trusted[0] if trusted and chosen.doubts else None,
        deepest=_deepest(rows, chosen),
    )


def _fastest(field: Sequence[Contender], trusted: Sequence[Contender]) -> Contender:
    """The fastest without a doubt, unless a doubtful one is clearly faster and did run with its setting.

    Noise and other load make a rate uncertain, mostly too low; where all repetitions of a noisy row are above all of a
    quiet one, the quiet one is still the worse advice. Both lists: the fastest first.
    """
    usable = [row for row in field if not UNUSABLE_DOUBTS & set(row.doubts)]
    if not trusted:
        return (usable or field)[0]
    best = trusted[0]
    return next((row for row in usable if compare(row.rate, best.rate) == "faster"), best)


def _deepest(rows: Sequence[Contender], chosen: Contender) -> Contender | None:
    """What is clearly faster than the chosen setting at the deepest depth; None where nothing is."""
    depth = max(row.n_depth for row in rows)
    deep = [row for row in _at_depth(rows, depth) if not row.doubts]
    same = next((row for row in deep if row.key == chosen.key), None)
    if depth == chosen.n_depth or same is None:
        return None
    fastest = max(deep, key=lambda row: row.rate.median)
    return fastest if compare(fastest.rate, same.rate) == "faster" else None


def _frugal(
    choices: Mapping[Purpose, Choice], fields: Mapping[Purpose, Sequence[Contender]]
) -> Frugal | None:
    """Near in all kinds where that saves something, else in one kind alone."""
    if not choices:  # whole requests alone were measured
        return None
    near = {purpose: _near(choice, fields[purpose]) for purpose, choice in choices.items()}
    for within in dict.fromkeys((tuple(near), *((purpose,) for purpose in near))):
        found = _cheapest(within, near, choices, fields)
        if found is not None:
            return found
    return None


def _near(choice: Choice, field: Sequence[Contender]) -> dict[Key, Contender]:
    return {
        row.key: row
        for row in field
        if _is_near(row.rate, choice.chosen.rate)
        and (row is choice.chosen or choice.are_all_doubtful or not row.doubts)
    }


def _cheapest(
    within: tuple[Purpose, ...],
    near: Mapping[Purpose, Mapping[Key, Contender]],
    choices: Mapping[Purpose, Choice],
    fields: Mapping[Purpose, Sequence[Contender]],
) -> Frugal | None:
    """The cheapest setting that is near in these kinds; None where it saves nothing against the fastest of the first."""
    candidates = [
        row
        for key, row in near[within[0]].items()
        if all(key in near[purpose] for purpose in within)
    ]
    if not candidates:
        return None
    cheap, fastest = min(candidates, key=_cost), choices[within[0]].chosen
    threads = _saved(fastest.n_threads, cheap.n_threads, 1)
    memory = _saved(fastest.memory_bytes, cheap.memory_bytes, MEMORY_STEP_BYTES)
    if threads is None and (memory is None or fastest.n_threads != cheap.n_threads):
        return None
    of_kind = {p: [row for row in fields[p] if row.key == cheap.key] for p in choices}
    return Frugal(
        by_purpose={purpose: rows[0] for purpose, rows in of_kind.items() if rows},
        within=within,
        saved_threads=threads,
        saved_memory_bytes=memory,
    )


def _is_near(rate: Rate, best: Rate) -> bool:
    return rate.median >= best.median * (1 - SAME_WITHIN)


def _cost(row: Contender) -> tuple[float, float, float]:
    """What is unknown costs most."""
    threads = float("inf") if row.n_threads is None else row.n_threads
    memory = float("inf") if row.memory_bytes is None else row.memory_bytes // MEMORY_STEP_BYTES
    return threads, memory, -row.rate.median


def _saved(before: int | None, after: int | None, least: int) -> int | None:
    if before is None or after is None or before - after < least:
        return None
    return before - after


def _without_threads(row: Contender) -> Key:
    return row.build_hash, tuple(item for item in row.settings if item[0] != "n_threads")
