"""What an answer says of prompts and of several streams, where one memory holds the model. Pure."""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.answer_parts import ConcurrencyPart, PrefillPart
from llamasweep.ceilings.assumptions import Assumption, Bandwidth
from llamasweep.ceilings.concurrency import concurrency_ceiling
from llamasweep.ceilings.placed_model import PlacedModel
from llamasweep.ceilings.prefill import prefill_ceiling
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Processor

SPREAD_PREFILL = "a prompt over several devices is not modelled"
SPREAD_STREAMS = "several streams over several devices are not modelled"
NO_BANDWIDTH = "the bandwidth is not known"


class PrefillAnswer(NamedTuple):
    """The part, and what it assumes."""

    part: PrefillPart
    assumptions: tuple[Assumption, ...]


class StreamsAnswer(NamedTuple):
    """The part, and what it assumes."""

    part: ConcurrencyPart
    assumptions: tuple[Assumption, ...]


def prefill_of(model: PlacedModel, question: Question, *, n_prompt: int) -> PrefillAnswer:
    """A prompt of n_prompt tokens behind the question's depth.

    Where several devices hold the model, the counts only. Raises NotModelledError, ModelFileError,
    ValueError for a prompt of too many passes.
    """
    holder = model.holder
    bandwidth = None if holder is None else holder.bandwidth
    peak = None if holder is None or bandwidth is None else holder.peak_for(model.facts)
    found = prefill_ceiling(
        model.facts,
        model.settings,
        n_prompt=n_prompt,
        n_depth=question.n_depth,
        n_batch=question.n_batch,
        bandwidth=bandwidth or Bandwidth(bytes_per_s=1.0),  # then only counts are taken of it
        peak=peak,
    )
    n_params_flop = found.pencil_flop_per_token
    part = PrefillPart(
        n_prompt=n_prompt,
        n_passes=found.n_passes,
        flop_per_token=found.flop_per_token,
        bytes_per_token=found.bytes_per_token,
        pencil_flop_per_token=n_params_flop,
        ceiling_tps=found.ceiling_tps,
        expected_tps=found.expected_tps,
        pencil_ceiling_tps=None if peak is None else peak.flop_per_s / n_params_flop,
        memory_tps=None if bandwidth is None else found.memory_tps,
        bound=found.bound,
        peak_flop_per_s=None if peak is None else peak.flop_per_s,
        is_reference=None if peak is None else found.is_reference,
        ridge_tokens=found.ridge_tokens,
        reason=_why_not(holder) or found.reason,
    )
    return PrefillAnswer(part=part, assumptions=() if bandwidth is None else found.assumptions)


def _why_not(holder: Processor | None) -> str | None:
    if holder is None:
        return SPREAD_PREFILL
    return (holder.reason or NO_BANDWIDTH) if holder.bandwidth is None else None


def streams_of(model: PlacedModel, question: Question) -> StreamsAnswer:
    """The question's streams, each in the middle of its answer. Raises NotModelledError, ModelFileError."""
    holder = model.holder
    n_depth = question.n_depth + (question.n_gen - 1) // 2
    if holder is None or holder.bandwidth is None:
        why = SPREAD_STREAMS if holder is None else _why_not(holder)
        part = ConcurrencyPart(streams=question.n_streams, n_depth=n_depth, reason=why)
        return StreamsAnswer(part=part, assumptions=())
    peak = holder.peak_for(model.facts)
    found = concurrency_ceiling(
        model.facts,
        model.settings,
        n_streams=question.n_streams,
        n_depth=n_depth,
        bandwidth=holder.bandwidth,
        peak=peak,
        prefill_tps=question.prefill_tps,
    )
    is_reference = peak is not None and peak.is_reference and question.prefill_tps is None
    estimate_tps = found.estimate_tps
    part = ConcurrencyPart(
        streams=question.n_streams,
        n_depth=n_depth,
        ceiling_tps=found.ceiling_tps,
        estimate_tps=estimate_tps,
        per_stream_estimate_tps=None if estimate_tps is None else estimate_tps / question.n_streams,
        memory_tps=found.memory_tps,
        compute_tps=found.compute_tps,
        bound=found.bound,
        is_reference=None if found.compute_tps is None else is_reference,
        reason=found.reason,
    )
    return StreamsAnswer(part=part, assumptions=found.assumptions if question.n_streams > 1 else ())
