"""Context memory: KV cells and recurrent state, as stored and as read at a depth. Pure.

Follows the cache classes of llama.cpp b11434 (src/llama-kv-cache*.cpp, llama-memory-recurrent.cpp).
Knows which layer keeps what from `architecture`; knows no device and no bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from llamasweep.ceilings.architecture import (
    STATE_BYTES_PER_ELEMENT,
    Architecture,
    Layer,
    read_architecture,
)
from llamasweep.ceilings.assumptions import Assumption, architecture_assumption
from llamasweep.errors import ModelFileError, NotModelledError
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.ggml_types import row_bytes, type_by_name

N_CTX_STEP = 256
"""Contexts and windows are padded to whole steps of this many cells (llama-context.cpp, n_ctx)."""

MAX_N_CTX = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextSettings:
    """What the engine is asked for.

    n_ctx: cells in all, before padding. n_ubatch: physical batch, which widens windows. type_k,
    type_v: ggml's names of cache types. flash_attn: without it V is stored transposed. n_seq:
    sequences at once. kv_unified: they share one pool of cells. swa_full: windows get all cells
    (llama-bench: never).
    """

    n_ctx: int
    n_ubatch: int = 512
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: bool = True
    n_seq: int = 1
    kv_unified: bool = False
    swa_full: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.n_ctx <= MAX_N_CTX or self.n_ubatch < 1 or self.n_seq < 1:
            raise ValueError(
                f"a context of {self.n_ctx} cells, {self.n_ubatch} tokens a batch and "
                f"{self.n_seq} sequences makes no sense"
            )

    @property
    def cells_per_sequence(self) -> int:
        """n_ctx_seq: padded n_ctx where the pool is shared, else padded n_ctx / n_seq, padded again."""
        padded = padded_cells(self.n_ctx)
        if self.kv_unified:
            return padded
        return max(N_CTX_STEP, padded_cells(padded // self.n_seq))

    @property
    def n_pools(self) -> int:
        """Pools of cells: one, or one per sequence."""
        return 1 if self.kv_unified else self.n_seq


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerCache:
    """What one layer keeps.

    k_bytes, v_bytes, index_bytes: per cell; v_used_bytes: of V without what pads it to the widest
    layer. cells: of all pools. state_bytes: recurrent, of all sequences.
    """

    index: int
    k_bytes: int
    v_bytes: int
    v_used_bytes: int
    index_bytes: int
    cells: int
    state_bytes: int

    @property
    def stored_bytes(self) -> int:
        """Cells and state together."""
        return self.cells * (self.k_bytes + self.v_bytes + self.index_bytes) + self.state_bytes


class ContextMemory(NamedTuple):
    """What a context takes.

    bytes_per_token_full, bytes_per_token_swa: that one more token takes in all layers without and
    with a window. swa_cells: cells of a windowed layer and pool, None without windows.
    state_bytes_per_sequence: recurrent state. stored_bytes: all of it, as llama.cpp allocates.
    """

    layers: tuple[LayerCache, ...]
    cells_per_sequence: int
    swa_cells: int | None
    bytes_per_token_full: int
    bytes_per_token_swa: int
    state_bytes_per_sequence: int
    stored_bytes: int
    assumptions: tuple[Assumption, ...]


def padded_cells(n_cells: int) -> int:
    """The next multiple of 256."""
    return -(-n_cells // N_CTX_STEP) * N_CTX_STEP


def context_memory(facts: ModelFacts, settings: ContextSettings) -> ContextMemory:
    """Bytes of the KV cache and of recurrent state, layer by layer.

    Formulas: cell of a layer = row(type_k, KV heads x head size) + row(type_v, the same for V; the
    widest layer's where flash attention is off); latent attention keeps K alone, an indexer adds a
    row of type_k. Cells = padded context, windows pad256(min(context, window x sequences sharing a
    pool + n_ubatch)). State = f32 elements x sequences. Raises NotModelledError where llama.cpp
    would refuse the cache types, and for architectures that are not covered.
    """
    architecture = read_architecture(facts)
    _refuse_impossible_types(architecture, settings)
    swa_cells = _swa_cells(architecture, settings)
    layers = tuple(
        _layer_cache(layer, architecture, settings, swa_cells) for layer in architecture.layers
    )
    windowed = {layer.index for layer in architecture.layers if layer.window_tokens is not None}
    per_cell = [(c.index, c.k_bytes + c.v_bytes + c.index_bytes) for c in layers]
    return ContextMemory(
        layers=layers,
        cells_per_sequence=settings.cells_per_sequence,
        swa_cells=swa_cells,
        bytes_per_token_full=sum(n_bytes for i, n_bytes in per_cell if i not in windowed),
        bytes_per_token_swa=sum(n_bytes for i, n_bytes in per_cell if i in windowed),
        state_bytes_per_sequence=sum(c.state_bytes for c in layers) // settings.n_seq,
        stored_bytes=sum(c.stored_bytes for c in layers),
        assumptions=(
            architecture_assumption(architecture.name, is_checked=architecture.is_checked),
        ),
    )


READ_LEAST = Assumption(
    topic="kv_cache",
    text="a step reads the cells that its token may see, padding and masked cells not counted",
)
STATE_TWICE = Assumption(
    topic="kv_cache", text="recurrent state is read and written once per token and sequence"
)


def kv_read_bytes(facts: ModelFacts, settings: ContextSettings, n_depth: int, n_gen: int) -> float:
    """Context bytes that a decode step moves for one sequence: the sum of `layer_read_bytes`."""
    return sum(layer_read_bytes(facts, settings, n_depth, n_gen))


def layer_read_bytes(
    facts: ModelFacts, settings: ContextSettings, n_depth: int, n_gen: int
) -> tuple[float, ...]:
    """Context bytes that a decode step moves in each layer, averaged over n_gen tokens from a depth.

    Formula: in layers with cells the mean over i < n_gen of visible(n_depth + i) x cell bytes, with
    visible(d) = d + 1 in full layers, min(d + 1, window) in windows, the tokens of the chunk so far
    in chunked ones, at most top_k of the latent rows where an indexer chooses; 2 x recurrent state
    of one sequence. The least that llama.cpp can read: its kernels may read padding and masked cells
    too, and layers that reuse cells may read them again. Raises as `context_memory`.
    """
    architecture = read_architecture(facts)
    memory = context_memory(facts, settings)
    seen: dict[int | None, float] = {}

    def visible(window: int | None) -> float:
        if window not in seen:
            is_chunked = architecture.is_chunked
            seen[window] = mean_visible(n_depth, n_gen, window, is_chunked=is_chunked)
        return seen[window]

    moved = []
    for layer, cache in zip(architecture.layers, memory.layers, strict=True):
        n_bytes = 2.0 * cache.state_bytes / settings.n_seq
        if layer.stores_kv:
            limit = architecture.index_top_k or layer.window_tokens
            n_bytes += visible(limit) * (cache.k_bytes + cache.v_used_bytes)
            n_bytes += visible(layer.window_tokens) * cache.index_bytes
        moved.append(n_bytes)
    return tuple(moved)


def mean_visible(
    n_depth: int, n_tokens: int, window: int | None, *, is_chunked: bool = False
) -> float:
    """Tokens that a token sees, itself among them, on average over n_tokens from a depth.

    Formula: mean over i of d + i + 1, capped at the window; in a chunked window of w tokens
    (d + i) mod w + 1.
    """
    return visible_pairs(n_depth, n_tokens, window, is_chunked=is_chunked) / max(1, n_tokens)


def visible_pairs(
    n_depth: int, n_tokens: int, window: int | None, *, is_chunked: bool = False
) -> int:
    """Pairs of a token and one that it sees, over n_tokens from a depth: the sum behind `mean_visible`."""
    n_tokens = max(1, n_tokens)
    if window is None:
        return n_tokens * n_depth + _triangle(n_tokens)
    if is_chunked:
        return _chunk_pairs(n_depth + n_tokens, window) - _chunk_pairs(n_depth, window)
    growing = max(0, min(n_tokens, window - n_depth))
    return growing * n_depth + _triangle(growing) + (n_tokens - growing) * window


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _chunk_pairs(n_tokens: int, chunk: int) -> int:
    whole, rest = divmod(n_tokens, chunk)
    return whole * _triangle(chunk) + _triangle(rest)


def _layer_cache(
    layer: Layer,
    architecture: Architecture,
    settings: ContextSettings,
    swa_cells: int | None,
) -> LayerCache:
    k_bytes = v_bytes = v_used_bytes = index_bytes = cells = 0
    if layer.stores_kv:
        k_bytes = row_bytes(settings.type_k, layer.n_heads_kv * layer.head_size_k)
        if not architecture.is_mla:
            v_used_bytes = row_bytes(settings.type_v, layer.n_heads_kv * layer.head_size_v)
            v_bytes = v_used_bytes
            if not settings.flash_attn:
                v_bytes = row_bytes(settings.type_v, architecture.widest_v)
        if layer.stores_index:
            index_bytes = row_bytes(settings.type_k, architecture.index_size)
        per_pool = settings.cells_per_sequence
        if layer.window_tokens is not None and swa_cells is not None:
            per_pool = swa_cells
        cells = per_pool * settings.n_pools
    state = architecture.state_elements * STATE_BYTES_PER_ELEMENT * settings.n_seq
    return LayerCache(
        index=layer.index,
        k_bytes=k_bytes,
        v_bytes=v_bytes,
        v_used_bytes=v_used_bytes,
        index_bytes=index_bytes,
        cells=cells,
        state_bytes=state if layer.is_recurrent and layer.is_run else 0,
    )


def _swa_cells(architecture: Architecture, settings: ContextSettings) -> int | None:
    window = architecture.window_tokens
    if window is None:
        return None
    if settings.swa_full:
        return settings.cells_per_sequence
    sharing = settings.n_seq if settings.kv_unified else 1
    return padded_cells(min(settings.cells_per_sequence, window * sharing + settings.n_ubatch))


def _refuse_impossible_types(architecture: Architecture, settings: ContextSettings) -> None:
    """As llama.cpp does (llama-context.cpp): unknown cache types, rows of broken blocks, quantised V."""
    for key, kind in (("type_k", settings.type_k), ("type_v", settings.type_v)):
        try:
            entry = type_by_name(kind)
        except ModelFileError:
            raise NotModelledError(f"{key}: there is no cache type {kind[:32]!r}") from None
        if not entry.is_kv_cache_type:
            raise NotModelledError(f"{key}: llama.cpp keeps no cache in {kind}")
        sizes = {
            layer.head_size_k if key == "type_k" else layer.head_size_v
            for layer in architecture.layers
            if layer.stores_kv
        }
        if any(size % entry.block_elements for size in sizes):
            raise NotModelledError(
                f"{key}: llama.cpp refuses {kind} for heads of {sorted(sizes)} elements, "
                f"which are not made of blocks of {entry.block_elements}"
            )
    if type_by_name(settings.type_v).is_quantized and not settings.flash_attn:
        raise NotModelledError(
            f"type_v: llama.cpp refuses {settings.type_v} for V without flash attention"
        )
