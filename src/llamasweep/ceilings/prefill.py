"""How fast a prompt can be read: a roofline for each physical batch, summed. Pure.

Weights are read once per physical batch, so that long batches are bound by compute and short ones
by memory; attention grows with the square of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from llamasweep.ceilings.architecture import Architecture, read_architecture
from llamasweep.ceilings.assumptions import Assumption, Bandwidth, Peak, ridge_flop_per_byte
from llamasweep.ceilings.decode import Bound
from llamasweep.ceilings.flop import (
    ATTENTION_COUNTED,
    LAST_FF_PRUNED,
    attention_flop,
    matrix_flop,
)
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory
from llamasweep.ceilings.traffic import (
    ROUTING,
    UNIFORM_ROUTING,
    expected_experts,
    routed_weights,
    weight_traffic,
)
from llamasweep.gguf.facts import ModelFacts

MAX_PASSES = 100_000
"""Physical batches that a prompt may take here; more is a mistake and would take seconds to sum."""

NO_PEAK = "no peak compute rate is known for this device"


class PrefillCeiling(NamedTuple):
    """What a prompt can reach.

    n_passes: physical batches. bytes_per_token: least traffic / prompt. ceiling_tps, bound, ridge_…:
    None without a peak, and `reason` says so. is_reference: the peak was one and takes the time
    of a pass, so that ceiling_tps is a line to compare with and no bound. memory_tps: of the
    traffic alone. expected_tps: with experts as uniform routing would choose them, None without
    a peak. pencil_flop_per_token: 2 x all parameters. ridge_tokens: size of a physical batch at which compute takes over.
    """

    n_prompt: int
    n_depth: int
    n_passes: int
    flop_per_token: float
    pencil_flop_per_token: float
    bytes_per_token: float
    flop_per_byte: float
    memory_tps: float
    ceiling_tps: float | None
    expected_tps: float | None
    bound: Bound | None
    is_reference: bool
    ridge_flop_per_byte: float | None
    ridge_tokens: float | None
    reason: str | None
    assumptions: tuple[Assumption, ...]


class _Pass(NamedTuple):
    """One physical batch: tokens before it, its own, and how many need logits."""

    n_before: int
    n_tokens: int
    n_outputs: int


def prefill_ceiling(
    facts: ModelFacts,
    settings: ContextSettings,
    *,
    n_prompt: int,
    n_depth: int = 0,
    n_batch: int = 2048,
    bandwidth: Bandwidth,
    peak: Peak | None = None,
) -> PrefillCeiling:
    """The ceiling of a prompt of n_prompt tokens behind n_depth others.

    Formula: n_prompt / sum over physical batches of max(bytes / bandwidth, FLOP / peak). Bytes:
    weights once (the head and the last feed-forward only where a token needs logits: the last of
    each n_batch), the least number of experts, cells read once and written. Raises NotModelledError,
    ModelFileError, ValueError for a prompt of too many passes.
    """
    passes = list(_passes(n_prompt, n_batch, min(settings.n_ubatch, n_batch), n_depth))
    work = _Work(facts, settings)
    costs = [(work.least_bytes(p), work.extra_bytes(p), work.flop(p)) for p in passes]
    n_bytes = sum(cost[0] for cost in costs)
    flop = sum(cost[2] for cost in costs)
    rates = None if peak is None else _rates(costs, bandwidth, peak)
    traffic = weight_traffic(facts)
    ridge = None if peak is None else ridge_flop_per_byte(peak, bandwidth)
    return PrefillCeiling(
        n_prompt=n_prompt,
        n_depth=n_depth,
        n_passes=len(passes),
        flop_per_token=flop / n_prompt,
        pencil_flop_per_token=2.0 * facts.n_params,
        bytes_per_token=n_bytes / n_prompt,
        flop_per_byte=flop / n_bytes,
        memory_tps=n_prompt * bandwidth.bytes_per_s / n_bytes,
        ceiling_tps=None if rates is None else n_prompt / rates.least_s,
        expected_tps=None if rates is None else n_prompt / rates.expected_s,
        bound=None if rates is None else rates.bound,
        is_reference=peak is not None
        and peak.is_reference
        and rates is not None
        and rates.is_peak_used,
        ridge_flop_per_byte=ridge,
        ridge_tokens=None if ridge is None else ridge_tokens(facts, ridge),
        reason=NO_PEAK if peak is None else None,
        assumptions=(
            bandwidth.assumption,
            *(() if peak is None else (peak.assumption,)),
            *traffic.assumptions,
            LAST_FF_PRUNED,
            ATTENTION_COUNTED,
            *((ROUTING, UNIFORM_ROUTING) if traffic.routed else ()),
            *context_memory(facts, settings).assumptions,
        ),
    )


def ridge_tokens(facts: ModelFacts, ridge: float) -> float:
    """Tokens in a pass at which its compute takes as long as reading the weights.

    Formula: ridge FLOP/byte x active bytes / FLOP per token (for a dense model ridge x bytes per
    parameter / 2).
    """
    traffic = weight_traffic(facts)
    return ridge * traffic.active_bytes / (2.0 * traffic.matrix_params)


def _passes(n_prompt: int, n_batch: int, n_ubatch: int, n_depth: int) -> Iterator[_Pass]:
    """Physical batches as llama-bench makes them; the last token of each n_batch has logits."""
    if min(n_prompt, n_batch, n_ubatch) < 1 or n_depth < 0:
        raise ValueError("a prompt, its batches and its depth are counted from 1, 1 and 0")
    if n_prompt / n_ubatch + n_prompt / n_batch > MAX_PASSES:
        raise ValueError(
            f"{n_prompt} tokens in batches of {n_ubatch} are more than {MAX_PASSES} passes"
        )
    for start in range(0, n_prompt, n_batch):
        end = min(start + n_batch, n_prompt)
        for at in range(start, end, n_ubatch):
            n_tokens = min(n_ubatch, end - at)
            yield _Pass(
                n_before=n_depth + at, n_tokens=n_tokens, n_outputs=int(at + n_tokens == end)
            )


class _Rates(NamedTuple):
    least_s: float
    expected_s: float
    bound: Bound
    is_peak_used: bool


def _rates(costs: list[tuple[float, float, int]], bandwidth: Bandwidth, peak: Peak) -> _Rates:
    """Seconds with the least and with the expected traffic, and what takes most of the least."""
    least_s = expected_s = memory_s = 0.0
    is_peak_used = False
    for n_bytes, extra_bytes, flop in costs:
        compute_s = flop / peak.flop_per_s
        read_s = n_bytes / bandwidth.bytes_per_s
        least_s += max(read_s, compute_s)
        memory_s += read_s if read_s > compute_s else 0.0
        is_peak_used = is_peak_used or compute_s > read_s
        expected_s += max((n_bytes + extra_bytes) / bandwidth.bytes_per_s, compute_s)
    return _Rates(
        least_s=least_s,
        expected_s=expected_s,
        bound="memory" if memory_s * 2 > least_s else "compute",
        is_peak_used=is_peak_used,
    )


class _Work:
    """Bytes and FLOP of a pass; what the layers have in common is summed once."""

    def __init__(self, facts: ModelFacts, settings: ContextSettings) -> None:
        self._facts = facts
        self._traffic = weight_traffic(facts)
        self._architecture = read_architecture(facts)
        last = self._architecture.n_run - 1
        self._chosen_by_all = routed_weights(u for u in self._traffic.uses if u.layer != last)
        memory = context_memory(facts, settings)
        self._state_bytes = 2.0 * memory.state_bytes_per_sequence
        self._full_bytes = self._window_bytes = 0
        for layer, cache in zip(self._architecture.layers, memory.layers, strict=True):
            n_bytes = cache.k_bytes + cache.v_used_bytes + cache.index_bytes
            if layer.window_tokens is None:
                self._full_bytes += n_bytes
            else:
                self._window_bytes += n_bytes

    def least_bytes(self, one: _Pass) -> float:
        """Weights with the fewest experts, cells read once and written, state read and written."""
        traffic = self._traffic
        n_bytes = traffic.dense_bytes + one.n_tokens * traffic.row_bytes
        n_bytes += sum(r.n_bytes * r.n_expert_used // r.n_expert for r in traffic.routed)
        if not one.n_outputs:
            n_bytes -= traffic.head_bytes + traffic.last_ff_bytes
        n_seen = one.n_before + one.n_tokens
        n_bytes += self._full_bytes * (self._chosen(n_seen) + one.n_tokens)
        n_bytes += self._window_bytes * (self._in_windows(one) + one.n_tokens)
        return n_bytes + self._state_bytes

    def extra_bytes(self, one: _Pass) -> float:
        """Experts that uniform routing would read beyond the fewest; in the last block one token chooses."""
        return sum(
            r.n_bytes
            / r.n_expert
            * (expected_experts(r.n_expert, r.n_expert_used, one.n_tokens) - r.n_expert_used)
            for r in self._chosen_by_all
        )

    def flop(self, one: _Pass) -> int:
        """Matrices and attention."""
        return matrix_flop(self._facts, one.n_tokens, one.n_outputs) + attention_flop(
            self._facts, one.n_before, one.n_tokens
        )

    def _chosen(self, n_seen: int) -> int:
        """Cells of full layers that a pass must read; an indexer may choose the same few for all."""
        return min(n_seen, self._architecture.index_top_k or n_seen)

    def _in_windows(self, one: _Pass) -> int:
        return cells_in_windows(self._architecture, one.n_before, one.n_tokens)


def cells_in_windows(architecture: Architecture, n_before: int, n_tokens: int) -> int:
    """Cells that the windows of n_tokens behind n_before others cover together; none without windows."""
    window = architecture.window_tokens
    if not window:
        return 0
    if architecture.is_chunked:
        return n_before % window + n_tokens
    return min(n_before + n_tokens, window + n_tokens - 1)
