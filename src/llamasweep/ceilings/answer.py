"""One answer to one question about a model on a rig: every ceiling, what it needs, what it assumes. Pure.

Puts the other modules of this room together; the numbers are theirs. What is not modelled stays None
with a reason, and the pencil figures, which need no knowledge of the architecture, stand all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from llamasweep.ceilings.absent import with_all_reasons
from llamasweep.ceilings.answer_memory import memory_answer
from llamasweep.ceilings.answer_parts import (
    ConcurrencyPart,
    DecodePart,
    KvCachePart,
    MemoryPart,
    ModelPart,
    PlacementPart,
    PrefillPart,
    WorkloadPart,
)
from llamasweep.ceilings.answer_rates import prefill_of, streams_of
from llamasweep.ceilings.architecture import not_modelled
from llamasweep.ceilings.assumptions import Assumption
from llamasweep.ceilings.decode import pencil_tps
from llamasweep.ceilings.kv_cache import context_memory, kv_read_bytes
from llamasweep.ceilings.placed_model import PlacedModel
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Rig
from llamasweep.ceilings.traffic import WeightTraffic, weight_traffic
from llamasweep.ceilings.workload import workload
from llamasweep.gguf.facts import ModelFacts

NOT_ASKED = Assumption(
    topic="attention", text="flash attention is on unless it was asked to be off"
)


class Answer(NamedTuple):
    """Everything. kind: pencil where the model is known by three numbers only.

    reasons: path of a part or field that is None -> why, as sentences.
    """

    kind: Literal["exact", "pencil"]
    rig: str
    model: ModelPart
    kv_cache: KvCachePart
    decode: DecodePart
    prefill: PrefillPart
    concurrency: ConcurrencyPart
    memory: MemoryPart
    placement: tuple[PlacementPart, ...]
    workload: WorkloadPart
    assumptions: tuple[Assumption, ...]
    reasons: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, the parts in the order of the fields."""
        plain = {name: _plain(part) for name, part in self._asdict().items()}
        plain["memory"]["disk"] = _plain(self.memory.disk)
        plain["placement"] = [part._asdict() for part in self.placement]
        plain["assumptions"] = [{"topic": a.topic, "text": a.text} for a in self.assumptions]
        return plain


def _plain(part: Any) -> Any:
    return part._asdict() if hasattr(part, "_asdict") else part


def answer(facts: ModelFacts, question: Question, rig: Rig) -> Answer:
    """The answer for a model whose head was read or planned.

    Raises NotModelledError for settings that llama.cpp refuses (a cache type for these heads, a
    quantised V without flash attention), ValueError for numbers that make no sense, ModelFileError
    for metadata that make none.
    """
    why = not_modelled(facts)
    if why is not None:
        return with_all_reasons(_without_architecture(facts, question, rig, why))
    memory = memory_answer(facts, question, rig)
    model = PlacedModel(facts=facts, settings=question.settings, rig=rig, placed=memory.placed)
    decode = model.decode(n_depth=question.n_depth, n_gen=question.n_gen)
    prefill = prefill_of(model, question, n_prompt=question.n_prompt)
    streams = streams_of(model, question)
    found = Answer(
        kind="exact",
        rig=rig.name,
        model=_model(facts, weight_traffic(facts)),
        kv_cache=_kv_cache(facts, question),
        decode=decode.part,
        prefill=prefill.part,
        concurrency=streams.part,
        memory=memory.part,
        placement=memory.placement,
        workload=_request(model, question),
        assumptions=_merged(
            rig.assumptions,
            _context_notes(facts, question),
            decode.assumptions,
            prefill.assumptions,
            streams.assumptions,
            (NOT_ASKED,) if question.flash_attn else (),
            memory.assumptions,
        ),
        reasons={
            **_named(
                ("decode.ceiling_tps", decode.reason),
                ("prefill.ceiling_tps", prefill.part.reason),
                (
                    "concurrency.ceiling_tps"
                    if streams.part.ceiling_tps is None
                    else "concurrency.estimate_tps",
                    streams.part.reason,
                ),
            ),
            **memory.reasons,
        },
    )
    return with_all_reasons(found)


def _named(*reasons: tuple[str, str | None]) -> dict[str, str]:
    return {name: why for name, why in reasons if why is not None}


def _kv_cache(facts: ModelFacts, question: Question) -> KvCachePart:
    settings = question.settings
    context = context_memory(facts, settings)
    return KvCachePart(
        n_ctx=context.cells_per_sequence * settings.n_pools,
        type_k=question.type_k,
        type_v=question.type_v,
        bytes_per_token_full=context.bytes_per_token_full,
        bytes_per_token_swa=context.bytes_per_token_swa,
        swa_cells=context.swa_cells,
        recurrent_state_bytes=context.state_bytes_per_sequence,
        allocated_bytes=context.stored_bytes,
        read_bytes_per_step=kv_read_bytes(facts, settings, question.n_depth, question.n_gen),
    )


