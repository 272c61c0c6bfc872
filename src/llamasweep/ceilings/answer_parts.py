"""The parts of an answer, one class each; their fields are the keys of the JSON that `ceiling` prints.

None is "not known" or "not modelled"; the answer's `reasons` say why. Named tuples: a dozen dataclasses
would take as long to make as the whole answer.
"""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.decode import Bound


class ModelPart(NamedTuple):
    """The model. n_active_params: read by one token; n_active_params_with_embedding: and the input table."""

    arch: str | None
    name: str | None
    quant: str | None
    n_params: float
    size_bytes: float
    bits_per_weight: float
    n_active_params: float | None = None
    n_active_params_with_embedding: float | None = None
    active_bytes_per_token: float | None = None
    tied_embeddings: bool | None = None
    n_expert: int | None = None
    n_expert_used: int | None = None
    n_ctx_train: int | None = None


class KvCachePart(NamedTuple):
    """The context. n_ctx: cells of all streams, padded. recurrent_state_bytes: of one stream.

    allocated_bytes: of all. read_bytes_per_step: of one stream, at the mean depth of the run.
    """

    n_ctx: int | None
    type_k: str
    type_v: str
    bytes_per_token_full: int | None = None
    bytes_per_token_swa: int | None = None
    swa_cells: int | None = None
    recurrent_state_bytes: int | None = None
    allocated_bytes: int | None = None
    read_bytes_per_step: float | None = None


class DecodePart(NamedTuple):
    """Generation, one stream.

    bandwidth_bytes_per_s: of the memory that holds the model; where several do, the one that all
    together amount to: bytes / time. pencil_…: from the whole model's size.
    """

    n_depth: int
    n_gen: int
    bytes_per_token: float | None = None
    weight_bytes_per_token: float | None = None
    bandwidth_bytes_per_s: float | None = None
    ceiling_tps: float | None = None
    bound: Bound | None = None
    pencil_ceiling_tps: float | None = None
    pencil_with_kv_tps: float | None = None
    flop_per_token: float | None = None
    flop_per_byte: float | None = None
    ridge_flop_per_byte: float | None = None


class PrefillPart(NamedTuple):
    """Reading a prompt. is_reference: the peak is a line to compare with, faster units exist.

    pencil_ceiling_tps: by 2 x all parameters; of a model known by three numbers by 2 x the active ones.
    """

    n_prompt: int
    n_passes: int | None = None
    flop_per_token: float | None = None
    bytes_per_token: float | None = None
    pencil_flop_per_token: float | None = None
    ceiling_tps: float | None = None
    expected_tps: float | None = None
    pencil_ceiling_tps: float | None = None
    memory_tps: float | None = None
    bound: Bound | None = None
    peak_flop_per_s: float | None = None
    is_reference: bool | None = None
    ridge_tokens: float | None = None
    reason: str | None = None


class ConcurrencyPart(NamedTuple):
    """All streams together. is_reference: the compute line is a reference."""

    streams: int
    n_depth: int
    ceiling_tps: float | None = None
    estimate_tps: float | None = None
    per_stream_estimate_tps: float | None = None
    memory_tps: float | None = None
    compute_tps: float | None = None
    bound: Bound | None = None
    is_reference: bool | None = None
    reason: str | None = None


class DiskPart(NamedTuple):
    """Generation where the memory does not hold the weights: between two cases."""

    least_bytes_per_token: float
    most_bytes_per_token: float
    fastest_tps: float
    slowest_tps: float


class MemoryPart(NamedTuple):
    """What must fit, over all devices that are counted (`placement` has them one by one).

    fits: None where a memory's size is not known. resident_bytes, mapped_bytes: of the host's weights,
    what stays in memory and what is read from disk again and again.
    """

    weights_bytes: float
    context_bytes: int | None = None
    compute_bytes_upper: int | None = None
    reserve_bytes: int | None = None
    total_bytes: float | None = None
    available_bytes: int | None = None
    fits: bool | None = None
    resident_bytes: int | None = None
    mapped_bytes: int | None = None
    disk: DiskPart | None = None


class PlacementPart(NamedTuple):
    """One device. active_bytes: weights read per token; read_bytes_per_token: and context. n_layers: blocks."""

    device: str
    weights_bytes: int
    context_bytes: int
    active_bytes: int
    read_bytes_per_token: float
    n_layers: int
    compute_bytes_upper: int
    reserve_bytes: int
    total_bytes: int
    available_bytes: int | None
    fits: bool | None
    bandwidth_bytes_per_s: float | None


class WorkloadPart(NamedTuple):
    """A request, alone. is_measured: both rates were given, none is a ceiling."""

    n_prompt: int
    n_gen: int
    prefill_tps: float | None = None
    decode_tps: float | None = None
    ttft_s: float | None = None
    decode_s: float | None = None
    e2e_s: float | None = None
    prefill_fraction: float | None = None
    pp_over_tg: float | None = None
    is_measured: bool = False
