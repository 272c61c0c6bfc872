"""With which settings a model fits a rig, how large its context can be, and how fast it then is. Pure.

Searches layers on accelerators, layers whose experts stay on the host, context and cache type. Where
each fits is asked of `layouts`, how fast it is of `placed_model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from llamasweep.ceilings.answer_memory import question_reserve
from llamasweep.ceilings.assumptions import Assumption
from llamasweep.ceilings.kv_cache import N_CTX_STEP, ContextSettings, padded_cells
from llamasweep.ceilings.layouts import Layout, Layouts, smallest
from llamasweep.ceilings.memory_fit import COMPUTE_BOUND, DEVICE_RESERVE_BYTES
from llamasweep.ceilings.placed_model import PlacedModel
from llamasweep.ceilings.placement import HOST
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Rig
from llamasweep.errors import NotModelledError
from llamasweep.gguf.facts import ModelFacts

CACHE_TYPES = ("f16", "q8_0", "q4_0")
"""Tried in this order; the first costs no quality."""

CONTEXTS = (4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576)
DEFAULT_N_CTX = 8192
_UNKNOWN_LIMIT_N_CTX = 131072


@dataclass(frozen=True, kw_only=True, slots=True)
class FitChoice:
    """One way to run the model.

    where: accelerators (all layers), experts on the host, layers on the host, host. fits: None where
    a size is not known. decode_ceiling_tps: behind an empty context, …_full_tps: behind a full one;
    None where a bandwidth is not known. *_bytes: need of accelerators and of the host, with what
    stays free on them.
    """

    where: str
    n_gpu_layers: int
    n_cpu_moe: int
    n_ctx: int
    type_kv: str
    fits: bool | None
    decode_ceiling_tps: float | None
    decode_ceiling_full_tps: float | None
    accelerator_bytes: int
    host_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LargestContext:
    """The largest context with a cache type.

    n_ctx: None where not even 256 tokens fit, or where a size is not known (is_known False).
    is_limited_by_model: memory would hold more than the model was trained for.
    """

    type_kv: str
    where: str
    n_ctx: int | None
    is_known: bool
    is_limited_by_model: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """The answer. best: for n_ctx; None where nothing fits, and missing_bytes says what lacks.

    by_context: the best way for each context and cache type. largest: for each way to lay it out.
    is_host_known: False where only accelerators were named.
    """

    rig: str
    n_ctx: int
    n_ctx_train: int | None
    fits: bool | None
    best: FitChoice | None
    by_context: tuple[FitChoice, ...]
    largest: tuple[LargestContext, ...]
    missing_bytes: int | None
    reserve_bytes: int
    device_reserve_bytes: int
    is_host_known: bool
    assumptions: tuple[Assumption, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def find_fit(
    facts: ModelFacts,
    question: Question,
    rig: Rig,
    *,
    cache_types: Sequence[str] = CACHE_TYPES,
) -> Fit:
    """How the model fits; the question's n_ctx, batches, streams and reserve count, not its placement.

    Best is the fastest way that fits with the first cache type that fits at all. Raises
    NotModelledError where the architecture or every cache type is not modelled, ModelFileError.
    """
    search = _Search(facts, question, rig)
    limit = facts.n_ctx_train or _UNKNOWN_LIMIT_N_CTX
    n_ctx = question.n_ctx or min(DEFAULT_N_CTX, limit)
    types = _possible(search, cache_types)
    best = next(filter(None, (search.best(n_ctx, kind) for kind in types)), None)
    contexts = sorted({n_ctx, limit, *(n for n in CONTEXTS if n < limit)})
    rows = [search.best(n, kind) for n in contexts for kind in types]
    return Fit(
        rig=rig.name,
        n_ctx=n_ctx,
        n_ctx_train=facts.n_ctx_train,
        fits=False if best is None else best.fits,
        best=best,
        by_context=tuple(row for row in rows if row is not None),
        largest=tuple(
            search.largest(layout, kind, limit)
            for layout in search.layouts.extremes()
            for kind in types
        ),
        missing_bytes=search.missing_bytes(n_ctx, types) if best is None else None,
        reserve_bytes=question_reserve(question),
        device_reserve_bytes=DEVICE_RESERVE_BYTES,
        is_host_known=rig.host is not None,
        assumptions=(COMPUTE_BOUND, *rig.assumptions),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BestLayout:
    """The fastest layout that fits a question. layout: None where none does; then missing_bytes tells."""

    layout: Layout | None
    fits: bool | None
    missing_bytes: int | None


def _speed_rank(choice: FitChoice) -> tuple[bool, float]:
    """For ordering alone: a choice whose speed is not known comes after all whose speed is."""
    tps = choice.decode_ceiling_full_tps
    return (False, 0.0) if tps is None else (True, tps)


def find_best(facts: ModelFacts, question: Question, rig: Rig) -> BestLayout:
    """The layout for the question's own context and cache types. Raises as `find_fit`."""
    search = _Search(facts, question, rig)
    choices = search.choices(question.settings)
    best = max(choices, key=lambda pair: _speed_rank(pair[1]), default=None)
    if best is None:
        lacks = [
            search.layouts.missing_bytes(layout, question.settings)
            for layout in search.layouts.extremes()
        ]
        missing = min((n for n in lacks if n is not None), default=None)
        return BestLayout(layout=None, fits=False, missing_bytes=missing)
    return BestLayout(layout=best[0], fits=best[1].fits, missing_bytes=None)