def _context_notes(facts: ModelFacts, question: Question) -> tuple[Assumption, ...]:
    """What is asked of a context that is too short for it, or longer than the model knows."""
    settings, n_train = question.settings, facts.n_ctx_train
    n_cells = context_memory(facts, settings).cells_per_sequence
    n_asked = settings.n_ctx // settings.n_seq
    texts = []
    if question.n_tokens > n_cells:
        texts.append(
            f"{question.n_tokens:,} tokens are asked about, and the context holds {n_cells:,}:"
            " rates beyond that are of a longer context"
        )
    if n_train and n_asked > n_train:
        texts.append(
            f"a context of {n_asked:,} tokens is longer than the {n_train:,} that the model was trained with:"
            " it runs, but may write nonsense"
        )
    return tuple(Assumption(topic="context", text=text) for text in texts)


def _merged(*groups: Iterable[Assumption]) -> tuple[Assumption, ...]:
    return tuple(dict.fromkeys(assumption for group in groups for assumption in group))


def _model(facts: ModelFacts, traffic: WeightTraffic | None) -> ModelPart:
    return ModelPart(
        arch=facts.arch,
        name=facts.name,
        quant=facts.quant_short,
        n_params=facts.n_params,
        size_bytes=facts.size_bytes,
        bits_per_weight=facts.bits_per_weight,
        n_active_params=None if traffic is None else traffic.active_params,
        n_active_params_with_embedding=None
        if traffic is None
        else traffic.active_params + traffic.embedding_params,
        active_bytes_per_token=None if traffic is None else traffic.active_bytes,
        tied_embeddings=facts.tied_embeddings,
        n_expert=facts.n_expert,
        n_expert_used=facts.n_expert_used,
        n_ctx_train=facts.n_ctx_train,
    )


def _request(model: PlacedModel, question: Question) -> WorkloadPart:
    """A request behind n_depth tokens: its prompt at that depth, its answer behind the prompt."""
    n_prompt = question.n_request_prompt or question.n_prompt
    n_gen = question.n_request_gen or question.n_gen
    prefill_tps, decode_tps = question.prefill_tps, question.decode_tps
    if prefill_tps is None:
        prefill_tps = prefill_of(model, question, n_prompt=n_prompt).part.ceiling_tps
    if decode_tps is None:
        decode = model.decode(n_depth=question.n_depth + n_prompt, n_gen=n_gen)
        decode_tps = decode.part.ceiling_tps
    return request_part(question, n_prompt, n_gen, prefill_tps, decode_tps)


def request_part(
    question: Question,
    n_prompt: int,
    n_gen: int,
    prefill_tps: float | None,
    decode_tps: float | None,
) -> WorkloadPart:
    """Times of a request from two rates; what needs a rate that is not known is None."""
    is_measured = question.prefill_tps is not None and question.decode_tps is not None
    if prefill_tps is None or decode_tps is None:
        return WorkloadPart(
            n_prompt=n_prompt,
            n_gen=n_gen,
            prefill_tps=prefill_tps,
            decode_tps=decode_tps,
            ttft_s=None if prefill_tps is None else n_prompt / prefill_tps,
            decode_s=None if decode_tps is None else (n_gen - 1) / decode_tps,
        )
    times = workload(n_prompt, n_gen, prefill_tps=prefill_tps, decode_tps=decode_tps)
    return WorkloadPart(
        n_prompt=n_prompt,
        n_gen=n_gen,
        prefill_tps=prefill_tps,
        decode_tps=decode_tps,
        ttft_s=times.ttft_s,
        decode_s=times.decode_s,
        e2e_s=times.e2e_s,
        prefill_fraction=times.prefill_fraction,
        pp_over_tg=times.pp_over_tg,
        is_measured=is_measured,
    )


def _without_architecture(facts: ModelFacts, question: Question, rig: Rig, why: str) -> Answer:
    """The pencil figures of a model whose architecture is not modelled."""
    main = rig.accelerators[0] if rig.accelerators else rig.processors[0]
    is_one = len(rig.accelerators) <= 1
    bandwidth = main.bandwidth if is_one else None
    return Answer(
        kind="exact",
        rig=rig.name,
        model=_model(facts, None),
        kv_cache=KvCachePart(n_ctx=None, type_k=question.type_k, type_v=question.type_v),
        decode=DecodePart(
            n_depth=question.n_depth,
            n_gen=question.n_gen,
            bandwidth_bytes_per_s=None if bandwidth is None else bandwidth.bytes_per_s,
            pencil_ceiling_tps=None
            if bandwidth is None
            else pencil_tps(facts.size_bytes, bandwidth),
        ),
        prefill=PrefillPart(
            n_prompt=question.n_prompt, pencil_flop_per_token=2.0 * facts.n_params, reason=why
        ),
        concurrency=ConcurrencyPart(
            streams=question.n_streams, n_depth=question.n_depth, reason=why
        ),
        memory=MemoryPart(
            weights_bytes=facts.size_bytes,
            available_bytes=main.memory_bytes if is_one else None,
        ),
        placement=(),
        workload=request_part(
            question,
            question.n_request_prompt or question.n_prompt,
            question.n_request_gen or question.n_gen,
            question.prefill_tps,
            question.decode_tps,
        ),
        assumptions=rig.assumptions,
        reasons=dict.fromkeys(
            ("model.active_bytes_per_token", "kv_cache", "decode.ceiling_tps", "memory"), why
        ),
    )
