"""Checks of where the model lies: layers, experts and cache in RAM, GPUs that idle, full device memory, KV types."""

from __future__ import annotations

from collections.abc import Iterator

from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.machine_record import positive_number
from llamasweep.results.measured_rows import (
    MeasuredRows,
    Numbers,
    fastest,
    figures,
    in_force,
    is_faster,
    measured_once,
    median,
    ran_on_cpu,
    whole_in_force,
)
from llamasweep.results.records import Attempt

GPU_WAITS_BELOW = 0.5
RAM_BUSY_FROM = 0.4
VRAM_FULL_FROM = 0.97
VRAM_ROOM_BELOW = 0.85
KV_FALLBACK_RATIO = 1.3
_OWN_MEMORY_BYTES = 2**30
"""Less than that is a display's, not a GPU for models."""

_PLAIN_KV = frozenset({"f16", "bf16", "f32"})


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row."""
    for row in run.rows:
        parts = parts_on_cpu(run, row)
        if parts:
            yield _partly(run, row, parts)
            yield from _gpu_waits(run, row)
            if row.test_kind == "pp" and in_force(row, "no_op_offload") is True:
                yield make_finding(
                    "prompt_ops_on_cpu", {**parts, "no_op_offload": "on"}, [row.attempt_id]
                )
        yield from _gpu_unused(run, row)
        yield from _vram_full(run, row)
        yield from _kv_cache_on_cpu(run, row)


def parts_on_cpu(run: MeasuredRows, row: Attempt) -> Numbers:
    """What of a GPU's row lies in RAM; {} where all is on the GPU, or all on the CPU, or it is not told."""
    if ran_on_cpu(row) is not False:
        return {}
    parts: dict[str, int | float | str | None] = {}
    offloaded, total = row.n_gpu_layers_offloaded, n_layers(run, row)
    if offloaded is not None and total is not None and offloaded < total:
        parts |= {"n_gpu_layers": offloaded, "n_layers": total}
    n_cpu_moe = whole_in_force(row, "n_cpu_moe")
    if n_cpu_moe:
        parts["n_layers_with_experts_on_the_cpu"] = n_cpu_moe
    if "=CPU" in str(in_force(row, "tensor_buft_overrides") or ""):
        parts["tensors_kept_on_the_cpu"] = str(in_force(row, "tensor_buft_overrides"))
    if in_force(row, "no_kv_offload") is True:
        parts["kv_cache"] = "in RAM"
    return parts


def n_layers(run: MeasuredRows, row: Attempt) -> int | None:
    """Layers that could be on the GPU: those of the model and the output layer; else the most that the run has seen there."""
    n_blocks = run.model(row).count("n_layers")
    if n_blocks is not None:
        return n_blocks + 1
    return run.most_layers(row)


def _partly(run: MeasuredRows, row: Attempt, parts: Numbers) -> Finding:
    peak, total = figures(row).vram_peak_device_bytes, _only_gpu_bytes(run)
    evidence = {**parts, "vram_peak_bytes": peak, "gpu_memory_bytes": total}
    differs = next((d for d in row.differences if d.startswith("n_gpu_layers:")), None)
    if differs is not None:
        evidence["differs"] = differs
    has_room = peak is not None and total is not None and peak < VRAM_ROOM_BELOW * total
    return make_finding(
        "partly_on_cpu",
        evidence,
        [row.attempt_id],
        severity="warning" if has_room or differs is not None else None,
        next_step="The GPU has room left: raise n_gpu_layers or lower n_cpu_moe until its memory is nearly full."
        if has_room
        else None,
    )


