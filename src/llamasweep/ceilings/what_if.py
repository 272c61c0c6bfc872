"""Several rigs side by side for one model: the table that one buys by. Pure.

One user, long prompts, and N users; each on the placement that fits and is fastest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from llamasweep.ceilings.answer import Answer, answer
from llamasweep.ceilings.assumptions import Assumption
from llamasweep.ceilings.fit import BestLayout, find_best
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Rig
from llamasweep.gguf.facts import ModelFacts

DOES_NOT_FIT = "it does not fit"


@dataclass(frozen=True, kw_only=True, slots=True)
class WhatIfRow:
    """One rig.

    fits, where, n_gpu_layers, n_cpu_moe: with one user; missing_bytes where it does not fit.
    decode_…: one user, behind an empty context. prefill_…: the prompt; is_reference: faster units
    exist than its peak counts. ttft_s, e2e_s: of a request. fits_streams, streams_…: all users
    together, each behind a prompt of its own. What a rig cannot hold has no rates. reasons: why
    something is None.
    """

    rig: str
    memory_bytes: int | None
    bandwidth_bytes_per_s: float | None
    fits: bool | None
    where: str | None
    n_gpu_layers: int | None
    n_cpu_moe: int | None
    missing_bytes: int | None
    decode_ceiling_tps: float | None
    decode_pencil_ceiling_tps: float | None
    prefill_ceiling_tps: float | None
    prefill_is_reference: bool | None
    ttft_s: float | None
    e2e_s: float | None
    fits_streams: bool | None
    streams_ceiling_tps: float | None
    streams_estimate_tps: float | None
    reasons: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class WhatIf:
    """The table. n_prompt, n_gen: of a request; streams: users at once."""

    model: str | None
    quant: str
    n_prompt: int
    n_gen: int
    n_depth: int
    streams: int
    rows: tuple[WhatIfRow, ...]
    assumptions: tuple[Assumption, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def compare_rigs(facts: ModelFacts, question: Question, rigs: Sequence[Rig]) -> WhatIf:
    """One row for each rig, in their order.

    The question's placement does not count: each rig gets its best. Raises NotModelledError,
    ModelFileError.
    """
    answers = [_row(facts, question, rig) for rig in rigs]
    return WhatIf(
        model=facts.name,
        quant=facts.quant_short,
        n_prompt=question.n_prompt,
        n_gen=question.n_gen,
        n_depth=question.n_depth,
        streams=question.n_streams,
        rows=tuple(row for row, _ in answers),
        assumptions=tuple(dict.fromkeys(a for _, found in answers for a in found)),
    )


def _row(
    facts: ModelFacts, question: Question, rig: Rig
) -> tuple[WhatIfRow, tuple[Assumption, ...]]:
    one_user = question._replace(n_streams=1, n_ctx=None)
    n_per_user = question.n_depth + question.n_prompt + question.n_gen
    all_users = question._replace(
        n_depth=question.n_depth + question.n_prompt,
        n_ctx=question.n_streams * n_per_user,
    )
    alone, found = _answered(facts, one_user, rig)
    together, found_together = _answered(facts, all_users, rig)
    main = rig.accelerators or rig.processors
    sizes = [processor.memory_bytes for processor in main]
    bandwidths = {processor.bytes_per_s for processor in main}
    layout = found.layout
    row = WhatIfRow(
        rig=rig.name,
        memory_bytes=None if None in sizes else sum(s for s in sizes if s is not None),
        bandwidth_bytes_per_s=bandwidths.pop() if len(bandwidths) == 1 else None,
        fits=found.fits,
        where=None if layout is None else layout.where,
        n_gpu_layers=None if layout is None else layout.n_gpu_layers,
        n_cpu_moe=None if layout is None else layout.n_cpu_moe,
        missing_bytes=found.missing_bytes,
        decode_ceiling_tps=None if alone is None else alone.decode.ceiling_tps,
        decode_pencil_ceiling_tps=None if alone is None else alone.decode.pencil_ceiling_tps,
        prefill_ceiling_tps=None if alone is None else alone.prefill.ceiling_tps,
        prefill_is_reference=None if alone is None else alone.prefill.is_reference,
        ttft_s=None if alone is None else alone.workload.ttft_s,
        e2e_s=None if alone is None else alone.workload.e2e_s,
        fits_streams=found_together.fits,
        streams_ceiling_tps=None if together is None else together.concurrency.ceiling_tps,
        streams_estimate_tps=None if together is None else together.concurrency.estimate_tps,
        reasons={
            **_reasons(alone, _OF_ONE, DOES_NOT_FIT),
            **_reasons(together, _OF_ALL, _users_unfit(question.n_streams)),
        },
    )
    assumptions = [a for one in (alone, together) if one is not None for a in one.assumptions]
    return row, tuple(assumptions)


def _users_unfit(n_streams: int) -> str:
    return f"{n_streams} users do not fit" if n_streams > 1 else DOES_NOT_FIT


def _answered(facts: ModelFacts, question: Question, rig: Rig) -> tuple[Answer | None, BestLayout]:
    """The answer with the best layout, None where none fits."""
    found = find_best(facts, question, rig)
    if found.layout is None:
        return None, found
    placed = question._replace(
        n_gpu_layers=found.layout.n_gpu_layers, n_cpu_moe=found.layout.n_cpu_moe
    )
    return answer(facts, placed, rig), found


_OF_ONE = {
    "decode.ceiling_tps": "decode_ceiling_tps",
    "prefill.ceiling_tps": "prefill_ceiling_tps",
    "memory.fits": "fits",
}
_OF_ALL = {
    "concurrency.ceiling_tps": "streams_ceiling_tps",
    "concurrency.estimate_tps": "streams_estimate_tps",
    "memory.fits": "fits_streams",
}


def _reasons(found: Answer | None, names: Mapping[str, str], unfit: str) -> dict[str, str]:
    """The answer's reasons, under the names of a row. unfit: where there is no answer."""
    if found is None:
        return dict.fromkeys((n for n in names.values() if not n.startswith("fits")), unfit)
    return {names[key]: why for key, why in found.reasons.items() if key in names}
