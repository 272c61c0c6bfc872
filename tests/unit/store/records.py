"""Attempts, samples and readings as the store's tests need them: small, and different per group."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from llamasweep.results.records import (
    SCHEMA_VERSION,
    Attempt,
    Reading,
    RunInfo,
    Sample,
    TelemetryFigures,
)

STARTED = datetime(2026, 11, 29, 14, 7, 55, 123456, tzinfo=UTC)
RUN_ID = "20261129T140755Z-quick-abc123"


def run_info(**changes: Any) -> RunInfo:
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "llamasweep_version": "0.1.0",
        "run_id": RUN_ID,
        "sweep_name": "quick",
        "sweep_file": "sweeps/quick.yaml",
        "sweep_resolved": {"tests": ["pp512"]},
        "started_at": "2026-11-29T14:07:55+00:00",
        "finished_at": None,
        "seed": 1,
        "machine": {"cpu": "a CPU"},
        "builds": [],
        "models": [],
        "groups": [],
        "notes": [],
        "n_cells_planned": 2,
    }
    return RunInfo(**(values | changes))


def attempt(group_id: str = "g1", index: int = 0, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "run_id": RUN_ID,
        "attempt_id": f"{group_id}-{index}",
        "cell_id": f"cell-{group_id}-{index}",
        "group_id": group_id,
        "round_index": 0,
        "attempt_index": 0,
        "sweep_name": "quick",
        "engine": "llama-bench",
        "status": "ok",
        "started_at": STARTED,
        "build_label": "b11434",
        "build_hash": "f" * 32,
        "model_label": "tiny-llama Q4_0",
        "model_hash": "a" * 32,
        "model_file": "tiny.gguf",
        "test_kind": "pp",
        "test_label": "pp512",
        "n_prompt": 512,
        "n_gen": 0,
        "n_depth": 0,
        "requested": {"n_threads": 2},
        "applied": {"n_threads": 2, "flash_attn": "on", "repack": True},
        "n_samples": 2,
        "mean_tps": 100.0,
        "median_tps": 100.0,
        "sample_std_tps": 1.5,
        "flags": ("noisy",),
        "reasons": {"gpu_energy_j": "no GPU"},
        "telemetry": TelemetryFigures(ram_peak_process_bytes=123),
    }
    return Attempt(**(values | changes))


def samples_of(attempt: Attempt, n_samples: int = 2) -> list[Sample]:
    return [
        Sample(
            attempt_id=attempt.attempt_id,
            cell_id=attempt.cell_id,
            repetition_index=i,
            n_tokens=512,
            duration_ns=5_000_000_001 + i,
            tps=512 / (5.000_000_001 + i * 1e-9),
            is_discarded=False,
            started_at=STARTED,
        )
        for i in range(n_samples)
    ]


def reading(time_ns: int = 1, device: str = "process") -> Reading:
    return Reading(time_ns=time_ns, source="psutil", device=device, metric="rss_bytes", value=1.0)


def group(group_id: str) -> tuple[str, list[Attempt], list[Sample], list[Reading]]:
    """What `RunStore.write_group` takes: two attempts, four samples, one reading."""
    attempts = [attempt(group_id, 0), attempt(group_id, 1)]
    samples = [s for a in attempts for s in samples_of(a)]
    return group_id, attempts, samples, [reading(device=group_id)]