def _gpu_waits(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    """Needs the layers, since only they tell how much of each token is read from RAM."""
    use, offloaded, total = (
        figures(row).gpu_use_mean_fraction,
        row.n_gpu_layers_offloaded,
        n_layers(run, row),
    )
    bandwidth, n_bytes = run.ram_bandwidth_bytes_per_s, _read_per_token_bytes(run, row)
    if row.test_kind != "tg" or use is None or use >= GPU_WAITS_BELOW:
        return
    if offloaded is None or total is None or bandwidth is None or n_bytes is None:
        return
    from_ram = n_bytes * (1 - min(1.0, offloaded / total)) * median(row)
    if from_ram >= RAM_BUSY_FROM * bandwidth:
        evidence = {
            "gpu_use_fraction": use,
            "gpu_clock_mhz": figures(row).gpu_clock_mean_mhz,
            "n_gpu_layers": offloaded,
            "n_layers": total,
            "read_from_ram_bytes_per_s": from_ram,
            "ram_bandwidth_bytes_per_s": bandwidth,
        }
        yield make_finding("gpu_waits_for_ram", evidence, [row.attempt_id])


def _read_per_token_bytes(run: MeasuredRows, row: Attempt) -> float | None:
    """By the ceiling; else the size of a model that is known to be dense."""
    is_dense = run.model(row).plain.get("n_expert") == 0
    return positive_number(row.bytes_per_token) or (
        positive_number(row.model_size_bytes) if is_dense else None
    )


def _gpu_unused(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    sized = ((g, g.count("memory_bytes")) for g in run.machine.gpus)
    own = [g for g, n_bytes in sized if n_bytes is not None and n_bytes >= _OWN_MEMORY_BYTES]
    was_asked = row.requested.get("n_gpu_layers") == 0 or row.requested.get("devices") == "none"
    if not own or was_asked or ran_on_cpu(row) is not True:
        return
    evidence = {
        "n_gpus": len(own),
        "gpu_memory_bytes": own[0].count("memory_bytes"),
        "backend": row.build_backends,
        "layers_on_the_gpu": "none",
    }
    yield make_finding("gpu_unused", evidence, [row.attempt_id])


def _only_gpu_bytes(run: MeasuredRows) -> int | None:
    gpus = run.machine.gpus
    return gpus[0].count("memory_bytes") if len(gpus) == 1 else None


def _vram_full(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    peak, total = figures(row).vram_peak_device_bytes, _only_gpu_bytes(run)
    if peak is not None and total is not None and peak >= VRAM_FULL_FROM * total:
        evidence = {"vram_peak_bytes": peak, "gpu_memory_bytes": total}
        yield make_finding("vram_full", evidence, [row.attempt_id])


def _kv_cache_on_cpu(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    types = {str(in_force(row, name) or "f16") for name in ("type_k", "type_v")}
    if ran_on_cpu(row) is not False or types <= _PLAIN_KV or in_force(row, "no_kv_offload") is True:
        return
    plain = fastest(r for r in run.comparable(row, "kv_type") if _has_plain_cache(r))
    evidence: dict[str, int | float | str | None] = {
        "type_k": str(in_force(row, "type_k") or "f16"),
        "type_v": str(in_force(row, "type_v") or "f16"),
        "backend": row.build_backends,
        "median_tps": median(row),
    }
    use, busy_cores = figures(row).gpu_use_mean_fraction, _busy_cores(run, row)
    if plain is not None:
        if is_faster(plain, row, KV_FALLBACK_RATIO):
            evidence |= {"with_f16_tps": median(plain), "gpu_use_fraction": use}
            evidence |= measured_once(plain, row)
            yield make_finding("kv_cache_on_cpu", evidence, [row.attempt_id])
    elif not parts_on_cpu(run, row) and _idles(use) and busy_cores is not None and busy_cores > 1.5:
        evidence |= {"gpu_use_fraction": use, "busy_cpu_cores": f"{busy_cores:.1f}"}
        yield make_finding("kv_cache_on_cpu", evidence, [row.attempt_id])


def _has_plain_cache(row: Attempt) -> bool:
    return all(str(in_force(row, name) or "f16") in _PLAIN_KV for name in ("type_k", "type_v"))


def _idles(use: float | None) -> bool:
    return use is not None and use < GPU_WAITS_BELOW


def _busy_cores(run: MeasuredRows, row: Attempt) -> float | None:
    """Cores that the engine kept busy."""
    use, n_cpus = figures(row).cpu_use_fraction, run.machine.count("n_cores_logical")
    return None if use is None or n_cpus is None else use * n_cpus
