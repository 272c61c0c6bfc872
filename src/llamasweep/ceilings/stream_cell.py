"""The ceiling and the estimate of one cell with several streams at once, all of them together. Pure.

Generation is `concurrency`'s arithmetic at the mean depth of a run. Prompts are read in shared physical batches; where an engine
reads them all before it generates, a test of both is the sum of its parts.
"""

from __future__ import annotations

import math

from llamasweep.ceilings.assumptions import Bandwidth, Peak
from llamasweep.ceilings.cell import CellCeiling, CellKind
from llamasweep.ceilings.concurrency import ADDITIVE, NO_COMPUTE_LINE, stream_rates
from llamasweep.ceilings.decode import Bound
from llamasweep.ceilings.flop import ATTENTION_COUNTED, decode_flop
from llamasweep.ceilings.kv_cache import (
    READ_LEAST,
    ContextSettings,
    context_memory,
    kv_read_bytes,
)
from llamasweep.ceilings.prefill import NO_PEAK, prefill_ceiling
from llamasweep.ceilings.traffic import ROUTING, UNIFORM_ROUTING, batch_traffic, weight_traffic
from llamasweep.errors import ModelFileError, NotModelledError
from llamasweep.gguf.facts import ModelFacts

OVERLAPPING = "prompts and answers of several streams overlap in a server, which is not modelled"
ESTIMATES_GENERATION = "the estimate is one of generation"


def stream_cell_ceiling(
    facts: ModelFacts,
    settings: ContextSettings,
    *,
    n_streams: int,
    lengths: tuple[int, int, int],
    n_batch: int,
    bandwidth: Bandwidth,
    peak: Peak | None,
    is_overlapping: bool,
) -> CellCeiling:
    """What n_streams reach together; per token of any stream what is counted per token.

    lengths: (n_prompt, n_gen, n_depth) of each stream. settings: the context of one. is_overlapping: prompts of some streams
    are read while others answer. Never raises for a model: what is not modelled has a reason instead.
    """
    asked = _Streams(facts, settings, n_streams, n_batch, bandwidth, peak)
    n_prompt, n_gen, n_depth = lengths
    try:
        if n_gen == 0:
            return asked.prompts(n_prompt, n_depth)
        if n_prompt == 0:
            return asked.generation(n_gen, n_depth)
        if is_overlapping:
            return asked.nothing("pg", OVERLAPPING)
        return asked.both(n_prompt, n_gen, n_depth)
    except (NotModelledError, ModelFileError, ValueError) as error:
        kind: CellKind = "pp" if n_gen == 0 else "tg" if n_prompt == 0 else "pg"
        return asked.nothing(kind, str(error))


