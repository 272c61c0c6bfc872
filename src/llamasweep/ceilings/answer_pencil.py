"""The answer for a model that is known by three numbers: parameters, active ones, bits per weight. Pure.

Everything in it is a pencil figure: no context, no tensor, no architecture is known.
"""

from __future__ import annotations

from llamasweep.ceilings.absent import with_all_reasons
from llamasweep.ceilings.answer import Answer, request_part
from llamasweep.ceilings.answer_memory import SIZE_UNKNOWN, question_reserve
from llamasweep.ceilings.answer_parts import (
    ConcurrencyPart,
    DecodePart,
    KvCachePart,
    MemoryPart,
    ModelPart,
    PrefillPart,
)
from llamasweep.ceilings.assumptions import Assumption, Peak, ridge_flop_per_byte
from llamasweep.ceilings.decode import PencilModel
from llamasweep.ceilings.memory_fit import DEVICE_RESERVE_BYTES
from llamasweep.ceilings.prefill import NO_PEAK
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Processor, Rig

PENCIL = Assumption(
    topic="weights",
    text="pencil: every active parameter is read once per token, at the same bits each; no context is counted",
)
NO_FILE = "a pencil figure from three numbers; the exact one needs the model's head (a file, an address or a shape)"
SEVERAL = "pencil figures are of one memory; name one device"
_FLOAT_FROM_BITS = 16
_NEED_THE_HEAD = (
    *("model.arch", "kv_cache", "decode.ceiling_tps", "memory.context_bytes"),
    *("memory.compute_bytes_upper", "memory.resident_bytes", "memory.mapped_bytes"),
)


def pencil_answer(model: PencilModel, question: Question, rig: Rig) -> Answer:
    """What three numbers tell. Raises ValueError for numbers that make no sense."""
    if not 0 < model.active_params <= model.params or not 0 < model.bits_per_weight <= 64:
        raise ValueError(
            "a model has parameters, at most as many active ones, and 0 to 64 bits per weight"
        )
    main = _main(rig)
    bandwidth = main.bandwidth
    decode = _decode(model, question, main)
    prefill = _prefill(model, question, main)
    peak = _peak(model, main)
    reasons = dict.fromkeys(_NEED_THE_HEAD, NO_FILE)
    if bandwidth is None:
        reasons["decode.pencil_ceiling_tps"] = main.reason or "the bandwidth is not known"
    if main.memory_bytes is None:
        why = SIZE_UNKNOWN.format(names=main.name)
        reasons |= {"memory.available_bytes": why, "memory.fits": why}
    found = Answer(
        kind="pencil",
        rig=rig.name,
        model=ModelPart(
            arch=None,
            name=None,
            quant=None,
            n_params=model.params,
            size_bytes=model.size_bytes,
            bits_per_weight=model.bits_per_weight,
            n_active_params=model.active_params,
            active_bytes_per_token=model.bytes_per_token,
        ),
        kv_cache=KvCachePart(n_ctx=None, type_k=question.type_k, type_v=question.type_v),
        decode=decode,
        prefill=prefill,
        concurrency=ConcurrencyPart(
            streams=question.n_streams, n_depth=question.n_depth, reason=NO_FILE
        ),
        memory=_memory(model, question, rig, main),
        placement=(),
        workload=request_part(
            question,
            question.n_request_prompt or question.n_prompt,
            question.n_request_gen or question.n_gen,
            question.prefill_tps or prefill.pencil_ceiling_tps,
            question.decode_tps or decode.pencil_ceiling_tps,
        ),
        assumptions=(
            PENCIL,
            *rig.assumptions,
            *(() if bandwidth is None else (bandwidth.assumption,)),
            *(() if peak is None else (peak.assumption,)),
        ),
        reasons=reasons,
    )
    return with_all_reasons(found)


def _main(rig: Rig) -> Processor:
    if len(rig.accelerators) > 1:
        return Processor(name=rig.name, reason=SEVERAL)
    return rig.accelerators[0] if rig.accelerators else rig.processors[0]


def _peak(model: PencilModel, main: Processor) -> Peak | None:
    is_float = model.bits_per_weight >= _FLOAT_FROM_BITS
    return main.peak_float if is_float else main.peak_quantised


def _decode(model: PencilModel, question: Question, main: Processor) -> DecodePart:
    peak, bandwidth = _peak(model, main), main.bandwidth
    return DecodePart(
        n_depth=question.n_depth,
        n_gen=question.n_gen,
        bytes_per_token=model.bytes_per_token,
        weight_bytes_per_token=model.bytes_per_token,
        bandwidth_bytes_per_s=main.bytes_per_s,
        pencil_ceiling_tps=None if bandwidth is None else model.ceiling_tps(bandwidth),
        flop_per_token=model.flop_per_token,
        flop_per_byte=model.decode_flop_per_byte,
        ridge_flop_per_byte=None
        if peak is None or bandwidth is None
        else ridge_flop_per_byte(peak, bandwidth),
    )


def _prefill(model: PencilModel, question: Question, main: Processor) -> PrefillPart:
    peak = _peak(model, main)
    return PrefillPart(
        n_prompt=question.n_prompt,
        flop_per_token=model.flop_per_token,
        pencil_flop_per_token=model.pencil_flop_per_token,
        pencil_ceiling_tps=None if peak is None else peak.flop_per_s / model.flop_per_token,
        peak_flop_per_s=None if peak is None else peak.flop_per_s,
        is_reference=None if peak is None else peak.is_reference,
        reason=NO_PEAK if peak is None else NO_FILE,
    )


def _memory(model: PencilModel, question: Question, rig: Rig, main: Processor) -> MemoryPart:
    reserve = DEVICE_RESERVE_BYTES if rig.accelerators else question_reserve(question)
    total = model.size_bytes + reserve
    available = main.memory_bytes
    return MemoryPart(
        weights_bytes=model.size_bytes,
        reserve_bytes=reserve,
        total_bytes=total,
        available_bytes=available,
        fits=None if available is None else total <= available,
    )
