"""What a cell should take of RAM and VRAM, made before it is measured by the arithmetic of `llamasweep fit` for its own context.

Only where it is known which layers go where: on the processor alone, or so many layers on a single GPU.
"""

from __future__ import annotations

from typing import Any

from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.memory_fit import memory_fit
from llamasweep.ceilings.placement import PlacementSettings, place
from llamasweep.errors import LlamasweepError
from llamasweep.gguf.facts import ModelFacts
from llamasweep.sweep.cell import Cell
from llamasweep.sweep.subjects import Build

ENGINE = "llama-bench"
OTHER_ENGINE = "the engine chooses its own context"
LEFT_TO_ENGINE = "which layers go to which device is left to the engine"
_DEFAULT_N_UBATCH = 512


def predicted_memory(cell: Cell, facts: ModelFacts, build: Build) -> dict[str, Any]:
    """`predicted_ram_bytes`, `predicted_vram_bytes`: weights + context + bound of the compute buffer of each device.

    None with `predicted_reason` where it is not known. Plain JSON values; a reserve for others is not in it.
    """
    placement, reason = _placement(cell, build)
    if placement is None:
        return {"predicted_reason": reason}
    settings = ContextSettings(
        n_ctx=cell.test.n_prompt + cell.test.n_gen + cell.n_depth,
        n_ubatch=int(cell.get("n_ubatch") or _DEFAULT_N_UBATCH),
        type_k=str(cell.get("type_k") or "f16"),
        type_v=str(cell.get("type_v") or "f16"),
        flash_attn=cell.get("flash_attn") not in ("off", False, 0),
    )
    try:
        placed = place(facts, settings, placement)
        unknown = [None] * len(placed.devices)
        needs = memory_fit(facts, settings, placed, available_bytes=unknown).devices
    except (LlamasweepError, ValueError) as problem:
        return {"predicted_reason": str(problem)}
    taken = [need.weights_bytes + need.context_bytes + need.compute_bytes_upper for need in needs]
    return {
        "predicted_ram_bytes": taken[0],
        "predicted_vram_bytes": taken[1] if len(taken) > 1 else None,
    }


def _placement(cell: Cell, build: Build) -> tuple[PlacementSettings | None, str]:
    if cell.engine != ENGINE:
        return None, OTHER_ENGINE
    n_gpu_layers = cell.get("n_gpu_layers")
    if build.is_cpu_only or n_gpu_layers == 0 or cell.get("devices") == "none":
        return PlacementSettings(n_gpu_layers=0, tensor_split=()), ""
    is_known = isinstance(n_gpu_layers, int) and n_gpu_layers > 0
    if not is_known or build.devices is None or len(build.devices) != 1:
        return None, LEFT_TO_ENGINE
    return (
        PlacementSettings(
            n_gpu_layers=int(n_gpu_layers or 0),
            n_cpu_moe=int(cell.get("n_cpu_moe") or 0),
            kv_offload=not cell.get("no_kv_offload"),
        ),
        "",
    )
