"""For each kind of finding a run in which it is said, one in which it is not, and the evidence that it must show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.unit.results.made import (
    GIB,
    MACHINE,
    attempt,
    on_gpu,
    prompt,
    repeated,
    run_of,
    seen,
)

from llamasweep.results.checks import Kind
from llamasweep.results.records import Attempt, RunData

MIB = 2**20
GPU = {
    "vendor": "nvidia",
    "name": "RTX 4070",
    "memory_bytes": 12 * GIB,
    "memory_clock_max_mhz": 10501,
}
ONE_CHANNEL = {
    **MACHINE,
    "ram_type": "DDR5",
    "ram_speed_mts": 5600,
    "ram_channels": 1,
    "ram_bus_bits": 64,
}
TWO_CHANNELS = {**ONE_CHANNEL, "ram_channels": 2, "ram_bus_bits": 128}


@dataclass(frozen=True, kw_only=True)
class Case:
    """evidence: what the first finding of the kind must hold. ids: the attempts that it must be about."""

    fires: RunData
    silent: RunData
    evidence: dict[str, Any]
    ids: tuple[str, ...] = ("a0",)


def on_machine(*rows: Attempt, **facts: Any) -> RunData:
    return run_of(rows, machine={**MACHINE, **facts})


def measured(gb_per_s: float) -> dict[str, Any]:
    """Ceiling columns of a row whose bandwidth was measured on this machine."""
    return {"ceiling_bandwidth_bytes_per_s": gb_per_s * 1e9}


def threads(number: int, n_threads: int, median_tps: float, **changes: Any) -> Attempt:
    return attempt(
        number, requested={"n_threads": n_threads}, applied={}, median_tps=median_tps, **changes
    )


def kv_type(number: int, kind: str, median_tps: float, **figures: Any) -> Attempt:
    asked = {"n_gpu_layers": 99, "type_k": kind, "type_v": kind}
    return seen(on_gpu(number, requested=asked, applied={}, median_tps=median_tps), **figures)


def ubatch(number: int, n_ubatch: int, median_tps: float) -> Attempt:
    return prompt(number, requested={"n_ubatch": n_ubatch}, applied={}, median_tps=median_tps)


def reference(number: int, median_tps: float) -> Attempt:
    """A prompt against a ceiling of 100 t/s that rests on a reference peak."""
    return prompt(
        number,
        median_tps=median_tps,
        ceiling_tps=100.0,
        ceiling_bound="compute",
        ceiling_is_reference=True,
        ceiling_peak_flop_per_s=3e11,
        ceiling_peak_source="calibrated 2 days ago, NumPy float32 matrix product",
    )


def deep(number: int, n_depth: int, median_tps: float, ceiling_tps: float) -> Attempt:
    return attempt(number, n_depth=n_depth, median_tps=median_tps, ceiling_tps=ceiling_tps)


def with_rates(rates: list[float], n_discarded: int = 0) -> RunData:
    row = attempt(n_discarded=n_discarded)
    return run_of([row], machine=MACHINE, samples=repeated(row, rates, n_discarded))


def half_on_cpu(**figures: Any) -> Attempt:
    """16 of 33 layers on the GPU, 12 t/s."""
    row = on_gpu(
        n_gpu_layers_offloaded=16,
        requested={"n_gpu_layers": 16},
        applied={},
        median_tps=12.0,
        ceiling_tps=None,
    )
    return seen(row, **figures)


def layered(row: Attempt, **machine: Any) -> RunData:
    """The row of a dense model of 32 blocks, on a machine whose RAM was calibrated to 50 GB/s."""
    facts = {"calibration": {"ram": {"best_bytes_per_s": 50e9, "knee_threads": 4}}, **machine}
    models = [{"content_hash": row.model_hash, "n_layers": 32, "n_expert": 0}]
    return run_of([row], machine={**MACHINE, **facts}, models=models)


CASES: dict[Kind, Case] = {
    "slow_decode": Case(
        fires=run_of([attempt(median_tps=6.0)]),
        silent=run_of([attempt(median_tps=8.5)]),
        evidence={"median_tps": 6.0, "ceiling_tps": 12.0, "share_of_the_ceiling_fraction": 0.5},
    ),
    "above_ceiling": Case(
        fires=run_of([attempt(median_tps=12.36)]),
        silent=run_of([attempt(median_tps=12.2)]),
        evidence={
            "share_of_the_ceiling_fraction": 1.03,
            "assumption": "memory is read at 56.0 GB/s (measured)",
        },
    ),
    "above_reference": Case(
        fires=run_of([reference(0, 400.0)]),
        silent=run_of([reference(0, 101.0)]),
        evidence={"share_of_the_reference_fraction": 4.0, "reference_flop_per_s": 3e11},
    ),
    "far_below_ceiling": Case(
        fires=run_of([attempt(median_tps=1.5)]),
        silent=run_of([attempt(median_tps=1.9)]),
        evidence={"share_of_the_ceiling_fraction": 0.125},
    ),
    "dequantisation_bound": Case(
        fires=run_of([attempt(model_quant="IQ3_S", median_tps=6.0)]),
        silent=run_of([attempt(model_quant="IQ3_S", median_tps=9.0)]),
        evidence={"quantisation": "IQ3_S", "n_threads": 8, "median_tps": 6.0},
    ),
    "slower_build": Case(
        fires=run_of([attempt(median_tps=6.0), attempt(1, build_hash="other", median_tps=10.0)]),
        silent=run_of([attempt(median_tps=6.0), attempt(1, build_hash="other", median_tps=7.0)]),
        evidence={"median_tps": 6.0, "faster_build_tps": 10.0},
    ),
    "old_build": Case(
        fires=run_of([attempt(build_number=2843, median_tps=6.0)]),
        silent=run_of([attempt(build_number=2843, median_tps=10.0)]),
        evidence={"llama.cpp_build": "2843"},
    ),
    "missing_instructions": Case(
        fires=run_of(
            [attempt()],
            machine={**MACHINE, "cpu_features": ["avx2", "avx512f", "fma"]},
            builds=[{"content_hash": "build", "cpu_features": ["avx2", "fma"]}],
        ),
        silent=run_of(
            [attempt()],
            machine={**MACHINE, "cpu_features": ["avx2", "avx512f", "fma"]},
            builds=[{"content_hash": "build"}],
        ),
        evidence={"missing_in_the_build": "avx512f"},
    ),
    "partly_on_cpu": Case(
        fires=layered(half_on_cpu()),
        silent=layered(on_gpu()),
        evidence={"n_gpu_layers": 16, "n_layers": 33},
    ),
    "gpu_unused": Case(
        fires=on_machine(attempt(), gpus=[GPU]),
        silent=on_machine(attempt(requested={"n_gpu_layers": 0}), gpus=[GPU]),
        evidence={"n_gpus": 1, "gpu_memory_bytes": 12 * GIB, "backend": "CPU"},
    ),
    "gpu_waits_for_ram": Case(
        # 4.67 GB x 17/33 x 12 t/s = 28.9 GB/s of 50
        fires=layered(
            half_on_cpu(gpu_use_mean_fraction=0.2, gpu_clock_mean_mhz=600.0), n_cores_logical=16
        ),
        silent=layered(half_on_cpu(gpu_use_mean_fraction=0.8)),
        evidence={
            "gpu_use_fraction": 0.2,
            "gpu_clock_mhz": 600.0,
            "ram_bandwidth_bytes_per_s": 50e9,
        },
    ),
    "prompt_ops_on_cpu": Case(
        fires=layered(
            prompt(
                build_backends="CUDA",
                n_gpu_layers_offloaded=16,
                requested={"no_op_offload": True},
                applied={},
            )
        ),
        silent=layered(
            prompt(build_backends="CUDA", n_gpu_layers_offloaded=16, requested={}, applied={})
        ),
        evidence={"no_op_offload": "on", "n_gpu_layers": 16},
    ),
    "vram_full": Case(
        fires=on_machine(
            seen(on_gpu(), vram_peak_device_bytes=11_900 * MIB),
            gpus=[GPU | {"memory_bytes": 12_000 * MIB}],
        ),
        silent=on_machine(
            seen(on_gpu(), vram_peak_device_bytes=11_000 * MIB),
            gpus=[GPU | {"memory_bytes": 12_000 * MIB}],
        ),
        evidence={"vram_peak_bytes": 11_900 * MIB, "gpu_memory_bytes": 12_000 * MIB},
    ),
    "kv_cache_on_cpu": Case(
        fires=run_of([kv_type(0, "q5_1", 20.0), kv_type(1, "f16", 75.0)]),
        silent=run_of([kv_type(0, "q8_0", 72.0), kv_type(1, "f16", 75.0)]),
        evidence={"type_k": "q5_1", "type_v": "q5_1", "median_tps": 20.0, "with_f16_tps": 75.0},
    ),
    "more_threads_than_cpus": Case(
        fires=on_machine(threads(0, 17, 9.0)),
        silent=on_machine(threads(0, 8, 9.0)),
        evidence={"n_threads": 17, "n_logical_processors": 16},
    ),
    "smt_siblings": Case(
        fires=on_machine(threads(0, 16, 9.0), threads(1, 8, 9.5)),
        silent=on_machine(threads(0, 16, 10.0), threads(1, 8, 9.0)),
        evidence={
            "n_threads": 16,
            "n_physical_cores": 8,
            "n_fewer_threads": 8,
            "with_fewer_threads_tps": 9.5,
        },
    ),
    "threads_beyond_knee": Case(
        fires=on_machine(
            threads(0, 8, 9.9), threads(1, 4, 10.0), calibration={"ram": {"knee_threads": 4}}
        ),
        silent=on_machine(
            threads(0, 8, 11.0), threads(1, 4, 10.0), calibration={"ram": {"knee_threads": 4}}
        ),
        evidence={"n_threads": 8, "n_threads_at_the_knee": 4, "with_fewer_threads_tps": 10.0},
    ),
    "too_few_threads": Case(
        fires=on_machine(threads(0, 1, 3.0), threads(1, 4, 10.0)),
        silent=on_machine(threads(0, 1, 9.8), threads(1, 4, 10.0)),
        evidence={"n_threads": 1, "n_more_threads": 4, "with_more_threads_tps": 10.0},
    ),
    "barrier_collapse": Case(
        fires=on_machine(seen(threads(0, 16, 0.5), cpu_use_other_fraction=0.3)),
        silent=on_machine(seen(threads(0, 16, 10.0), cpu_use_other_fraction=0.3)),
        evidence={"cpu_use_of_others_fraction": 0.3, "n_threads": 16, "n_logical_processors": 16},
    ),
    "busy_neighbour": Case(
        fires=on_machine(seen(attempt(), cpu_use_other_fraction=0.3)),
        silent=on_machine(seen(attempt(), cpu_use_other_fraction=0.05)),
        evidence={"cpu_use_of_others_fraction": 0.3},
    ),
    "paged_from_disk": Case(
        fires=on_machine(seen(attempt(), n_major_faults=900, disk_read_bytes=300 * MIB)),
        silent=on_machine(seen(attempt(), n_major_faults=3, disk_read_bytes=100_000)),
        evidence={"n_major_faults": 900, "read_from_disk_bytes": 300 * MIB, "ram_bytes": 64 * GIB},
    ),
    "swapping": Case(
        fires=on_machine(
            seen(attempt(), swap_peak_bytes=500 * MIB), seen(attempt(1), swap_peak_bytes=100 * MIB)
        ),
        silent=on_machine(
            seen(attempt(), swap_peak_bytes=500 * MIB), seen(attempt(1), swap_peak_bytes=490 * MIB)
        ),
        evidence={"swap_peak_bytes": 500 * MIB, "swap_growth_bytes": 400 * MIB},
    ),
    "one_memory_channel": Case(
        fires=run_of([attempt(**measured(38))], machine=ONE_CHANNEL),
        silent=run_of([attempt(**measured(38))], machine={**ONE_CHANNEL, "ram_channels": None}),
        evidence={
            "n_memory_channels": 1,
            "specification_of_one_channel_bytes_per_s": 44.8e9,
            "measured_bytes_per_s": 38e9,
            "with_a_second_module_up_to_bytes_per_s": 76e9,
        },
    ),
    "memory_below_rated": Case(
        fires=run_of([attempt(**measured(50))], machine=TWO_CHANNELS),
        silent=run_of([attempt(**measured(70))], machine=TWO_CHANNELS),
        evidence={"measured_bytes_per_s": 50e9, "specification_bytes_per_s": 89.6e9},
    ),
    "throttled": Case(
        fires=on_machine(seen(attempt(), throttled_fraction=0.4, cpu_temperature_peak_c=99.0)),
        silent=on_machine(seen(attempt(), throttled_fraction=0.0, cpu_temperature_peak_c=99.0)),
        evidence={"throttled_readings_fraction": 0.4, "cpu_temperature_peak_c": 99.0},
    ),
    "falling_rate": Case(
        fires=with_rates([12.0, 11.5, 11.0, 10.5, 10.0]),
        silent=with_rates([12.0, 11.0, 11.5, 10.5, 10.0]),
        evidence={"rate_at_the_start_tps": 12.0, "rate_at_the_end_tps": 10.0, "n_repetitions": 5},
    ),
    "on_battery": Case(
        fires=on_machine(attempt(), attempt(1), power_source="battery"),
        silent=on_machine(attempt(), power_source="mains"),
        evidence={"power_source": "battery"},
        ids=("a0", "a1"),
    ),
    "slow_governor": Case(
        fires=on_machine(attempt(), governor="powersave", frequency_driver="acpi-cpufreq"),
        silent=on_machine(attempt(), governor="powersave", frequency_driver="intel_pstate"),
        evidence={"governor": "powersave", "driver": "acpi-cpufreq"},
    ),
    "small_ubatch": Case(
        fires=run_of([ubatch(0, 128, 100.0), ubatch(1, 512, 130.0)]),
        silent=run_of([ubatch(0, 128, 100.0), ubatch(1, 512, 102.0)]),
        evidence={
            "n_ubatch": 128,
            "n_passes_over_the_weights": 16,
            "n_larger_ubatch": 512,
            "with_it_tps": 130.0,
        },
    ),
    "depth_loss": Case(
        fires=run_of([deep(0, 0, 9.0, 12.0), deep(1, 16384, 4.5, 8.0)]),
        silent=run_of([deep(0, 0, 9.0, 12.0), deep(1, 16384, 5.8, 8.0)]),
        evidence={"n_depth": 16384, "rate_kept_fraction": 0.5, "share_deep_fraction": 0.5625},
        ids=("a0", "a1"),
    ),
    "kv_growth": Case(
        fires=run_of([deep(0, 0, 9.0, 12.0), deep(1, 16384, 6.0, 8.0)]),
        silent=run_of([deep(0, 0, 9.0, 12.0), deep(1, 128, 8.9, 11.9)]),
        evidence={"n_depth": 16384, "share_shallow_fraction": 0.75, "share_deep_fraction": 0.75},
        ids=("a0", "a1"),
    ),
    "small_active_set": Case(
        fires=run_of([on_gpu(median_tps=130.0, ceiling_tps=300.0)]),
        silent=run_of([on_gpu(median_tps=60.0, ceiling_tps=107.0)]),
        evidence={"median_tps": 130.0, "ceiling_tps": 300.0, "reading_takes_ms": 1000 / 300},
    ),
    "first_repetition_slow": Case(
        fires=with_rates([7.0, 10.0, 10.1, 10.0]),
        silent=with_rates([9.6, 10.0, 10.1, 10.0]),
        evidence={
            "first_repetition_tps": 7.0,
            "median_of_the_others_tps": 10.0,
            "in_the_median": "yes",
        },
    ),
    "wide_spread": Case(
        fires=with_rates([8.0, 10.0, 12.0]),
        silent=with_rates([9.9, 10.0, 12.0]),
        evidence={
            "slowest_repetition_tps": 8.0,
            "fastest_repetition_tps": 12.0,
            "n_repetitions": 3,
        },
    ),
}
