"""Runs made of records for the checks: a generation row on the CPU, and everything that a test changes in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from llamasweep.results.records import (
    SCHEMA_VERSION,
    Attempt,
    Reading,
    RunData,
    RunInfo,
    Sample,
    TelemetryFigures,
)

STARTED = datetime(2026, 11, 29, 15, 0, tzinfo=UTC)
FINISHED = datetime(2026, 11, 29, 15, 1, tzinfo=UTC)
GIB = 2**30
MACHINE = {
    "n_cores_physical": 8,
    "n_cores_logical": 16,
    "ram_bytes": 64 * GIB,
    "last_level_cache_bytes": 32 * 2**20,
}


def attempt(number: int = 0, **changes: Any) -> Attempt:
    """tg128 of a dense 8B model at 10 of 12 t/s on 8 threads of a CPU: nothing to find."""
    plain: dict[str, Any] = {
        "run_id": "run",
        "attempt_id": f"a{number}",
        "cell_id": f"cell-{number}",
        "group_id": "g1",
        "round_index": 0,
        "attempt_index": 0,
        "sweep_name": "made",
        "engine": "llama-bench",
        "status": "ok",
        "started_at": STARTED,
        "finished_at": FINISHED,
        "build_label": "b11434",
        "build_number": 11434,
        "build_hash": "build",
        "build_backends": "CPU",
        "model_label": "llama-8B-Q4_K_M",
        "model_hash": "llama-8B-Q4_K_M",
        "model_arch": "llama",
        "model_n_params": 8_030_261_312,
        "model_quant": "Q4_K_M",
        "model_size_bytes": 4_912_000_000,
        "test_kind": "tg",
        "test_label": "tg128",
        "n_prompt": 0,
        "n_gen": 128,
        "n_depth": 0,
        "requested": {"n_threads": 8},
        "applied": {"n_threads": 8},
        "median_tps": 10.0,
        "ceiling_tps": 12.0,
        "ceiling_bound": "memory",
        "ceiling_bandwidth_bytes_per_s": 56e9,
        "ceiling_bandwidth_source": "calibrated 2 days ago, 8 threads",
        "ceiling_assumptions": ("memory is read at 56.0 GB/s (measured)",),
        "bytes_per_token": 4.67e9,
    }
    return Attempt(**(plain | changes))


def on_gpu(number: int = 0, **changes: Any) -> Attempt:
    """The same with all 33 layers on a GPU of 504 GB/s, at 80 of 107 t/s."""
    plain: dict[str, Any] = {
        "build_backends": "CUDA",
        "gpu_name": "NVIDIA GeForce RTX 4070",
        "n_gpu_layers_offloaded": 33,
        "requested": {"n_gpu_layers": 99},
        "applied": {"n_gpu_layers": 33},
        "median_tps": 80.0,
        "ceiling_tps": 107.0,
        "ceiling_bandwidth_bytes_per_s": 504e9,
        "ceiling_bandwidth_source": "given in the sweep",
    }
    return attempt(number, **(plain | changes))


def prompt(number: int = 0, **changes: Any) -> Attempt:
    """pp2048 on the CPU."""
    plain = {"test_kind": "pp", "test_label": "pp2048", "n_prompt": 2048, "n_gen": 0}
    return attempt(
        number,
        **(plain | {"ceiling_tps": None, "ceiling_bound": None, "median_tps": 90.0} | changes),
    )


def seen(row: Attempt, **figures: Any) -> Attempt:
    """The row with these telemetry figures."""
    return replace(row, telemetry=TelemetryFigures(**figures))


def repeated(row: Attempt, rates: Sequence[float], n_discarded: int = 0) -> list[Sample]:
    """Samples of a row, in order."""
    n_tokens = row.n_prompt + row.n_gen
    return [
        Sample(
            attempt_id=row.attempt_id,
            cell_id=row.cell_id,
            repetition_index=index,
            n_tokens=n_tokens,
            duration_ns=round(n_tokens * 1e9 / rate),
            tps=rate,
            is_discarded=index < n_discarded,
        )
        for index, rate in enumerate(rates)
    ]


def run_of(
    attempts: Sequence[Attempt],
    *,
    machine: Mapping[str, Any] | None = None,
    samples: Sequence[Sample] = (),
    readings: Sequence[Reading] = (),
    **info: Any,
) -> RunData:
    """A run of these rows. info: other fields of `RunInfo`."""
    plain: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "llamasweep_version": "0.1.0",
        "run_id": "run",
        "sweep_name": "made",
        "sweep_file": None,
        "sweep_resolved": {},
        "started_at": STARTED.isoformat(),
        "finished_at": FINISHED.isoformat(),
        "seed": 1,
        "machine": dict(machine if machine is not None else {}),
        "builds": [],
        "models": [],
        "groups": [],
        "notes": [],
        "n_cells_planned": len(attempts),
    }
    return RunData(
        info=RunInfo(**(plain | info)),
        attempts=tuple(attempts),
        samples=tuple(samples),
        readings=tuple(readings),
    )
