"""Runs for the report's tests that are wide: every axis that has a panel, and thousands of generated cells."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.unit.report.factory import (
    BANDWIDTH,
    SIZES,
    Part,
    failed_parts,
    measured,
    run_of,
    sweep_parts,
)

from llamasweep.results.records import RunData, TelemetryFigures
from llamasweep.results.request_times import RequestTimes

PEAK_FLOP_PER_S = 6.4e12
PERPLEXITY = {"Q4_0": 6.11, "Q4_K_M": 5.98, "Q8_0": 5.83}
QUALITY_SOURCE = "invented for a test"
CALIBRATED = {
    "calibration": {
        "ram": {"best_bytes_per_s": BANDWIDTH},
        "spec_ram": {"bytes_per_s": 51.2e9, "source": "DDR4-3200, two channels"},
    }
}


def streamed(part: Part, **columns: Any) -> Part:
    """The same attempt with the times of its requests."""
    base, samples = part
    return replace(base, requests=RequestTimes(**columns)), samples


def every_axis_run(**changes: Any) -> RunData:
    """Depth, threads, batch, KV type, flash attention, placement, builds, quality, latency along streams, and every failure."""
    parts = [
        *_quantisations(),
        *_along("n_depth", (0, 512, 2048, 8192), first=100),
        *_along("n_threads", (1, 2, 4, 8), first=200),
        *_batches(),
        *_placements("n_gpu_layers", (0, 8, 16, 24, 33), first=400, sign=1),
        *_placements("n_cpu_moe", (0, 8, 16, 24), first=450, sign=-1),
        *_along("type_k", ("f16", "q8_0", "q4_0"), first=520),
        *_along("flash_attn", ("off", "on"), first=560),
        *streams_parts(),
        *failed_parts(first=900),
    ]
    return run_of(parts, **{"sweep_name": "every axis, invented", "machine": CALIBRATED, **changes})


def generated_run(n_cells: int) -> RunData:
    """Cells of invented models, so named in the page."""
    models = [f"generated-{index:03d}" for index in range(n_cells // 48 + 1)]
    parts = sweep_parts(models=models, threads=(1, 2, 4, 8), depths=(0, 512, 2048))
    return run_of(parts[:n_cells], sweep_name=f"{n_cells} generated cells, not measured")


def _speed(kind: str, size: int, *, depth: int = 0, factor: float = 1.0) -> float:
    if kind == "tg":
        return BANDWIDTH / (size + depth * 131_072) * 0.8 * factor
    return 9e11 / size * factor / (1 + depth / 20_000)


def _cell(number: int, kind: str, factor: float = 1.0, **changes: Any) -> Part:
    """A cell with four repetitions around a plausible speed; test and model may be changed."""
    quant = str(changes.pop("quant", "Q4_0"))
    model = str(changes.pop("model", "tiny-llama"))
    size = SIZES[quant]
    settings = {"n_depth": 0, **changes.pop("requested", {})}
    rng = random.Random(number)
    tps = _speed(kind, size, depth=int(settings["n_depth"]), factor=factor)
    return measured(
        number,
        [tps * (1 + rng.gauss(0, 0.012)) for _ in range(4)],
        **{
            "model_label": f"{model}-{quant}",
            "model_hash": f"{model}{quant}".ljust(32, "0"),
            "model_file": f"{model}-{quant}.gguf",
            "model_quant": quant,
            "model_size_bytes": size,
            "test_kind": kind,
            "test_label": "pp512" if kind == "pp" else "tg32",
            "n_prompt": 512 if kind == "pp" else 0,
            "n_gen": 0 if kind == "pp" else 32,
            "n_depth": settings["n_depth"],
            "requested": settings,
            "telemetry": TelemetryFigures(ram_peak_process_bytes=round(size * 1.07)),
            "predicted_ram_bytes": round(size * 1.11),
            **changes,
        },
    )


def _quantisations() -> list[Part]:
    parts: list[Part] = []
    for model_index, model in enumerate(("tiny-llama", "tiny-qwen3")):
        for quant in ("Q4_0", "Q4_K_M", "Q8_0"):
            for kind in ("tg", "pp"):
                number = len(parts) // 2
                for build, factor in (("11434", 1.0), ("10488", 0.92 if kind == "pp" else 1.01)):
                    parts.append(
                        _cell(
                            number,
                            kind,
                            factor * 0.95**model_index,
                            model=model,
                            quant=quant,
                            attempt_id=f"log-{number:04d}-{build}",
                            build_label=build,
                            build_hash=build.ljust(32, "b"),
                            quality_metric="perplexity",
                            quality_value=PERPLEXITY[quant] + model_index,
                            quality_source=QUALITY_SOURCE,
                        )
                    )
    return parts


def _along(axis: str, values: Sequence[Any], *, first: int) -> list[Part]:
    """tg and pp along one axis; threads help up to 4, the rest costs a little."""
    parts: list[Part] = []
    for step, value in enumerate(values):
        factor = min(1.0, value / 4) ** 0.8 if axis == "n_threads" else 1 - 0.03 * step
        factor = 1.0 if axis == "n_depth" else factor
        for kind in ("tg", "pp"):
            requested = {axis: value}
            parts.append(_cell(first + len(parts), kind, factor, requested=requested))
    return parts


def _batches() -> list[Part]:
    """Prompts at growing physical batches, with a known compute peak."""
    parts: list[Part] = []
    for number, n_ubatch in enumerate((16, 64, 256, 1024)):
        part, samples = _cell(
            300 + number,
            "pp",
            min(1.0, (n_ubatch / 256) ** 0.7),
            requested={"n_ubatch": n_ubatch},
        )
        size, flop = SIZES["Q4_0"], part.flop_per_token or 1.0
        n_bytes = size * 0.95 / min(n_ubatch, 512)
        compute, memory = PEAK_FLOP_PER_S / flop, BANDWIDTH / n_bytes
        part = replace(
            part,
            bytes_per_token=n_bytes,
            arithmetic_intensity=flop / n_bytes,
            ceiling_tps=min(compute, memory),
            ceiling_fraction=(part.median_tps or 0.0) / min(compute, memory),
            ceiling_bound="compute" if compute < memory else "memory",
            reasons={},
        )
        parts.append((part, samples))
    return parts


def _placements(axis: str, values: Sequence[int], *, first: int, sign: int) -> list[Part]:
    """Layers on or off the GPU: VRAM and speed go together."""
    parts: list[Part] = []
    most = max(values)
    for value in values:
        share = value / most if sign > 0 else 1 - value / most
        for kind in ("tg", "pp"):
            vram = round(SIZES["Q8_0"] * share * 1.1 + (300 << 20))
            figures = TelemetryFigures(
                ram_peak_process_bytes=2 << 30,
                vram_peak_device_bytes=vram,
                gpu_energy_j=90.0,
                energy_per_token_j=0.5 + 1.5 * (1 - share),
                energy_scope="gpu",
            )
            parts.append(
                _cell(
                    first + len(parts),
                    kind,
                    0.4 + 0.6 * share**2,
                    model="placed" if sign > 0 else "experts",
                    quant="Q8_0",
                    requested={axis: value},
                    telemetry=figures,
                )
            )
    return parts


SERVED_TPS = {
    "tg": {1: 18.0, 2: 30.0, 4: 40.0, 8: 44.0},
    "pp": {1: 400.0, 2: 410.0, 4: 420.0, 8: 430.0},
}
WARM_TPS = 5000.0


def served_parts(
    streams: Sequence[int] = (1, 2, 4, 8), threads: Sequence[int] = (2,), first: int = 0
) -> list[Part]:
    """llama-server as sweeps/server-concurrency.yaml asks it: several users at once, and a prompt that was read before."""
    cells: list[tuple[str, float, dict[str, Any]]] = [
        (kind, SERVED_TPS[kind][n], {"n_threads": t, "concurrency": n})
        for t in threads
        for n in streams
        for kind in ("tg", "pp")
    ]
    if 1 in streams:
        warm = {"n_threads": threads[0], "concurrency": 1, "prompt_cache": "warm"}
        cells.append(("pp", WARM_TPS, warm))
    return [
        _served(first + number, kind, tps, requested)
        for number, (kind, tps, requested) in enumerate(cells)
    ]


def _served(number: int, kind: str, tps: float, requested: dict[str, Any]) -> Part:
    is_pp = kind == "pp"
    base, samples = measured(
        number,
        [tps * (1 + step / 1000) for step in (-2, -1, 0, 1, 2)],
        engine="llama-server",
        test_kind=kind,
        test_label="pp512" if is_pp else "tg64",
        n_prompt=512 if is_pp else 0,
        n_gen=0 if is_pp else 64,
        requested=requested,
    )
    if requested["concurrency"] > 1 or "prompt_cache" in requested:
        base = replace(
            base, ceiling_tps=None, ceiling_fraction=None, pencil_ceiling_tps=None,
            pencil_fraction=None, ceiling_bound=None, bytes_per_token=None,
        )  # fmt: skip
    n, ttft_s = requested["concurrency"], 512 / tps if is_pp else 0.05
    return streamed(
        (base, samples),
        n_requests=5 * n,
        ttft_median_s=ttft_s * n,
        ttft_p95_s=ttft_s * n * 1.1,
        tpot_median_s=None if is_pp else n / tps,
    )


def streams_parts(first: int = 600) -> list[Part]:
    """A streaming engine at 1 to 8 streams: latency grows with them."""
    parts = []
    for step, n_streams in enumerate((1, 2, 4, 8)):
        part = _cell(
            first + step,
            "tg",
            1 - 0.08 * step,
            model="served",
            engine="openai",
            requested={"concurrency": n_streams},
        )
        ttft_s, tpot_s = 0.21 * n_streams, 0.052 * (1 + 0.35 * step)
        parts.append(
            streamed(
                part,
                ttft_median_s=ttft_s,
                ttft_p95_s=ttft_s * 1.6,
                tpot_median_s=tpot_s,
                tpot_p95_s=tpot_s * 1.2,
                e2e_median_s=ttft_s + 31 * tpot_s,
                e2e_p95_s=ttft_s * 1.6 + 31 * tpot_s * 1.2,
            )
        )
    return parts
