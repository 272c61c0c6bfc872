"""What an answer says of rates: generation, prompt and streams, on one device or over several. Pure.

A model that one memory holds is asked of `decode`, `prefill` and `concurrency`; one that is spread is
asked of `placement`, where prompts and streams are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamasweep.ceilings.answer_parts import ConcurrencyPart, DecodePart, PrefillPart
from llamasweep.ceilings.assumptions import Assumption, Bandwidth, Peak
from llamasweep.ceilings.cell import SPREAD_PREFILL
from llamasweep.ceilings.concurrency import concurrency_ceiling
from llamasweep.ceilings.decode import decode_ceiling
from llamasweep.ceilings.flop import decode_flop
from llamasweep.ceilings.kv_cache import layer_read_bytes
from llamasweep.ceilings.placement import HOST, Machine, Placement, placed_decode
from llamasweep.ceilings.prefill import PrefillCeiling, prefill_ceiling
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Processor, Rig
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.gguf.facts import ModelFacts

SPREAD_STREAMS = "several streams over several devices are not modelled"
SPREAD_BANDWIDTH = Assumption(
    topic="bandwidth",
    text="several memories hold the model; its bandwidth here is bytes per token / the sum of their times",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """The parts, what they assume, and why a figure is missing."""

    decode: DecodePart
    prefill: PrefillPart
    concurrency: ConcurrencyPart
    assumptions: tuple[Assumption, ...]
    reasons: dict[str, str]


def rates_of(
    facts: ModelFacts,
    question: Question,
    rig: Rig,
    placed: Placement,
    *,
    n_prompt: int | None = None,
    n_gen: int | None = None,
    n_decode_depth: int | None = None,
) -> Rates:
    """Rates of a placement. The keyword arguments take the place of the question's own lengths.

    Raises NotModelledError, ModelFileError.
    """
    asked = _Asked(
        facts,
        question,
        n_prompt=question.n_prompt if n_prompt is None else n_prompt,
        n_gen=question.n_gen if n_gen is None else n_gen,
        n_decode_depth=question.n_depth if n_decode_depth is None else n_decode_depth,
    )
    alone = holder(facts, rig, placed)
    if alone is None:
        return asked.over_several(rig, placed)
    if alone.bandwidth is None:
        return asked.without_bandwidth(alone.reason or "the bandwidth is not known")
    return asked.on_one(alone)


def holder(facts: ModelFacts, rig: Rig, placed: Placement) -> Processor | None:
    """The one processor that reads everything but rows of the embedding; None where several do."""
    n_row_bytes = weight_traffic(facts).row_bytes
    busy = [
        device.index
        for device in placed.devices
        if device.active_bytes > (n_row_bytes if device.index == HOST else 0)
        or device.context_layers
    ]
    return rig.processors[busy[0]] if len(busy) == 1 else None


class _Asked:
    """One question, and the ways to answer it."""

    def __init__(
        self,
        facts: ModelFacts,
        question: Question,
        *,
        n_prompt: int,
        n_gen: int,
        n_decode_depth: int,
    ) -> None:
        self._facts, self._question = facts, question
        self._n_prompt, self._n_gen, self._n_depth = n_prompt, n_gen, n_decode_depth

    def on_one(self, processor: Processor) -> Rates:
        bandwidth, question = processor.bandwidth, self._question
        assert bandwidth is not None  # noqa: S101
        peak = processor.peak_for(self._facts)
        decode = decode_ceiling(
            self._facts,
            question.settings,
            n_depth=self._n_depth,
            n_gen=self._n_gen,
            bandwidth=bandwidth,
            peak=peak,
        )
        prefill = self._prompt(bandwidth, peak)
        streams, assumptions = self._streams(processor, peak)
        reasons = {} if prefill.reason is None else {"prefill.ceiling_tps": prefill.reason}
        if streams.reason is not None:
            reasons["concurrency.estimate_tps"] = streams.reason
        return Rates(
            decode=DecodePart(
                n_depth=self._n_depth,
                n_gen=self._n_gen,
                bytes_per_token=decode.bytes_per_token,
                weight_bytes_per_token=decode.weight_bytes,
                bandwidth_bytes_per_s=decode.bandwidth_bytes_per_s,
                ceiling_tps=decode.ceiling_tps,
                bound=decode.bound,
                pencil_ceiling_tps=decode.pencil_ceiling_tps,
                pencil_with_kv_tps=decode.pencil_with_kv_tps,
                flop_per_token=decode.flop_per_token,
                flop_per_byte=decode.flop_per_byte,
                ridge_flop_per_byte=decode.ridge_flop_per_byte,
            ),
            prefill=PrefillPart(
                n_prompt=self._n_prompt,
                n_passes=prefill.n_passes,
                flop_per_token=prefill.flop_per_token,
                pencil_flop_per_token=prefill.pencil_flop_per_token,
                ceiling_tps=prefill.ceiling_tps,
                expected_tps=prefill.expected_tps,
                pencil_ceiling_tps=_pencil_prefill(self._facts, peak),
                memory_tps=prefill.memory_tps,
                bound=prefill.bound,
                peak_flop_per_s=None if peak is None else peak.flop_per_s,
                is_reference=None if peak is None else prefill.is_reference,
                ridge_tokens=prefill.ridge_tokens,
                reason=prefill.reason,
            ),
            concurrency=streams,
            assumptions=(*decode.assumptions, *prefill.assumptions, *assumptions),
            reasons=reasons,
        )

    def _prompt(self, bandwidth: Bandwidth, peak: Peak | None) -> PrefillCeiling:
        return prefill_ceiling(
            self._facts,
            self._question.settings,
            n_prompt=self._n_prompt,
            n_depth=self._question.n_depth,
            n_batch=self._question.n_batch,
            bandwidth=bandwidth,
            peak=peak,
        )

    def _streams(
        self, processor: Processor, peak: Peak | None
    ) -> tuple[ConcurrencyPart, tuple[Assumption, ...]]:
        question = self._question
        assert processor.bandwidth is not None  # noqa: S101
        n_depth = question.n_depth + (question.n_gen - 1) // 2
        found = concurrency_ceiling(
            self._facts,
            question.settings,
            n_streams=question.n_streams,
            n_depth=n_depth,
            bandwidth=processor.bandwidth,
            peak=peak,
            prefill_tps=question.prefill_tps,
        )
        is_reference = peak is not None and peak.is_reference and question.prefill_tps is None
        part = ConcurrencyPart(
            streams=question.n_streams,
            n_depth=n_depth,
            ceiling_tps=found.ceiling_tps,
            estimate_tps=found.estimate_tps,
            per_stream_estimate_tps=found.estimate_tps and found.estimate_tps / question.n_streams,
            memory_tps=found.memory_tps,
            compute_tps=found.compute_tps,
            bound=found.bound,
            is_reference=None if found.compute_tps is None else is_reference,
            reason=found.reason,
        )
        return part, found.assumptions if question.n_streams > 1 else ()

    def over_several(self, rig: Rig, placed: Placement) -> Rates:
        """Several memories: their times add."""
        unknown = [
            processor
            for device, processor in zip(placed.devices, rig.processors, strict=True)
            if processor.bandwidth is None and (device.active_bytes or device.context_layers)
        ]
        if unknown:
            why = f"{unknown[0].name}: {unknown[0].reason or 'its bandwidth is not known'}"
            return self.without_bandwidth(why)
        known = [processor.bandwidth for processor in rig.processors]
        fallback = next(bandwidth for bandwidth in known if bandwidth is not None)
        machine = Machine(bandwidths=tuple(b or fallback for b in known))
        question = self._question
        decode = placed_decode(
            self._facts,
            question.settings,
            placed,
            machine,
            n_depth=self._n_depth,
            n_gen=self._n_gen,
        )
        n_kv_bytes = sum(
            layer_read_bytes(self._facts, question.settings, self._n_depth, self._n_gen)
        )
        n_weight_bytes = sum(device.active_bytes for device in placed.devices)
        n_bytes = n_weight_bytes + n_kv_bytes
        pencil_s = sum(
            device.weights_bytes / bandwidth.bytes_per_s
            for device, bandwidth in zip(placed.devices, machine.bandwidths, strict=True)
        )
        kv_s = sum(decode.device_s) - sum(
            device.active_bytes / bandwidth.bytes_per_s
            for device, bandwidth in zip(placed.devices, machine.bandwidths, strict=True)
        )
        flop = decode_flop(self._facts, self._n_depth, self._n_gen)
        part = DecodePart(
            n_depth=self._n_depth,
            n_gen=self._n_gen,
            bytes_per_token=n_bytes,
            weight_bytes_per_token=n_weight_bytes,
            bandwidth_bytes_per_s=n_bytes * decode.ceiling_tps,
            ceiling_tps=decode.ceiling_tps,
            bound="memory",
            pencil_ceiling_tps=1 / pencil_s,
            pencil_with_kv_tps=1 / (pencil_s + kv_s),
            flop_per_token=flop,
            flop_per_byte=flop / n_bytes,
        )
        return self._generation_only(
            part, (SPREAD_BANDWIDTH, *decode.assumptions), SPREAD_PREFILL, SPREAD_STREAMS
        )

    def without_bandwidth(self, why: str) -> Rates:
        """Counts, and no rate."""
        traffic = weight_traffic(self._facts)
        n_bytes = traffic.active_bytes + sum(
            layer_read_bytes(self._facts, self._question.settings, self._n_depth, self._n_gen)
        )
        flop = decode_flop(self._facts, self._n_depth, self._n_gen)
        part = DecodePart(
            n_depth=self._n_depth,
            n_gen=self._n_gen,
            bytes_per_token=n_bytes,
            weight_bytes_per_token=traffic.active_bytes,
            flop_per_token=flop,
            flop_per_byte=flop / n_bytes,
        )
        rates = self._generation_only(part, traffic.assumptions, why, why)
        rates.reasons["decode.ceiling_tps"] = why
        return rates

    def _generation_only(
        self,
        decode: DecodePart,
        assumptions: tuple[Assumption, ...],
        why_no_prefill: str,
        why_no_streams: str,
    ) -> Rates:
        question = self._question
        counts = self._prompt(Bandwidth(bytes_per_s=1.0), None)  # what is taken of it needs no rate
        return Rates(
            decode=decode,
            prefill=PrefillPart(
                n_prompt=self._n_prompt,
                n_passes=counts.n_passes,
                flop_per_token=counts.flop_per_token,
                pencil_flop_per_token=counts.pencil_flop_per_token,
                reason=why_no_prefill,
            ),
            concurrency=ConcurrencyPart(
                streams=question.n_streams, n_depth=question.n_depth, reason=why_no_streams
            ),
            assumptions=assumptions,
            reasons={
                "prefill.ceiling_tps": why_no_prefill,
                "concurrency.ceiling_tps": why_no_streams,
            },
        )


def _pencil_prefill(facts: ModelFacts, peak: Peak | None) -> float | None:
    """peak / (2 x all parameters), as people compute it."""
    return None if peak is None else peak.flop_per_s / (2.0 * facts.n_params)
