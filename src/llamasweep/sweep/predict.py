"""How long cells take, and on what ground we say so: history first, else pencil. Pure.

A prediction, not a ceiling: it only orders the evening. Cost depends on test, depth and threads
alone, so a group is predicted from its factors without listing its cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from llamasweep.sweep.blocks import values_of
from llamasweep.sweep.cell import Block, Test
from llamasweep.sweep.footprint import context_bytes, prompt_flop, token_bytes
from llamasweep.sweep.subjects import Model
from llamasweep.units import format_bytes_per_s, format_flop_per_s

PENCIL_FRACTION = 0.6
"""Share of bandwidth / size that generation is taken to reach: between a CPU's half and a GPU's 0.85. And of a known
compute rate that prompts are: kernels were seen between 0.4 and 1.5 of a CPU's FP32 matrix product."""

GUESSED_BANDWIDTH_BYTES_PER_S = 20e9
GUESSED_FLOP_PER_S = 60e9
GUESSED_READ_BYTES_PER_S = 1e9
RESTORE_BYTES_PER_S = 3e9
UNKNOWN_MODEL = "nothing: the files of some models are not known"
START_S = 0.05
"""Start of a process with a model of no size: 0.01 to 0.05 s were measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateKey:
    """What a rate was measured for. n_threads: None where it was left to the engine."""

    model_identity: str
    kind: str
    n_depth: int
    n_threads: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One finished cell, for `Rates.updated`."""

    model: Model
    kind: str
    n_depth: int
    n_threads: int | None
    tps: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Tokens per second, and a sentence that says where it comes from."""

    tps: float
    basis: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What is known of speed.

    history: measured t/s, the newest for each key. bandwidth_bytes_per_s, flop_per_s,
    read_bytes_per_s: of this machine, None = unknown, and a guess that `basis` names is used.
    factors: kind -> measured / pencil of this run.
    """

    history: Mapping[RateKey, float] = field(default_factory=dict)
    bandwidth_bytes_per_s: float | None = None
    flop_per_s: float | None = None
    read_bytes_per_s: float | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    _alike: dict[tuple[str, str], list[RateKey]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _pencils: dict[tuple[str, str, int], float] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for key in self.history:
            self._alike.setdefault((key.model_identity, key.kind), []).append(key)

    def knows(self, model: Model) -> bool:
        """Whether anything was measured of this model; if not, its rates do not depend on threads."""
        return any((model.identity, kind) in self._alike for kind in ("pp", "tg"))

    def rate(self, model: Model, kind: str, n_depth: int, n_threads: int | None) -> Rate:
        """Of pp or tg tokens at a depth: measured, else from the nearest measured, else pencil.

        From the nearest: rate x pencil(this depth) / pencil(that depth). Pencil: see `pencil_tps`.
        """
        key = RateKey(
            model_identity=model.identity, kind=kind, n_depth=n_depth, n_threads=n_threads
        )
        if key in self.history:
            return Rate(tps=self.history[key], basis="measured before")
        pencil = self.pencil_tps(model, kind, n_depth)
        near = min(
            self._alike.get((model.identity, kind), ()),
            key=lambda k: (_distance(k, key), k.n_depth, k.n_threads or 0),
            default=None,
        )
        if near is not None:
            scale = pencil / self.pencil_tps(model, kind, near.n_depth)
            return Rate(
                tps=self.history[near] * scale, basis="measured before at other depths or threads"
            )
        if kind in self.factors:
            return Rate(
                tps=pencil * self.factors[kind], basis="pencil, corrected by the cells measured"
            )
        return Rate(tps=pencil, basis=self._pencil_basis(kind))

    def pencil_tps(self, model: Model, kind: str, n_depth: int) -> float:
        """Formulas, from the roofline with everything read or computed once per token:

        tg = 0.6 x bandwidth / bytes per token at the depth; pp = 0.6 x FLOP/s / FLOP per prompt token at the
        depth (`footprint`).
        """
        key = (model.identity, kind, n_depth)
        if key not in self._pencils:
            self._pencils[key] = self._pencil_tps(model, kind, n_depth)
        return self._pencils[key]

    def _pencil_tps(self, model: Model, kind: str, n_depth: int) -> float:
        assert model.facts is not None  # noqa: S101  (models without facts are not predicted)
        if kind == "tg":
            bandwidth = self.bandwidth_bytes_per_s or GUESSED_BANDWIDTH_BYTES_PER_S
            return PENCIL_FRACTION * bandwidth / max(1.0, token_bytes(model.facts, n_depth))
        flop = prompt_flop(model.facts, n_depth)
        flop_per_s = PENCIL_FRACTION * self.flop_per_s if self.flop_per_s else GUESSED_FLOP_PER_S
        return flop_per_s / max(1.0, flop)

    def _pencil_basis(self, kind: str) -> str:
        if kind == "tg":
            known = "" if self.bandwidth_bytes_per_s else ", which is a guess"
            bandwidth = self.bandwidth_bytes_per_s or GUESSED_BANDWIDTH_BYTES_PER_S
            return (
                f"generation: {PENCIL_FRACTION:g} x bandwidth / bytes per token at "
                f"{format_bytes_per_s(bandwidth)}{known}"
            )
        if not self.flop_per_s:
            guess = format_flop_per_s(GUESSED_FLOP_PER_S)
            return f"prompts: FLOP per token at {guess}, which is a guess"
        return f"prompts: {PENCIL_FRACTION:g} x FLOP/s / FLOP per token at {format_flop_per_s(self.flop_per_s)}"

    def updated(self, measurements: Iterable[Measured]) -> Rates:
        """With cells of this run taken in: exact keys, and a factor per kind for models not seen yet.

        Factor: geometric mean of measured / pencil. Rates that are not above 0 are left out.
        """
        history = dict(self.history)
        logs: dict[str, list[float]] = {}
        for one in measurements:
            if one.kind not in ("pp", "tg") or not math.isfinite(one.tps) or one.tps <= 0:
                continue
            key = RateKey(
                model_identity=one.model.identity,
                kind=one.kind,
                n_depth=one.n_depth,
                n_threads=one.n_threads,
            )
            history[key] = one.tps
            if one.model.facts is not None:
                pencil = self.pencil_tps(one.model, one.kind, one.n_depth)
                logs.setdefault(one.kind, []).append(math.log(one.tps / pencil))
        factors = {kind: math.exp(sum(values) / len(values)) for kind, values in logs.items()}
        return replace(self, history=history, factors={**self.factors, **factors})


def _distance(a: RateKey, b: RateKey) -> float:
    threads = (
        abs(math.log2(a.n_threads / b.n_threads))
        if a.n_threads and b.n_threads
        else float(a.n_threads != b.n_threads)
    )
    return abs(math.log2((a.n_depth + 256) / (b.n_depth + 256))) + threads


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Seconds of a group. once_s: load and depth prefill, paid per process. cells_s: of all its cells."""

    once_s: float
    cells_s: float
    basis: tuple[str, ...]


def group_cost(model: Model, block: Block, rates: Rates, *, repetitions: int, warmup: bool) -> Cost:
    """Of a block of one depth in one process.

    Per cell, and once for all turns of a conversation: warm-up (the whole prompt, one token) + repetitions x (tokens / rate +
    restoring the saved depth state); once: start + size / read rate + prefill of the depth (at the rate of half
    the depth). The prompts of several streams add up, and each of their steps takes 1 / tg and for every further stream the time
    of a prompt token. A warm prompt is asked before each repetition and each warm-up, one stream after another. A model without
    facts costs nothing here, and the basis says so.
    """
    facts = model.facts
    if facts is None:
        return Cost(once_s=START_S, cells_s=0.0, basis=(UNKNOWN_MODEL,))
    (n_depth,) = values_of(block, "n_depth") or (0,)
    (n_streams,) = values_of(block, "concurrency") or (1,)
    threads = (rates.knows(model) and values_of(block, "n_threads")) or (None,)
    turns = tuple(int(turn) for turn in values_of(block, "turn") or ())
    tests = [_conversation(test, max(turns)) if turns else test for test in block.tests]
    n_same = block.n_cells / (len(threads) * len(tests) * max(1, len(turns)))
    basis: dict[str, None] = {}
    cells_s = 0.0
    for n_threads in threads:
        pp = _noted(rates.rate(model, "pp", n_depth, n_threads), basis, block, "pp")
        tg = _noted(rates.rate(model, "tg", n_depth, n_threads), basis, block, "tg")
        before_s = sum(n_streams * (test.n_prompt / pp + test.n_gen / tg) for test in tests)
        cells_s += n_same * _warm_fraction(block) * (repetitions + warmup) * before_s
        tg = 1 / (1 / tg + (n_streams - 1) / pp)
        pp /= n_streams
        cells_s += n_same * sum(_cell_s(test, pp, tg, repetitions, warmup) for test in tests)
    prefill_s = 0.0
    if n_depth:
        half = rates.rate(model, "pp", n_depth // 2, threads[0])
        prefill_s = n_streams * n_depth / half.tps
        state_bytes = context_bytes(facts, n_depth)
        cells_s += block.n_cells * repetitions * state_bytes / RESTORE_BYTES_PER_S
    load_s = START_S + facts.size_bytes / (rates.read_bytes_per_s or GUESSED_READ_BYTES_PER_S)
    return Cost(once_s=load_s + prefill_s, cells_s=cells_s, basis=tuple(basis))


def _warm_fraction(block: Block) -> float:
    """Of its cells, those whose prompt a server is asked before it is timed; a conversation is its own."""
    caches = values_of(block, "prompt_cache") or ()
    return caches.count("warm") / len(caches) if caches and not values_of(block, "turn") else 0.0


def _conversation(test: Test, n_turns: int) -> Test:
    """All tokens that a conversation reads and writes where nothing of it is cached, as one test.

    n turns read n (n + 1) / 2 messages and n (n - 1) / 2 answers.
    """
    answers = n_turns * (n_turns - 1) // 2
    n_read = (answers + n_turns) * test.n_prompt + answers * test.n_gen
    return Test(n_prompt=n_read, n_gen=n_turns * test.n_gen)


def _noted(rate: Rate, basis: dict[str, None], block: Block, kind: str) -> float:
    if any(test.kind in (kind, "pg") for test in block.tests):
        basis[rate.basis] = None
    return rate.tps


def _cell_s(test: Test, pp_tps: float, tg_tps: float, repetitions: int, warmup: bool) -> float:
    timed_s = test.n_prompt / pp_tps + test.n_gen / tg_tps
    warmup_s = test.n_prompt / pp_tps + (1 / tg_tps if test.n_gen else 0.0)
    return repetitions * timed_s + (warmup_s if warmup else 0.0)
