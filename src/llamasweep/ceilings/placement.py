"""Which bytes live on which device, and what generation costs when they are spread. Pure.

Follows load_tensors of llama.cpp b11434 (src/llama-model.cpp) in its layer split. Knows no device
but by its position; the host is the first.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from llamasweep.ceilings.architecture import Architecture, read_architecture
from llamasweep.ceilings.assumptions import Assumption, Bandwidth
from llamasweep.ceilings.kv_cache import (
    READ_LEAST,
    ContextMemory,
    ContextSettings,
    context_memory,
    layer_read_bytes,
)
from llamasweep.ceilings.traffic import TensorUse, weight_traffic
from llamasweep.gguf.facts import ModelFacts

HOST = 0
"""Index of the device that the processor is; accelerators follow from 1."""

_ON_CPU_MOE = re.compile(r"blk\.\d{1,4}\.ffn_(up|down|gate|gate_up)_(ch|)exps")
_INPUT = ("token_embd.weight", "per_layer_token_embd.", "position_embd.", "token_types.")
_WITH_FIRST_LAYER = ("per_layer_model_proj.", "per_layer_proj_norm.")
_WITH_EVERY_LAYER = ("rope_freqs.", "rope_factors_")

TIMES_ADD = Assumption(
    topic="placement",
    text="devices work one after another, so that their times add; layers are split, not rows",
)
NO_LATENCY = Assumption(
    topic="placement", text="handing over from one device to the next takes no time"
)
SPLITS_DERIVED = Assumption(
    topic="placement",
    text="graph splits of several accelerators follow from the layer split; they were not compared",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementSettings:
    """What the engine is asked for.

    n_gpu_layers: the last so many, the output layer counting as one; -1 = all. n_cpu_moe: routed
    experts of the first so many layers stay on the host. tensor_split: shares of the accelerators,
    one for each; empty = no accelerator. kv_offload: cells follow their layer.
    """

    n_gpu_layers: int = -1
    n_cpu_moe: int = 0
    tensor_split: tuple[float, ...] = (1.0,)
    kv_offload: bool = True

    def __post_init__(self) -> None:
        shares = self.tensor_split
        if any(not math.isfinite(x) or x < 0 for x in shares) or (shares and sum(shares) <= 0):
            raise ValueError("shares of accelerators are numbers from 0, one at least above it")
        if self.n_cpu_moe < 0:
            raise ValueError(f"experts of {self.n_cpu_moe} layers make no sense")


@dataclass(frozen=True, kw_only=True, slots=True)
class DevicePlacement:
    """What one device holds.

    index: 0 the host, then the accelerators. weights_bytes: held; active_bytes: read per token.
    context_bytes: cells and state. layers: indices of the blocks there; context_layers: of those
    whose cells are there.
    """

    index: int
    weights_bytes: int
    active_bytes: int
    context_bytes: int
    layers: tuple[int, ...]
    context_layers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """All devices, the host first.

    graph_splits: parts that the graph is cut into, with a hand-over between two; None where cells do
    not follow their layer, which is not modelled.
    """

    devices: tuple[DevicePlacement, ...]
    graph_splits: int | None
    assumptions: tuple[Assumption, ...]


def place(facts: ModelFacts, settings: ContextSettings, placement: PlacementSettings) -> Placement:
    """Where weights and context go.

    Rule: layer i of L goes to an accelerator if i >= L + 1 - n_gpu_layers, the output layer counting
    as layer L; the accelerators share them in order by tensor_split. The embedding stays on the host
    and is copied to the head's device where tied. Raises NotModelledError, ModelFileError.
    """
    architecture = read_architecture(facts)
    where = _layer_devices(len(architecture.layers), placement)
    n_devices = 1 + len(placement.tensor_split)
    held = [0] * n_devices
    active = [0] * n_devices
    with_first = _WITH_FIRST_LAYER + (
        () if facts.arch.startswith("lfm2") else ("token_embd_norm.",)
    )
    for use in weight_traffic(facts).uses:
        devices = _devices_of(use, where, placement, with_first)
        for device in devices:
            held[device] += use.tensor.n_bytes
            active[device] += _read_there(use, device, devices)
    context = _context_bytes(context_memory(facts, settings), where, placement)
    layers_on = [tuple(i for i, d in enumerate(where[:-1]) if d == n) for n in range(n_devices)]
    everywhere = tuple(range(len(where) - 1))
    return Placement(
        devices=tuple(
            DevicePlacement(
                index=n,
                weights_bytes=held[n],
                active_bytes=active[n],
                context_bytes=context[n],
                layers=layers_on[n],
                context_layers=layers_on[n]
                if placement.kv_offload
                else (everywhere if n == HOST else ()),
            )
            for n in range(n_devices)
        ),
        graph_splits=_graph_splits(facts, architecture, where, placement),
        assumptions=(TIMES_ADD, *((SPLITS_DERIVED,) if n_devices > 2 else ())),
    )


def _layer_devices(n_layers: int, placement: PlacementSettings) -> list[int]:
    """Device of each block and, last, of the output layer."""
    n_gpu = placement.n_gpu_layers if placement.n_gpu_layers >= 0 else n_layers + 1
    n_gpu = min(n_gpu, n_layers + 1) if placement.tensor_split else 0
    first = n_layers + 1 - n_gpu
    total = sum(placement.tensor_split)
    bounds = [share / total for share in accumulate(placement.tensor_split)] if n_gpu else []
    devices = []
    for i in range(n_layers + 1):
        if i < first:
            devices.append(HOST)
        else:
            devices.append(min(len(bounds), 1 + bisect_right(bounds, (i - first) / n_gpu)))
    return devices


def _devices_of(
    use: TensorUse, where: list[int], placement: PlacementSettings, with_first: tuple[str, ...]
) -> list[int]:
    """Devices that hold a tensor; the last of them is where it is multiplied with."""
    if not use.is_loaded:
        return []
    if use.layer is None:
        return _outside_blocks(use, where, with_first)
    is_kept = use.layer < placement.n_cpu_moe and _ON_CPU_MOE.match(use.tensor.name) is not None
    return [HOST if is_kept else where[use.layer]]


def _outside_blocks(use: TensorUse, where: list[int], with_first: tuple[str, ...]) -> list[int]:
    name, output = use.tensor.name, where[-1]
    if use.use == "head_and_row" and output != HOST:
        return [HOST, output]
    if name.startswith(_INPUT):
        return [HOST]
    if name.startswith(with_first):
        return [where[0]]
    if name.startswith(_WITH_EVERY_LAYER):
        return sorted(set(where[:-1]))
    return [output]


def _read_there(use: TensorUse, device: int, devices: list[int]) -> int:
    """Bytes that a token reads of a tensor on one of the devices that hold it."""
    if use.use != "head_and_row" or len(devices) == 1:
        return use.read_bytes
    return use.row_bytes if device == HOST else use.tensor.n_bytes


def _context_bytes(
    memory: ContextMemory, where: list[int], placement: PlacementSettings
) -> list[int]:
    held = [0] * (1 + len(placement.tensor_split))
    for cache in memory.layers:
        held[where[cache.index] if placement.kv_offload else HOST] += cache.stored_bytes
    return held


def _graph_splits(
    facts: ModelFacts,
    architecture: Architecture,
    where: list[int],
    placement: PlacementSettings,
) -> int | None:
    """Stretches of the graph on one device, from the embedding on the host to the head.

    Rule: one per stretch of layers, two more for every layer whose experts are elsewhere, two more
    where gemma3n's first projection lies with the head and not with the first layer.
    """
    if not placement.kv_offload and any(where):
        return None
    stretches = 1 + sum(a != b for a, b in pairwise([HOST, *where]))
    with_experts = {u.layer for u in weight_traffic(facts).uses if u.use == "experts"}
    n_apart = sum(
        layer.is_run
        and layer.index < placement.n_cpu_moe
        and layer.index in with_experts
        and where[layer.index] != HOST
        for layer in architecture.layers
    )
    has_altup = any(t.name == "altup_proj.weight" for t in facts.tensors)
    is_torn = has_altup and where[0] == HOST and where[-1] != HOST
    return stretches + 2 * n_apart + 2 * is_torn


class PlacedDecode(NamedTuple):
    """Generation over several devices. device_s: seconds per token on each, the host first."""

    device_s: tuple[float, ...]
    handover_s: float
    ceiling_tps: float
    assumptions: tuple[Assumption, ...]


class Machine(NamedTuple):
    """Devices by what they read per second, the host first.

    handover_s: seconds that passing from one device to the next takes, 0 for a bound.
    """

    bandwidths: tuple[Bandwidth, ...]
    handover_s: float = 0.0


def placed_decode(
    facts: ModelFacts,
    settings: ContextSettings,
    placed: Placement,
    machine: Machine,
    *,
    n_depth: int,
    n_gen: int,
) -> PlacedDecode:
    """The decode ceiling where weights and cells are spread.

    Formula: 1 / (sum over devices of (active bytes + context read there) / its bandwidth + (graph
    splits - 1) x hand-over); without hand-overs where the splits are not known.
    Raises ValueError where devices and bandwidths differ in number.
    """
    if len(machine.bandwidths) != len(placed.devices):
        raise ValueError(f"{len(machine.bandwidths)} bandwidths for {len(placed.devices)} devices")
    moved = layer_read_bytes(facts, settings, n_depth, n_gen)
    device_s = tuple(
        (device.active_bytes + sum(moved[layer] for layer in device.context_layers))
        / bandwidth.bytes_per_s
        for device, bandwidth in zip(placed.devices, machine.bandwidths, strict=True)
    )
    n_splits = placed.graph_splits
    handover_s = 0.0 if n_splits is None else machine.handover_s * max(0, n_splits - 1)
    return PlacedDecode(
        device_s=device_s,
        handover_s=handover_s,
        ceiling_tps=1.0 / (sum(device_s) + handover_s),
        assumptions=(
            *(bandwidth.assumption for bandwidth in machine.bandwidths),
            *placed.assumptions,
            *(() if machine.handover_s and n_splits is not None else (NO_LATENCY,)),
            *weight_traffic(facts).assumptions,
            READ_LEAST,
        ),
    )
