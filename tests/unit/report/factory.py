"""Runs made of records for the report's tests: plain, noisy, failed, impossible, hostile, with and without telemetry."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from llamasweep.results.records import (
    SCHEMA_VERSION,
    Attempt,
    RunData,
    RunInfo,
    Sample,
    TelemetryFigures,
)

START = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)
BANDWIDTH = 41.8e9
READ_SHARE = 0.95
KV_BYTES_PER_TOKEN = 131_072
NO_PEAK = "no peak compute rate is known for this device"
SIZES = {
    "Q4_0": 1_900_000_000,
    "Q8_0": 3_600_000_000,
    "Q4_K_M": 2_100_000_000,
    "F16": 6_800_000_000,
}
HOSTILE = "\"><script>alert(1)</script>\n\u202egnp.exe\u2028$(touch pwned) '--é\udcff"


def attempt(number: int = 0, **changes: Any) -> Attempt:
    """An attempt that measured tg32 of a small model; change what the test is about."""
    plain: dict[str, Any] = {
        "run_id": "20261129T140000Z-quick-ab12cd",
        "attempt_id": f"log-{number:04d}",
        "cell_id": f"{number:016x}",
        "group_id": "g0",
        "round_index": 0,
        "attempt_index": 0,
        "sweep_name": "quick",
        "engine": "llama-bench",
        "status": "ok",
        "log_path": "logs/g0-1.jsonl",
        "started_at": START + timedelta(seconds=number),
        "build_label": "11434",
        "build_hash": "b" * 32,
        "build_backends": "CPU",
        "cpu_name": "AMD EPYC 7763",
        "model_label": "tiny-llama-Q4_0",
        "model_hash": "a" * 32,
        "model_file": "tiny-llama-Q4_0.gguf",
        "model_arch": "llama",
        "model_quant": "Q4_0",
        "model_size_bytes": SIZES["Q4_0"],
        "test_kind": "tg",
        "test_label": "tg32",
        "n_prompt": 0,
        "n_gen": 32,
        "n_depth": 0,
        "requested": {"n_threads": 2},
    }
    return Attempt(**{**plain, **changes})


Part = tuple[Attempt, list[Sample]]
"""An attempt with its samples."""


def lost(number: int, **changes: Any) -> Part:
    """An attempt without samples."""
    return attempt(number, **changes), []


def measured(number: int, tps: Sequence[float], *, n_discarded: int = 0, **changes: Any) -> Part:
    """An attempt with its samples; figures as the runner folds them."""
    base = attempt(number, **changes)
    kept = list(tps[n_discarded:])
    middle = statistics.median(kept)
    full = replace(
        base,
        n_samples=len(kept),
        n_discarded=n_discarded,
        median_tps=middle,
        mean_tps=statistics.fmean(kept),
        sample_std_tps=statistics.stdev(kept) if len(kept) > 1 else None,
        min_tps=min(kept),
        max_tps=max(kept),
        **ceilings(base, middle),
    )
    n_tokens = base.n_prompt + base.n_gen
    samples = [
        Sample(
            attempt_id=full.attempt_id,
            cell_id=full.cell_id,
            repetition_index=index,
            n_tokens=n_tokens,
            duration_ns=round(n_tokens * 1e9 / value),
            tps=value,
            is_discarded=index < n_discarded,
        )
        for index, value in enumerate(tps)
    ]
    return full, samples


def ceilings(base: Attempt, median_tps: float) -> dict[str, Any]:
    """Columns as the runner makes them: 5 % of the weights are not read, prompts have no peak; nothing for an unknown size."""
    size = base.model_size_bytes
    if not size:
        return {}
    is_tg = base.test_kind == "tg"
    moved = size * READ_SHARE + base.n_depth * KV_BYTES_PER_TOKEN
    n_bytes = moved if is_tg else moved / 512
    flop = 2 * size * 1.8
    columns: dict[str, Any] = {
        "ceiling_bandwidth_bytes_per_s": BANDWIDTH,
        "ceiling_bandwidth_source": "measured",
        "bytes_per_token": n_bytes,
        "flop_per_token": flop,
        "arithmetic_intensity": flop / n_bytes,
        "ceiling_assumptions": ("flash attention was left to the engine and is taken to be on",),
    }
    if base.test_kind == "pp":
        reasons = {"ceiling_tps": NO_PEAK, "pencil_ceiling_tps": NO_PEAK}
        columns["achieved_flop_per_s"] = median_tps * flop
        return {**columns, "reasons": {**reasons, **base.reasons}}
    if not is_tg:
        return columns
    exact, pencil = BANDWIDTH / moved, BANDWIDTH / size
    return columns | {
        "pencil_ceiling_tps": pencil,
        "pencil_fraction": median_tps / pencil,
        "ceiling_tps": exact,
        "ceiling_fraction": median_tps / exact,
        "ceiling_bound": "memory",
        "achieved_bytes_per_s": median_tps * moved,
    }


def info(**changes: Any) -> RunInfo:
    """run.json of a quick sweep."""
    plain: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "llamasweep_version": "0.1.0",
        "run_id": "20261129T140000Z-quick-ab12cd",
        "sweep_name": "quick",
        "sweep_file": "sweeps/quick.yaml",
        "sweep_resolved": {
            "version": 1,
            "name": "quick",
            "matrix": {"threads": [1, 2], "depth": [0, 512]},
        },
        "started_at": "2026-11-29T14:00:00+00:00",
        "finished_at": "2026-11-29T14:02:41+00:00",
        "seed": 7,
        "machine": {
            "cpu": {"name": "AMD EPYC 7763", "n_physical_cores": 2},
            "ram_bytes": 8 << 30,
            "gpus": [],
        },
        "builds": [],
        "models": [],
        "groups": [
            {
                "group_id": "g0",
                "argv": [
                    "/opt/llama bench/llama-bench",
                    "-m",
                    "models/tiny-llama-Q4_0.gguf",
                    "-o",
                    "jsonl",
                ],
                "env": {"GGML_NO_BACKTRACE": "1"},
                "log_id": "00001-g0",
                "n_cells": 4,
                "exit_code": 0,
                "start_ns": 0,
                "end_ns": 41_000_000_000,
                "sampler_cpu_s": 0.2,
                "sampler_wall_s": 40.0,
            }
        ],
        "notes": [],
        "n_cells_planned": 0,
        "versions": {"python": "3.11.2"},
    }
    return RunInfo(**{**plain, **changes})


def run_of(parts: Iterable[Part], **changes: Any) -> RunData:
    """A run of attempts with their samples."""
    pairs = list(parts)
    return RunData(
        info=info(**{"n_cells_planned": len(pairs), **changes}),
        attempts=tuple(a for a, _ in pairs),
        samples=tuple(s for _, samples in pairs for s in samples),
    )


def sweep_parts(
    *,
    models: Sequence[str] = ("tiny-llama", "tiny-qwen3"),
    quants: Sequence[str] = ("Q4_0", "Q8_0"),
    threads: Sequence[int] = (1, 2, 4),
    depths: Sequence[int] = (0, 512, 2048),
    seed: int = 1,
    gpu: bool = False,
) -> list[Part]:
    """A full product with speeds that behave like real ones: depth costs, threads help until 2."""
    rng = random.Random(seed)
    parts: list[Part] = []
    for m, model in enumerate(models):
        for quant in quants:
            for depth in depths:
                for n_threads in threads:
                    for kind in ("pp", "tg"):
                        size = SIZES[quant]
                        base = (
                            BANDWIDTH / size * 0.78
                            if kind == "tg"
                            else 9e11 / size * (1.1 if quant == "Q8_0" else 1)
                        )
                        tps = base * 0.94**m * min(1.0, n_threads / 2) ** 0.8 * (1 - depth / 9000)
                        noise = 0.11 if n_threads == 4 else 0.012
                        values = [tps * (1 + rng.gauss(0, noise)) for _ in range(5)]
                        number = len(parts)
                        parts.append(
                            measured(
                                number,
                                values,
                                n_discarded=1 if kind == "pp" else 0,
                                model_label=f"{model}-{quant}",
                                model_hash=f"{m}{quant}".ljust(32, "0"),
                                model_file=f"{model}-{quant}.gguf",
                                model_quant=quant,
                                model_size_bytes=size,
                                model_is_synthetic=True,
                                test_kind=kind,
                                test_label="pp512" if kind == "pp" else "tg32",
                                n_prompt=512 if kind == "pp" else 0,
                                n_gen=0 if kind == "pp" else 32,
                                n_depth=depth,
                                requested={
                                    "n_threads": n_threads,
                                    "n_depth": depth,
                                    "n_ubatch": 512,
                                },
                                flags=("wide_spread",) if n_threads == 4 else (),
                                telemetry=telemetry(size, gpu=gpu),
                                reasons={} if gpu else CPU_REASONS,
                            )
                        )
    return parts


CPU_REASONS = {
    "vram_peak_device_bytes": "no GPU in this machine",
    "energy_per_token_j": "no energy counter: RAPL is not readable in this virtual machine",
}


def telemetry(size: int, *, gpu: bool) -> TelemetryFigures:
    """Peaks and energy as a machine with or without a GPU gives them."""
    if not gpu:
        return TelemetryFigures(ram_peak_process_bytes=round(size * 1.07))
    return TelemetryFigures(
        ram_peak_process_bytes=900 << 20,
        vram_peak_device_bytes=round(size * 1.12),
        gpu_energy_j=212.5,
        energy_per_token_j=0.41,
        energy_scope="gpu",
        gpu_power_mean_w=118.0,
    )


def failed_parts(first: int = 500) -> list[Part]:
    """One of each ending that is not a measurement."""
    label = {"model_label": "tiny-llama-Q8_0", "model_quant": "Q8_0"}
    endings: list[dict[str, Any]] = [
        {"status": "failed", "error_kind": "signal", "error_message": "the engine was ended by SIGSEGV while loading",
         "exit_signal": "SIGSEGV", "stderr_tail": "llama_model_load: loading\n\x1b[31msegmentation fault\x1b[0m", **label},
        {"status": "failed", "error_kind": "model_missing", "error_message": "the model file does not exist",
         "log_path": None, "started_at": None, "model_quant": None, "model_hash": None, "model_label": "gone"},
        {"status": "timeout", "error_kind": "hang", "error_message": "no progress for 60 s", "stderr_tail": "x", **label},
        {"status": "out_of_memory", "error_kind": "out_of_memory", "exit_code": 1, "n_depth": 32768,
         "error_message": "the context did not fit below address_space_limit", "stderr_tail": "failed to allocate", **label},
        *({"status": "unsupported", "error_message": "quantised V needs flash attention",
           "requested": {"n_threads": n, "type_v": "q8_0", "flash_attn": "off"}, "log_path": None} for n in (1, 2)),
        {"status": "skipped", "error_message": "max_time was reached", "log_path": None},
    ]  # fmt: skip
    return [lost(first + i, **changes) for i, changes in enumerate(endings)]


def hostile_parts(first: int = 700) -> list[Part]:
    """A model, a build, an error and a flag whose names try to break the page."""
    names: dict[str, Any] = {"model_label": HOSTILE, "build_label": HOSTILE, "model_file": HOSTILE, "log_path": HOSTILE,
             "cpu_name": HOSTILE, "differences": (HOSTILE,), "flags": (HOSTILE,)}  # fmt: skip
    unflagged = {**names, "flags": ()}
    deep: dict[str, Any] = {
        "n_depth": 512,
        "requested": {"n_depth": 512, "tensor_buft_overrides": HOSTILE},
    }
    failure = {"error_message": HOSTILE, "error_kind": HOSTILE, "stderr_tail": HOSTILE}
    return [
        measured(first, [10.0, 10.2, 10.1], **names),
        measured(first + 1, [8.0, 8.1, 8.2], **{**names, **deep}),
        lost(first + 2, status="failed", **failure, **unflagged),
        lost(first + 3, status="unsupported", error_message=HOSTILE, **unflagged),
    ]


def hostile_run() -> RunData:
    """A run in which every text from outside tries to break the page."""
    return run_of(
        hostile_parts(),
        sweep_name=HOSTILE,
        sweep_file=HOSTILE,
        sweep_resolved={"name": HOSTILE, HOSTILE: [HOSTILE]},
        notes=[HOSTILE],
        machine={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        groups=[
            {
                "group_id": HOSTILE,
                "log_id": HOSTILE,
                "argv": [HOSTILE],
                "env": {"A": HOSTILE},
                "exit_signal": HOSTILE,
            }
        ],
    )
