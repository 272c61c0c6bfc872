"""Invented readings beside an invented run: a process with a load, a pp and a tg test, on a CPU or with a GPU that gets hot."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.report.factory import Part, measured, run_of

from llamasweep.results.records import Reading, RunData, Sample

START_NS = 1_795_960_800_000_000_000
"""2026-11-29 14:00:00 UTC."""
LOAD_S, PP_S, TG_S, PAUSE_S = 2.0, 6.0, 10.0, 0.4


def at(seconds: float) -> datetime:
    """Seconds after the start as a time."""
    return datetime.fromtimestamp(START_NS // 10**9, UTC) + timedelta(seconds=seconds)


def timed(part: Part, start_s: float, length_s: float, log_id: str) -> Part:
    """The part with its repetitions one after the other over `length_s`, after a warm-up of PAUSE_S."""
    attempt, samples = part
    attempt = replace(
        attempt, log_path=f"logs/{log_id}.jsonl", load_s=LOAD_S, started_at=at(start_s - PAUSE_S)
    )
    width_s = length_s / len(samples)
    spread = [
        replace(s, started_at=at(start_s + i * width_s), duration_ns=round(width_s * 1e9))
        for i, s in enumerate(samples)
    ]
    return attempt, spread


def group(number: int, start_s: float, length_s: float, **changes: Any) -> dict[str, Any]:
    """One entry of run.json's groups."""
    plain = {
        "group_id": f"g{number}",
        "log_id": f"{number:05d}-g{number}",
        "argv": ["llama-bench", "-m", "models/tiny-llama-Q4_0.gguf"],
        "env": {},
        "n_cells": 2,
        "exit_code": 0,
        "start_ns": START_NS + round(start_s * 1e9),
        "end_ns": START_NS + round((start_s + length_s) * 1e9),
    }
    return {**plain, **changes}


def process_readings(
    start_s: float, length_s: float, *, gpu: bool = False, interval_s: float = 0.1, seed: int = 3
) -> Iterator[Reading]:
    """Readings of one process, its figures following what it does."""
    rng = random.Random(seed)
    cpu_s = busy_s = energy_j = 0.0
    for step in range(int(length_s / interval_s)):
        t = step * interval_s
        time_ns = START_NS + round((start_s + t) * 1e9)
        is_busy = t > LOAD_S
        cpu_s += interval_s * (1.0 if gpu else 4.0) * (1.0 if is_busy else 0.3)
        busy_s += interval_s * (0.1 + (1.0 if gpu else 4.0) * (1.0 if is_busy else 0.3))
        rss = min(1.0, t / LOAD_S) * 2.03e9
        disk = min(1.0, t / LOAD_S) * 1.9e9
        energy_j += interval_s * (65.0 if is_busy else 20.0)
        facts: list[tuple[str, str, str, float]] = [
            ("proc", "process", "cpu_time_s", cpu_s),
            ("proc", "process", "rss_bytes", rss),
            ("proc", "process", "disk_read_bytes", disk),
            ("proc", "process", "major_faults_count", 12.0),
            ("proc", "system", "cpu_busy_s", 1000 + busy_s),
            ("proc", "system", "ram_used_bytes", 3e9 + rss * 0.9),
            ("proc", "system", "swap_used_bytes", 0.0),
            ("rapl", "package-0", "energy_j", 5e4 + energy_j),
        ]
        if gpu:
            heat = min(1.0, t / 12)
            is_hot = heat > 0.95 and step % 10 < 6
            clock = (2610 if is_busy else 210) - (330 if is_hot else 0) + rng.gauss(0, 8)
            facts += [
                ("nvml", "gpu0", "power_w", (310 if is_busy else 60) + rng.gauss(0, 6)),
                ("nvml", "gpu0", "temperature_c", 41 + 42 * heat),
                ("nvml", "gpu0", "sm_clock_mhz", clock),
                ("nvml", "gpu0", "memory_clock_mhz", 10_501.0),
                ("nvml", "gpu0", "use_fraction", 0.97 if is_busy else 0.05),
                ("nvml", "gpu0", "vram_used_bytes", 4e8 + min(1.0, t / LOAD_S) * 5.1e9),
                ("nvml", "gpu0", "is_throttled", float(is_hot)),
            ]
        for source, device, metric, value in facts:
            yield Reading(time_ns=time_ns, source=source, device=device, metric=metric, value=value)


def process_parts(number: int, start_s: float, **changes: Any) -> list[Part]:
    """A pp and a tg test of one process."""
    log_id = f"{number:05d}-g{number}"
    pp = measured(
        2 * number,
        [900.0, 910.0, 905.0],
        test_kind="pp",
        test_label="pp512",
        n_prompt=512,
        n_gen=0,
        **changes,
    )
    tg = measured(2 * number + 1, [16.0, 16.4, 16.1], **changes)
    first = start_s + LOAD_S + PAUSE_S
    return [
        timed(pp, first, PP_S, log_id),
        timed(tg, first + PP_S + PAUSE_S, TG_S, log_id),
    ]


LENGTH_S = LOAD_S + PP_S + TG_S + 2 * PAUSE_S + 0.3


def run_over_time(n_processes: int = 1, *, gpu: bool = False, **changes: Any) -> RunData:
    """A run of processes one after the other, each with its readings."""
    starts = [number * (LENGTH_S + 1) for number in range(n_processes)]
    parts = [
        part
        for number, start_s in enumerate(starts)
        for part in process_parts(number, start_s, requested={"n_threads": 4 + number})
    ]
    readings = [
        reading
        for number, start_s in enumerate(starts)
        for reading in process_readings(start_s, LENGTH_S, gpu=gpu, seed=number)
    ]
    groups = [group(number, start_s, LENGTH_S) for number, start_s in enumerate(starts)]
    run = run_of(parts, groups=groups, **changes)
    return replace(run, readings=tuple(readings))


def samples_of(run: RunData) -> dict[str, list[Sample]]:
    """attempt_id -> its samples."""
    found: dict[str, list[Sample]] = {}
    for sample in run.samples:
        found.setdefault(sample.attempt_id, []).append(sample)
    return found
