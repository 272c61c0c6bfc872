"""How fast several streams generate together on one device: a ceiling and an estimate. Pure.

Weights are read once per step for all streams, each stream's context for itself, and the matrices
are calculated for every stream, so that compute takes over as streams are added.
"""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.assumptions import Assumption, Bandwidth, Peak
from llamasweep.ceilings.decode import Bound
from llamasweep.ceilings.flop import decode_flop
from llamasweep.ceilings.kv_cache import (
    READ_LEAST,
    ContextSettings,
    context_memory,
    kv_read_bytes,
)
from llamasweep.ceilings.traffic import ROUTING, UNIFORM_ROUTING, batch_traffic
from llamasweep.gguf.facts import ModelFacts

NO_COMPUTE_LINE = (
    "neither a peak nor a prefill rate is known, so that only memory bounds the streams"
)

ADDITIVE = Assumption(
    topic="streams",
    text="the estimate adds memory time and compute time; the ceiling takes the longer one",
)


class StreamRates(NamedTuple):
    """All streams together. compute_tps: None where no compute line is known; estimate_tps then too."""

    n_streams: int
    memory_tps: float
    compute_tps: float | None
    ceiling_tps: float
    estimate_tps: float | None
    bound: Bound


class ConcurrencyCeiling(NamedTuple):
    """What n_streams reach together.

    weight_bytes, expected_weight_bytes: per step, with the fewest experts and with uniform routing.
    context_bytes: per stream and step. ceiling_tps: min(memory, compute). estimate_tps: what to
    expect, None without a compute line, and `reason` says so.
    """

    n_streams: int
    weight_bytes: int
    expected_weight_bytes: float
    context_bytes: float
    memory_tps: float
    compute_tps: float | None
    ceiling_tps: float
    estimate_tps: float | None
    bound: Bound
    reason: str | None
    assumptions: tuple[Assumption, ...]


def concurrency_ceiling(
    facts: ModelFacts,
    settings: ContextSettings,
    *,
    n_streams: int,
    n_depth: int,
    bandwidth: Bandwidth,
    peak: Peak | None = None,
    prefill_tps: float | None = None,
) -> ConcurrencyCeiling:
    """Streams with n_depth tokens each, in one device's memory.

    The compute line is a measured prefill rate where one is given, else peak / FLOP per token. The
    estimate takes uniform routing, the ceiling the fewest experts. Raises NotModelledError,
    ModelFileError, ValueError for no streams.
    """
    if n_streams < 1:
        raise ValueError(f"{n_streams} streams make no sense")
    weights = batch_traffic(facts, n_streams)
    kv_bytes = kv_read_bytes(facts, settings, n_depth, 1)
    compute_tps = prefill_tps
    if compute_tps is None and peak is not None:
        compute_tps = peak.flop_per_s / decode_flop(facts, n_depth, 1)
    least = stream_rates(weights.least_bytes, kv_bytes, n_streams, bandwidth, compute_tps)
    expected = stream_rates(weights.expected_bytes, kv_bytes, n_streams, bandwidth, compute_tps)
    return ConcurrencyCeiling(
        n_streams=n_streams,
        weight_bytes=weights.least_bytes,
        expected_weight_bytes=weights.expected_bytes,
        context_bytes=kv_bytes,
        memory_tps=least.memory_tps,
        compute_tps=compute_tps,
        ceiling_tps=least.ceiling_tps,
        estimate_tps=expected.estimate_tps,
        bound=least.bound,
        reason=NO_COMPUTE_LINE if compute_tps is None else None,
        assumptions=(
            bandwidth.assumption,
            *_compute_line(peak, prefill_tps),
            READ_LEAST,
            ADDITIVE,
            *((ROUTING, UNIFORM_ROUTING) if weights.most_bytes > weights.least_bytes else ()),
            *context_memory(facts, settings).assumptions,
        ),
    )


def _compute_line(peak: Peak | None, prefill_tps: float | None) -> tuple[Assumption, ...]:
    if prefill_tps is not None:
        text = f"compute allows what prefill reached, {prefill_tps:.4g} tokens/s"
        return (Assumption(topic="peak", text=text),)
    return () if peak is None else (peak.assumption,)


def stream_rates(
    weight_bytes: float,
    context_bytes_per_stream: float,
    n_streams: int,
    bandwidth: Bandwidth,
    compute_tps: float | None,
) -> StreamRates:
    """Tokens per second of all streams from the bytes of a step.

    Formulas: t_memory = (weights + streams x context) / bandwidth, t_compute = streams /
    compute_tps; ceiling = streams / max of both, estimate = streams / their sum.
    """
    n_bytes = weight_bytes + n_streams * context_bytes_per_stream
    memory_s = n_bytes / bandwidth.bytes_per_s
    memory_tps = n_streams / memory_s
    if compute_tps is None:
        return StreamRates(
            n_streams=n_streams,
            memory_tps=memory_tps,
            compute_tps=None,
            ceiling_tps=memory_tps,
            estimate_tps=None,
            bound="memory",
        )
    return StreamRates(
        n_streams=n_streams,
        memory_tps=memory_tps,
        compute_tps=compute_tps,
        ceiling_tps=min(memory_tps, compute_tps),
        estimate_tps=n_streams / (memory_s + n_streams / compute_tps),
        bound="compute" if compute_tps < memory_tps else "memory",
    )


def per_stream_tps(total_tps: float, n_streams: int) -> float:
    """Rate of one of the streams: total / streams."""
    return total_tps / n_streams


def throughput_gain(total_tps: float, one_stream_tps: float) -> float:
    """How many times one stream's rate all of them reach together."""
    return total_tps / one_stream_tps


def latency_cost(one_stream_tps: float, per_stream_tps: float) -> float:
    """How many times slower each stream is than one alone."""
    return one_stream_tps / per_stream_tps