class _Streams:
    """One question, and the answers to its parts."""

    def __init__(
        self,
        facts: ModelFacts,
        settings: ContextSettings,
        n_streams: int,
        n_batch: int,
        bandwidth: Bandwidth,
        peak: Peak | None,
    ) -> None:
        self._facts, self._settings, self._n_streams = facts, settings, n_streams
        self._n_batch, self._bandwidth, self._peak = n_batch, bandwidth, peak

    def nothing(self, kind: CellKind, reason: str) -> CellCeiling:
        """No ceiling, for a reason."""
        return CellCeiling(
            kind=kind,
            bandwidth_bytes_per_s=self._bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            reason=reason,
            estimate_reason=reason,
        )

    @property
    def _peak_flop_per_s(self) -> float | None:
        return None if self._peak is None else self._peak.flop_per_s

    def _is_reference(self, bound: Bound) -> bool:
        return bound == "compute" and self._peak is not None and self._peak.is_reference

    def generation(self, n_gen: int, n_depth: int) -> CellCeiling:
        """Each step: the weights once, each stream's context, one token of each stream."""
        n, facts = self._n_streams, self._facts
        weights = batch_traffic(facts, n)
        kv_bytes = kv_read_bytes(facts, self._settings, n_depth, n_gen)
        flop = decode_flop(facts, n_depth, n_gen)
        compute_tps = None if self._peak is None else self._peak.flop_per_s / flop
        least = stream_rates(weights.least_bytes, kv_bytes, n, self._bandwidth, compute_tps)
        expected = stream_rates(weights.expected_bytes, kv_bytes, n, self._bandwidth, compute_tps)
        n_bytes = (weights.least_bytes + n * kv_bytes) / n
        return CellCeiling(
            kind="tg",
            ceiling_tps=least.ceiling_tps,
            estimate_tps=expected.estimate_tps,
            estimate_reason=NO_COMPUTE_LINE if compute_tps is None else None,
            is_reference=self._is_reference(least.bound),
            bound=least.bound,
            bytes_per_token=n_bytes,
            flop_per_token=flop,
            arithmetic_intensity=flop / n_bytes,
            bandwidth_bytes_per_s=self._bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            assumptions=(
                self._bandwidth.assumption,
                *(() if self._peak is None else (self._peak.assumption, ATTENTION_COUNTED)),
                READ_LEAST,
                ADDITIVE,
                *((ROUTING, UNIFORM_ROUTING) if weights.most_bytes > weights.least_bytes else ()),
                *context_memory(facts, self._settings).assumptions,
            ),
        )

    def prompts(self, n_prompt: int, n_depth: int) -> CellCeiling:
        """All prompts in as few physical batches as they fill, each with its own attention.

        Formula: all tokens / max(all FLOP / peak, all bytes / bandwidth), where the bytes are those of one prompt alone times
        the streams, less the weights of the passes that are saved.
        """
        one = prefill_ceiling(
            self._facts,
            self._settings,
            n_prompt=n_prompt,
            n_depth=n_depth,
            n_batch=self._n_batch,
            bandwidth=self._bandwidth,
            peak=self._peak,
        )
        n_tokens = self._n_streams * n_prompt
        n_ubatch = min(self._settings.n_ubatch, self._n_batch)
        n_saved = self._n_streams * one.n_passes - math.ceil(n_tokens / n_ubatch)
        n_bytes = n_tokens * one.bytes_per_token - max(0, n_saved) * self._pass_bytes()
        read_s = n_bytes / self._bandwidth.bytes_per_s
        compute_s = (
            None if self._peak is None else n_tokens * one.flop_per_token / self._peak.flop_per_s
        )
        bound: Bound | None = None
        if compute_s is not None:
            bound = "compute" if compute_s > read_s else "memory"
        return CellCeiling(
            kind="pp",
            ceiling_tps=None if compute_s is None else n_tokens / max(read_s, compute_s),
            estimate_reason=ESTIMATES_GENERATION,
            is_reference=bound is not None and self._is_reference(bound),
            bound=bound,
            bytes_per_token=n_bytes / n_tokens,
            flop_per_token=one.flop_per_token,
            arithmetic_intensity=n_tokens * one.flop_per_token / n_bytes,
            bandwidth_bytes_per_s=self._bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            reason=NO_PEAK if compute_s is None else None,
            assumptions=one.assumptions,
        )

    def _pass_bytes(self) -> int:
        """Weights that a pass over tokens of no output reads at least."""
        traffic = weight_traffic(self._facts)
        routed = sum(r.n_bytes * r.n_expert_used // r.n_expert for r in traffic.routed)
        return traffic.dense_bytes + routed

    def both(self, n_prompt: int, n_gen: int, n_depth: int) -> CellCeiling:
        """First all prompts, then all answers."""
        prompts = self.prompts(n_prompt, n_depth)
        answers = self.generation(n_gen, n_depth + n_prompt)
        if prompts.ceiling_tps is None or answers.ceiling_tps is None:
            return self.nothing("pg", prompts.reason or NO_PEAK)
        n_tokens = n_prompt + n_gen
        prompt_s, answer_s = n_prompt / prompts.ceiling_tps, n_gen / answers.ceiling_tps
        return CellCeiling(
            kind="pg",
            ceiling_tps=n_tokens / (prompt_s + answer_s),
            estimate_reason=ESTIMATES_GENERATION,
            is_reference=prompts.is_reference or answers.is_reference,
            bound=prompts.bound if prompt_s > answer_s else answers.bound,
            bandwidth_bytes_per_s=self._bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            assumptions=tuple(dict.fromkeys(prompts.assumptions + answers.assumptions)),
        )
