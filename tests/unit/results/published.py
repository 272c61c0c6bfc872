"""Published decode rates as runs: one run per source and device, so that rows are compared as a sweep's would be.

Ceilings are the table's own (file and KV cache); nothing is known of machines, samples or telemetry.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.unit.results.made import attempt, run_of

from llamasweep.gguf.ggml_types import FILE_TYPES
from llamasweep.results.checks import Finding, check_run, explanations
from llamasweep.results.decode_alarm import is_decode_alarm
from llamasweep.results.records import Attempt

GOLDEN = Path(__file__).parents[2] / "golden"
DEPTH_MOST = 512
QUANTS = {entry.llama_bench_name: entry.short_name for entry in FILE_TYPES}


@dataclass(frozen=True, kw_only=True)
class Published:
    """A row of the table. number: 1-based."""

    number: int
    columns: dict[str, str]
    build_number: int | None
    n_threads: int | None

    def __getitem__(self, name: str) -> str:
        return self.columns[name]

    @property
    def tps(self) -> float:
        return float(self["tokens_per_s"])

    @property
    def ceiling_tps(self) -> float:
        """Bandwidth / (file + KV cache)."""
        return float(self["ceiling_weights_and_kv"])

    @property
    def is_alarm(self) -> bool:
        return is_decode_alarm(self.tps, self.ceiling_tps, int(self["depth"]))

    @property
    def attempt_id(self) -> str:
        return f"row-{self.number}"


def _table(path: str) -> list[dict[str, str]]:
    with (GOLDEN / path).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


@cache
def shallow_rows() -> tuple[Published, ...]:
    """Rows with a ceiling, at depths of at most 512."""
    builds = _table("findings/ceiling_check_builds.csv")
    rows = [
        Published(
            number=number,
            columns=columns,
            build_number=int(build["build_number"]) if build["build_number"] else None,
            n_threads=int(build["n_threads"]) if build["n_threads"] else None,
        )
        for number, (columns, build) in enumerate(
            zip(_table("models/ceiling_check.csv"), builds, strict=True), start=1
        )
    ]
    return tuple(
        row for row in rows if row["ceiling_weights_and_kv"] and int(row["depth"]) <= DEPTH_MOST
    )


def as_attempt(row: Published) -> Attempt:
    """The row as llamasweep would have recorded it."""
    backend = row["backend"].split(" ", maxsplit=1)[0]
    n_gen = int(row["test"].removeprefix("tg"))
    billions = re.search(r"(\d+)B", row["model"])
    on_gpu = backend != "CPU"
    return attempt(
        row.number,
        attempt_id=row.attempt_id,
        build_label=f"{row['engine']} {backend} {row.build_number}",
        build_hash=f"{row['engine']} {backend} {row.build_number}",
        build_backends=backend,
        build_number=row.build_number,
        cpu_name=None if on_gpu else row["device"],
        gpu_name=row["device"] if on_gpu else None,
        model_label=row["model"],
        model_hash=f"{row['model']} {row['quant']}",
        model_arch=row["model"].split(" ", maxsplit=1)[0],
        model_n_params=int(billions[1]) * 10**9 if billions else None,
        model_quant=QUANTS.get(row["quant"], row["quant"] or None),
        model_size_bytes=round(float(row["weights_GB"]) * 1e9),
        test_label=row["test"],
        n_gen=n_gen,
        n_depth=int(row["depth"]),
        requested={"n_threads": row.n_threads} if row.n_threads else {},
        applied={},
        median_tps=row.tps,
        ceiling_tps=row.ceiling_tps,
        ceiling_bandwidth_bytes_per_s=float(row["mem_bandwidth_GBps"]) * 1e9,
        ceiling_bandwidth_source="the device table",
        bytes_per_token=float(row["mem_bandwidth_GBps"]) * 1e9 / row.ceiling_tps,
    )


@cache
def findings() -> tuple[Finding, ...]:
    """Of all rows, each source and device as one run."""
    runs: dict[tuple[str, str], list[Published]] = {}
    for row in shallow_rows():
        runs.setdefault((row["source"], row["device"]), []).append(row)
    return tuple(
        finding
        for rows in runs.values()
        for finding in check_run(run_of([as_attempt(row) for row in rows]))
    )


def causes(row: Published) -> str:
    """Kinds of the findings that explain the row, or "unexplained"."""
    kinds = dict.fromkeys(found.kind for found in explanations(findings(), row.attempt_id))
    return ", ".join(kinds) or "unexplained"