def _possible(search: _Search, cache_types: Iterable[str]) -> list[str]:
    """Types that llama.cpp takes for this model's heads. Raises NotModelledError where it takes none."""
    types, refusal = [], NotModelledError("no cache type was named")
    for kind in cache_types:
        try:
            search.best(N_CTX_STEP, kind)
            types.append(kind)
        except NotModelledError as problem:
            refusal = problem
    if not types:
        raise refusal
    return types


class _Search:
    """One model on one rig."""

    def __init__(self, facts: ModelFacts, question: Question, rig: Rig) -> None:
        self._facts, self._question, self._rig = facts, question, rig
        reserve = (question_reserve(question), *[DEVICE_RESERVE_BYTES] * len(rig.accelerators))
        self.layouts = Layouts(facts, rig, reserve)

    def settings(self, n_ctx: int, kind: str) -> ContextSettings:
        asked = self._question.settings
        return replace(asked, n_ctx=n_ctx, type_k=kind, type_v=kind)

    def best(self, n_ctx: int, kind: str) -> FitChoice | None:
        """The fastest layout that fits, None where none does."""
        choices = [choice for _, choice in self.choices(self.settings(n_ctx, kind))]
        return max(choices, key=_speed_rank, default=None)

    def choices(self, settings: ContextSettings) -> list[tuple[Layout, FitChoice]]:
        """The layouts that fit, each with what it gives."""
        return [
            (layout, self._choice(layout, settings, fits))
            for layout in self.layouts.candidates(settings)
            if (fits := self.layouts.fits(layout, settings)) is not False
        ]

    def _choice(self, layout: Layout, settings: ContextSettings, fits: bool | None) -> FitChoice:
        model = PlacedModel(
            facts=self._facts,
            settings=settings,
            rig=self._rig,
            placed=self.layouts.placed(layout, settings),
        )
        n_gen = self._question.n_gen
        n_full = max(0, settings.n_ctx // settings.n_seq - n_gen)
        needs = self.layouts.fit(layout, settings).devices
        return FitChoice(
            where=layout.where,
            n_gpu_layers=layout.n_gpu_layers,
            n_cpu_moe=layout.n_cpu_moe,
            n_ctx=settings.n_ctx,
            type_kv=settings.type_k,
            fits=fits,
            decode_ceiling_tps=model.decode(n_depth=0, n_gen=n_gen).part.ceiling_tps,
            decode_ceiling_full_tps=model.decode(n_depth=n_full, n_gen=n_gen).part.ceiling_tps,
            accelerator_bytes=sum(need.total_bytes for need in needs if need.index != HOST),
            host_bytes=needs[HOST].total_bytes,
        )

    def largest(self, layout: Layout, kind: str, limit: int) -> LargestContext:
        """The largest context of a layout in steps of 256, up to what the model was trained for."""
        top = padded_cells(limit) // N_CTX_STEP

        def does_fit(n_steps_below_top: int) -> bool:
            settings = self.settings((top - n_steps_below_top) * N_CTX_STEP, kind)
            return self.layouts.fits(layout, settings) is not False

        n_below = smallest(0, top - 1, does_fit)
        n_ctx = None if n_below is None else min(limit, (top - n_below) * N_CTX_STEP)
        is_known = n_ctx is None or self.layouts.fits(layout, self.settings(n_ctx, kind)) is True
        return LargestContext(
            type_kv=kind,
            where=layout.where,
            n_ctx=n_ctx if is_known else None,
            is_known=is_known,
            is_limited_by_model=is_known and n_below == 0,
        )

    def missing_bytes(self, n_ctx: int, types: Sequence[str]) -> int | None:
        """The least that lacks with any layout and the smallest cache; None where a size is not known."""
        found = [
            self.layouts.missing_bytes(layout, self.settings(n_ctx, kind))
            for layout in self.layouts.extremes()
            for kind in types
        ]
        return min((n for n in found if n is not None), default=None)
