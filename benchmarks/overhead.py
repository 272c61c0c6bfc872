"""Speed under llamasweep against bare llama-bench. Aim: the interval of the ratio holds 1.

Interleaved pairs in random order: a run of one cell through `llamasweep run` with telemetry at its default interval, and
the same call bare. Each pair gives a ratio of medians per test; pairs go on until the half-width of every ratio's interval is
at most 1 %, or the minutes are over.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from benchmarks.bare import (
    LLAMASWEEP,
    Ratio,
    emit,
    engine,
    median_tps,
    model,
    paired_ratio,
    parser,
    rows,
    run,
    scratch,
    tell,
    write_sweep,
)  # fmt: skip

TESTS = {"pp256": ("-p", "256", "-n", "0"), "tg64": ("-p", "0", "-n", "64")}
REPETITIONS = 20
HALF_WIDTH_AIM = 0.01
MIN_PAIRS = 5
SEED = 20


def harness_tps(sweep: Path, folder: Path) -> dict[str, float]:
    """Median rate of each test under llamasweep, without the first repetition."""
    argv = [LLAMASWEEP, "run", str(sweep), "--results", str(folder / "results"), "--fresh"]
    run_dir = Path(json.loads(run([*argv, "--json", "--no-report"], cwd=folder).stdout)["run_dir"])
    cells = pd.read_parquet(run_dir / "cells.parquet", columns=["attempt_id", "n_gen"])
    samples = pd.read_parquet(run_dir / "samples.parquet")
    later = samples[samples.repetition_index > 0].merge(cells, on="attempt_id")
    medians = later.groupby("n_gen").tps.median()
    return {"pp256": float(medians[0]), "tg64": float(medians[64])}


def bare_tps(program: Path, file: Path, n_threads: int, folder: Path) -> dict[str, float]:
    """The same from llama-bench itself, both tests in one process, as llamasweep runs them."""
    argv = [str(program), "-m", str(file), "-p", "256", "-n", "64", "-t", str(n_threads)]
    found = rows(run([*argv, "-r", str(REPETITIONS), "-o", "jsonl"], cwd=folder).stdout)
    return {"tg64" if row["n_gen"] else "pp256": median_tps(row) for row in found}


def is_precise(ratio: Ratio) -> bool:
    """Whether the interval is as narrow as asked for."""
    half = ratio.half_width_fraction
    return ratio.n_pairs >= MIN_PAIRS and half is not None and half <= HALF_WIDTH_AIM


def main() -> None:
    """Measure pairs until precise or out of time."""
    options = parser(__doc__, minutes=20).parse_args()
    program, file = engine(options.engine), model("tiny-llama", "Q4_0")
    n_threads = max(1, (os.cpu_count() or 2) // 2)
    logs: dict[str, list[float]] = {test: [] for test in TESTS}
    order = random.Random(SEED)
    began = time.monotonic()
    with scratch() as folder:
        sweep = write_sweep(
            folder,
            {
                "models": [{"path": str(file)}],
                "builds": [str(program)],
                "tests": list(TESTS),
                "matrix": {"threads": [n_threads]},
                "repetitions": REPETITIONS,
            },
        )
        while True:
            harness_first = order.random() < 0.5
            harness = harness_tps(sweep, folder) if harness_first else {}
            bare = bare_tps(program, file, n_threads, folder)
            harness = harness or harness_tps(sweep, folder)
            for test, found in logs.items():
                found.append(math.log(harness[test] / bare[test]))
            ratios = {test: paired_ratio(found) for test, found in logs.items()}
            tell(
                ", ".join(
                    f"{test} {ratio.ratio:.4f} ({ratio.n_pairs} pairs)"
                    for test, ratio in ratios.items()
                )
            )
            is_over = time.monotonic() - began > options.minutes * 60
            if is_over or all(is_precise(ratio) for ratio in ratios.values()):
                break
    emit(
        "overhead",
        {
            "tests": {test: asdict(ratio) for test, ratio in ratios.items()},
            "half_width_aim_fraction": HALF_WIDTH_AIM,
            "n_threads": n_threads,
            "repetitions": REPETITIONS,
            "wall_s": round(time.monotonic() - began, 1),
        },
    )


if __name__ == "__main__":
    main()
