"""Whether a model fits before it is loaded, and what the disk does to it where it does not. Pure.

Weights, context and a bound on the compute buffer against what each device has. Knows no machine:
what is available is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from llamasweep.ceilings.architecture import (
    STATE_BYTES_PER_ELEMENT,
    Architecture,
    Layer,
    read_architecture,
)
from llamasweep.ceilings.assumptions import Assumption, Bandwidth
from llamasweep.ceilings.kv_cache import (
    N_CTX_STEP,
    ContextSettings,
    context_memory,
    kv_read_bytes,
    padded_cells,
)
from llamasweep.ceilings.metadata import once_per_model
from llamasweep.ceilings.placement import HOST, Placement, PlacementSettings, place
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import ModelFacts

SYSTEM_RESERVE_BYTES = 8_000_000_000
"""Left to the system on the host unless told otherwise: 6 to 8 GB is what people keep free."""

DEVICE_RESERVE_BYTES = 1024 * 2**20
"""Left on an accelerator: llama.cpp's own default margin (common/common.h, fit_params_target)."""

_DENSE = ".ffn_down.weight"

COMPUTE_BOUND = Assumption(
    topic="memory",
    text=(
        "the compute buffer is a bound: never below llama.cpp b11434's own in 390 settings of 30 "
        "models, 1.19 times it in the median"
    ),
)
MAPPED = Assumption(
    topic="memory",
    text="weights that do not fit stay in the file and are read from disk again and again (mmap)",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceNeed:
    """What one device must hold. available_bytes, fits: None where what it has is not known."""

    index: int
    weights_bytes: int
    context_bytes: int
    compute_bytes_upper: int
    reserve_bytes: int
    total_bytes: int
    available_bytes: int | None
    fits: bool | None


class MemoryFit(NamedTuple):
    """All devices, the host first.

    fits: None where a device's memory is not known. resident_bytes, mapped_bytes: of the host's
    weights, what stays in memory and what has to come from disk; None where that is not known.
    """

    devices: tuple[DeviceNeed, ...]
    fits: bool | None
    resident_bytes: int | None
    mapped_bytes: int | None
    assumptions: tuple[Assumption, ...]


def memory_fit(
    facts: ModelFacts,
    settings: ContextSettings,
    placed: Placement,
    *,
    available_bytes: Sequence[int | None],
    reserve_bytes: Sequence[int] | None = None,
) -> MemoryFit:
    """Need and availability, device by device.

    Formula: weights + context + compute buffer (its bound) + reserve <= available. A device without
    weights and context needs nothing. Raises ValueError where the numbers of devices differ.
    """
    n_devices = len(placed.devices)
    reserve = reserve_bytes or (SYSTEM_RESERVE_BYTES, *[DEVICE_RESERVE_BYTES] * (n_devices - 1))
    if len(available_bytes) != n_devices or len(reserve) != n_devices:
        raise ValueError(f"memory is told of {len(available_bytes)} devices, there are {n_devices}")
    compute = compute_bytes_upper(facts, settings)
    needs = []
    for device, available, kept in zip(placed.devices, available_bytes, reserve, strict=True):
        is_used = bool(device.weights_bytes or device.context_bytes)
        total = device.weights_bytes + device.context_bytes + (compute if is_used else 0)
        needs.append(
            DeviceNeed(
                index=device.index,
                weights_bytes=device.weights_bytes,
                context_bytes=device.context_bytes,
                compute_bytes_upper=compute if is_used else 0,
                reserve_bytes=kept,
                total_bytes=total + (kept if is_used else 0),
                available_bytes=available,
                fits=_fits(total + kept, available) if is_used else True,
            )
        )
    resident = _resident(needs[HOST])
    return MemoryFit(
        devices=tuple(needs),
        fits=_all_fit([need.fits for need in needs]),
        resident_bytes=resident,
        mapped_bytes=None if resident is None else needs[HOST].weights_bytes - resident,
        assumptions=(COMPUTE_BOUND, *((MAPPED,) if needs[HOST].fits is False else ())),
    )


def _fits(total_bytes: int, available_bytes: int | None) -> bool | None:
    return None if available_bytes is None else total_bytes <= available_bytes


def _all_fit(answers: list[bool | None]) -> bool | None:
    if any(answer is False for answer in answers):
        return False
    return None if None in answers else True


def _resident(host: DeviceNeed) -> int | None:
    """Weights that stay in the host's memory: what is left after everything that cannot be dropped."""
    if host.available_bytes is None:
        return None
    left = host.available_bytes - (host.total_bytes - host.weights_bytes)
    return max(0, min(host.weights_bytes, left))


def compute_bytes_upper(facts: ModelFacts, settings: ContextSettings) -> int:
    """An upper bound of llama.cpp's compute buffer on a device.

    Formula, u = min(n_ubatch, n_ctx): 4u x (vocabulary + 4 x embedding + widest of feed-forward,
    attention and 6 x state input + latent queries) + mask. Feed-forward: 3 x width, or experts used
    x max(2 x width + embedding, 3 x width); attention: heads x (2 x key + value) + 2 x KV heads x
    key. Mask with flash attention: 2u x (cells + window cells); without: 4u x (cells x (heads + 1) +
    window cells); none without attention. An indexer adds 4u x cells; recurrent layers two copies of
    one layer's state for each sequence. Found by comparison, see COMPUTE_BOUND.
    """
    architecture = read_architecture(facts)
    n_tokens = min(settings.n_ubatch, settings.n_ctx)
    n_wide = _widest_row(facts)
    n_cells = settings.cells_per_sequence
    heads = max(layer.n_heads for layer in architecture.layers)
    mask = 0
    if any(layer.reads_kv_of is not None for layer in architecture.layers):
        window_cells = context_memory(facts, settings).swa_cells
        swa_cells = 0 if window_cells is None else window_cells  # None: no layer has a window
        mask = 2 * (n_cells + swa_cells)
        if not settings.flash_attn:
            mask = 4 * (n_cells * (heads + 1) + swa_cells)
        if architecture.index_size:
            mask += 4 * n_cells
    state = 2 * STATE_BYTES_PER_ELEMENT * architecture.state_elements * settings.n_seq
    return n_tokens * (4 * n_wide + mask) + state


@once_per_model
def _widest_row(facts: ModelFacts) -> int:
    """Elements that one token holds at the graph's widest point, and the logits."""
    architecture = read_architecture(facts)
    n_embd, n_vocab = facts.n_embd, facts.n_vocab
    if n_embd is None:
        raise ModelFileError(f"the key '{facts.arch}.embedding_length' is missing")
    if n_vocab is None:
        raise ModelFileError(
            "neither a token list nor an embedding tells the size of the vocabulary"
        )
    is_dense = {u.layer for u in weight_traffic(facts).uses if u.tensor.name.endswith(_DENSE)}
    rows = [_feed_forward_row(x, n_embd, x.index in is_dense) for x in architecture.layers]
    widest = max(*rows, _attention_row(architecture), 6 * architecture.state_width)
    return n_vocab + 4 * n_embd + widest + _latent_row(architecture)


def _feed_forward_row(layer: Layer, n_embd: int, has_dense: bool) -> int:
    dense = 3 * layer.ff_size if has_dense or not layer.n_expert_used else 0
    width = layer.expert_ff_size or layer.ff_size
    return max(dense, layer.n_expert_used * max(2 * width + n_embd, 3 * width))


def _attention_row(architecture: Architecture) -> int:
    layers = architecture.layers
    key = max(layer.head_size_k for layer in layers)
    value = max(layer.head_size_v for layer in layers)
    heads = max(layer.n_heads for layer in layers)
    return heads * (2 * key + value) + 2 * max(layer.n_heads_kv for layer in layers) * key


def _latent_row(architecture: Architecture) -> int:
    if not architecture.is_mla:
        return 0
    return max(layer.n_heads * layer.head_size_k for layer in architecture.layers)


def largest_n_ctx(
    facts: ModelFacts,
    settings: ContextSettings,
    placement: PlacementSettings,
    *,
    available_bytes: Sequence[int],
    reserve_bytes: Sequence[int] | None = None,
    limit: int | None = None,
) -> int | None:
    """The largest context, in steps of 256, that fits with everything else; None where none does.

    limit: by default what the model was trained for, else 2^20. Raises as `memory_fit`.
    """
    top = padded_cells(limit or facts.n_ctx_train or 2**20) // N_CTX_STEP

    def does_fit(n_steps: int) -> bool:
        asked = replace(settings, n_ctx=n_steps * N_CTX_STEP)
        placed = place(facts, asked, placement)
        fit = memory_fit(
            facts, asked, placed, available_bytes=available_bytes, reserve_bytes=reserve_bytes
        )
        return fit.fits is True

    if not does_fit(1):
        return None
    low, high = 1, top
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if does_fit(middle) else (low, middle - 1)
    return low * N_CTX_STEP


class DiskTier(NamedTuple):
    """How fast weights are read where memory does not hold them.

    sequential: large reads in order, what a good case gets. random: small reads here and there, what
    a page fault gets.
    """

    ram: Bandwidth
    sequential: Bandwidth
    random: Bandwidth


class DiskDecode(NamedTuple):
    """Generation while part of the weights comes from disk: a range, not a figure.

    least_cold_bytes: per token, where what stays in memory is as useful as its share. most_cold_bytes:
    where nothing useful stays. fastest_tps, slowest_tps: of the two, read in order and at random.
    """

    least_cold_bytes: float
    most_cold_bytes: float
    fastest_tps: float
    slowest_tps: float
    assumptions: tuple[Assumption, ...]


def disk_decode(
    facts: ModelFacts,
    settings: ContextSettings,
    *,
    resident_bytes: int,
    n_depth: int,
    n_gen: int,
    disk: DiskTier,
) -> DiskDecode:
    """Rates of a model of which only resident_bytes are in memory.

    Fastest: active bytes x share that is not resident (dense weights first, so that only experts are
    cold), in order. Slowest: every active byte from disk, at random: weights are scanned in a circle,
    so that a cache which drops the oldest page keeps nothing useful. Both are the rate from memory
    where all is resident. Raises NotModelledError, ModelFileError.
    """
    traffic = weight_traffic(facts)
    kv_bytes = kv_read_bytes(facts, settings, n_depth, n_gen)
    routed = sum(r.n_bytes for r in traffic.routed)
    routed_read = sum(r.n_bytes * r.n_expert_used // r.n_expert for r in traffic.routed)
    shared_read = traffic.active_bytes - routed_read
    shared = traffic.loaded_bytes - routed
    missing = max(0, traffic.loaded_bytes - resident_bytes)
    from_routed = min(missing, routed)
    least = routed_read * from_routed / routed if routed else 0.0
    least += shared_read * (missing - from_routed) / max(1, shared)
    most = float(traffic.active_bytes) if missing else 0.0
    hot = traffic.active_bytes + kv_bytes
    return DiskDecode(
        least_cold_bytes=least,
        most_cold_bytes=most,
        fastest_tps=tiered_tps(hot - least, least, disk.ram, disk.sequential),
        slowest_tps=tiered_tps(hot - most, most, disk.ram, disk.random),
        assumptions=(MAPPED, disk.ram.assumption, *traffic.assumptions),
    )


def tiered_tps(hot_bytes: float, cold_bytes: float, ram: Bandwidth, disk: Bandwidth) -> float:
    """Tokens per second: 1 / (hot / RAM bandwidth + cold / disk bandwidth)."""
    return 1.0 / (hot_bytes / ram.bytes_per_s + cold_bytes / disk.bytes_per_s)
