"""How fast tokens can be generated one after another: pencil and exact ceilings. Pure.

One device holds everything here; several are in `placement`, several streams in `concurrency`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from llamasweep.ceilings.assumptions import Assumption, Bandwidth, Peak, ridge_flop_per_byte
from llamasweep.ceilings.flop import ATTENTION_COUNTED, decode_flop
from llamasweep.ceilings.kv_cache import (
    READ_LEAST,
    STATE_TWICE,
    ContextSettings,
    context_memory,
    kv_read_bytes,
)
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.gguf.facts import ModelFacts

Bound = Literal["memory", "compute"]


class DecodeCeiling(NamedTuple):
    """What generation can reach.

    weight_bytes, context_bytes: moved per token at the mean depth of the run; bytes_per_token: both.
    ceiling_tps: the bound that `bound` names. pencil_ceiling_tps: bandwidth / model size, as people
    compute it; pencil_with_kv_tps: with the context added. ridge_flop_per_byte: None without a peak.
    """

    n_depth: int
    n_gen: int
    weight_bytes: int
    context_bytes: float
    bytes_per_token: float
    flop_per_token: float
    flop_per_byte: float
    bandwidth_bytes_per_s: float
    ridge_flop_per_byte: float | None
    ceiling_tps: float
    bound: Bound
    pencil_ceiling_tps: float
    pencil_with_kv_tps: float
    assumptions: tuple[Assumption, ...]


def decode_ceiling(
    facts: ModelFacts,
    settings: ContextSettings,
    *,
    n_depth: int,
    n_gen: int,
    bandwidth: Bandwidth,
    peak: Peak | None = None,
) -> DecodeCeiling:
    """The exact ceiling of a run of n_gen tokens behind n_depth others, one sequence.

    Formula: bandwidth / (active bytes + context bytes read at the mean depth); where a peak binds,
    the smaller of that and peak / FLOP per token. Raises NotModelledError, ModelFileError.
    """
    traffic = weight_traffic(facts)
    kv_bytes = kv_read_bytes(facts, settings, n_depth, n_gen)
    n_bytes = traffic.active_bytes + kv_bytes
    flop = decode_flop(facts, n_depth, n_gen)
    memory_tps = bandwidth.bytes_per_s / n_bytes
    is_compute = peak is not None and not peak.is_reference and peak.flop_per_s / flop < memory_tps
    ceiling_tps = peak.flop_per_s / flop if peak is not None and is_compute else memory_tps
    memory = context_memory(facts, settings)
    return DecodeCeiling(
        n_depth=n_depth,
        n_gen=n_gen,
        weight_bytes=traffic.active_bytes,
        context_bytes=kv_bytes,
        bytes_per_token=n_bytes,
        flop_per_token=flop,
        flop_per_byte=flop / n_bytes,
        bandwidth_bytes_per_s=bandwidth.bytes_per_s,
        ridge_flop_per_byte=None if peak is None else ridge_flop_per_byte(peak, bandwidth),
        ceiling_tps=ceiling_tps,
        bound="compute" if is_compute else "memory",
        pencil_ceiling_tps=pencil_tps(facts.size_bytes, bandwidth),
        pencil_with_kv_tps=pencil_tps(facts.size_bytes + kv_bytes, bandwidth),
        assumptions=(
            bandwidth.assumption,
            *(() if peak is None else (peak.assumption, ATTENTION_COUNTED)),
            *traffic.assumptions,
            READ_LEAST,
            *((STATE_TWICE,) if memory.state_bytes_per_sequence else ()),
            *memory.assumptions,
        ),
    )


def pencil_tps(n_bytes: float, bandwidth: Bandwidth) -> float:
    """Tokens per second if each reads n_bytes once: bandwidth / bytes."""
    return bandwidth.bytes_per_s / n_bytes


def achieved_bytes_per_s(tps: float, bytes_per_token: float) -> float:
    """Bandwidth that a measured rate used: t/s x bytes per token."""
    return tps * bytes_per_token


def fraction_of(tps: float, ceiling_tps: float) -> float:
    """Share of a ceiling that a rate reaches; above 1.02 one of the ceiling's assumptions is wrong."""
    return tps / ceiling_tps


class PencilModel(NamedTuple):
    """A model known by its numbers only. params, active_params: whole counts. bits_per_weight: real."""

    params: float
    active_params: float
    bits_per_weight: float

    @property
    def size_bytes(self) -> float:
        """params x bits / 8."""
        return self.params * self.bits_per_weight / 8

    @property
    def bytes_per_token(self) -> float:
        """active params x bits / 8."""
        return self.active_params * self.bits_per_weight / 8

    @property
    def bytes_per_param(self) -> float:
        """bits / 8."""
        return self.bits_per_weight / 8

    @property
    def decode_flop_per_byte(self) -> float:
        """2 FLOP per weight / bytes per weight: work per byte of one token."""
        return 2 / self.bytes_per_param

    @property
    def flop_per_token(self) -> float:
        """2 x active params."""
        return 2 * self.active_params

    @property
    def pencil_flop_per_token(self) -> float:
        """2 x params, experts that are not chosen included: what people compute by hand."""
        return 2 * self.params

    def shrink_against(self, bits: float) -> float:
        """How many times smaller than at so many bits per weight: bits / bits per weight."""
        return bits / self.bits_per_weight

    def ceiling_tps(self, bandwidth: Bandwidth) -> float:
        """bandwidth / bytes per token."""
        return pencil_tps(self.bytes_per_token, bandwidth)
