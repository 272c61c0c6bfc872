"""Group logs written by hand: one engine process that said what a test wants it to have said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from llamasweep.engines.base import EngineEvent
from llamasweep.engines.llama_bench_output import LogReader
from llamasweep.results.records import Reading
from llamasweep.run.group_log import GroupLog, GroupRecord, read_group_log
from llamasweep.run.process import Line

LOG_ID = "00001-abcdef012345"
START_NS = 1_790_000_000_000_000_000
SECOND_NS = 1_000_000_000
COMMON: dict[str, Any] = {
    "run_id": "20261129T140000Z-quick-abc123",
    "group_id": "abcdef012345",
    "round_index": 0,
    "sweep_name": "quick",
    "engine": "llama-bench",
    "build_label": "b11434",
    "build_number": None,
    "build_commit": None,
    "build_hash": "b" * 32,
    "build_backends": "CPU",
    "machine_fingerprint": "f" * 16,
    "model_label": "tiny",
    "model_hash": "a" * 32,
    "model_file": "tiny.gguf",
    "model_arch": "llama",
    "model_quant": "Q4_0",
    "model_size_bytes": 4_000_000_000,
    "model_n_params": 7_000_000_000,
    "model_bits_per_weight": 4.5,
    "model_is_synthetic": False,
    "quality_metric": None,
    "quality_value": None,
    "quality_source": None,
    "n_reps_requested": 3,
}


def cell(n_prompt: int, n_gen: int, number: int = 0, **requested: Any) -> dict[str, Any]:
    return {
        "cell_id": f"{number:016x}",
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "requested": requested,
        "attempt_index": 0,
    }


def description(cells: Sequence[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "common": COMMON,
        "argv": ["/builds/llama-bench", "-m", "~/tiny.gguf"],
        "env": {},
        "cells": list(cells),
        "cpu_only": True,
        "discard": "auto",
        "telemetry_interval_s": None,
        "n_cores": 2,
        "absent": {},
        "flags": [],
        "start_ns": START_NS,
    } | changes


def row(n_prompt: int, n_gen: int, samples_ns: Sequence[int], **fields: Any) -> bytes:
    """A line as llama-bench prints it, less the fields that the test does not care about."""
    content = {"n_prompt": n_prompt, "n_gen": n_gen, "n_depth": 0, "samples_ns": list(samples_ns)}
    return json.dumps(content | fields).encode()


class Script:
    """What one process said, in order; each word takes a second unless told otherwise."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.now_ns = START_NS

    def after_s(self, seconds: float) -> Script:
        self.now_ns += round(seconds * SECOND_NS)
        return self

    def err(self, *texts: str) -> Script:
        for text in texts:
            self.lines.append(Line(stream="stderr", data=text.encode(), time_ns=self.now_ns))
        return self

    def out(self, data: bytes, *, is_cut: bool = False) -> Script:
        self.lines.append(Line(stream="stdout", data=data, time_ns=self.now_ns, is_cut=is_cut))
        return self

    def bench(self, index: int, count: int, *steps: str, each_s: float = 1.0) -> Script:
        """Progress lines of one test, `each_s` after one another."""
        for step in steps:
            self.after_s(each_s).err(f"llama-bench: benchmark {index}/{count}: {step}")
        return self


def write_log(
    logs_dir: Path,
    described: dict[str, Any],
    script: Script,
    *,
    end: dict[str, Any] | None,
    readings: Iterable[Reading] = (),
) -> GroupRecord:
    """Write the log as the runner does and read it back. end: None where the runner was killed."""
    reader, n_rows = LogReader(), 0
    with GroupLog(logs_dir, LOG_ID, described) as log:
        log.readings(readings)
        for line in script.lines:
            log.keep(line)
            event: EngineEvent | None
            if line.stream == "stderr":
                event = reader.feed(line.data.decode())
            else:
                is_row = line.data.startswith(b"{") and not line.is_cut
                event = EngineEvent(kind="row", cell_index=n_rows) if is_row else None
                n_rows += is_row
            if event is not None:
                log.event(event, line.time_ns)
        if end is not None:
            defaults = {
                "exit_code": 0,
                "exit_signal": None,
                "reason": "ended",
                "message": None,
                "absent": None,
                "start_ns": START_NS,
                "end_ns": script.now_ns,
            }
            log.end(defaults | end)
    record = read_group_log(logs_dir, LOG_ID)
    assert record is not None
    return record
