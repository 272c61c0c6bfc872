"""Wall time of a sweep of 24 cells against bare processes.

Three ways to measure the same cells: `llamasweep run`, with its report timed apart; the plan's own argv lists, bare,
one after another (aim: llamasweep takes at most 1.03 times as long); and one bare llama-bench process per cell, as a
shell loop would do (aim: clearly slower). What llamasweep spends while no engine runs is told apart: it is free of the
engine's own noise. Repetitions are chosen so that the sweep takes two minutes or more; the axes are those of a depth study,
where a process for each cell reads the same context again and again.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

from benchmarks.bare import (
    LLAMASWEEP,
    emit,
    engine,
    model,
    parser,
    rows,
    run,
    scratch,
    tell,
    write_sweep,
)

QUANTS = ("Q4_0", "Q8_0")
DEPTHS = (0, 4096, 8192)
TESTS = ("pp256", "tg32")
LEAST_WALL_S = 130.0
N_CELLS = 24


def cell_argv(program: Path, file: Path, cell: tuple[int, int, str], n_reps: int) -> list[str]:
    """One bare call for one cell: (threads, depth, test)."""
    n_threads, depth, test = cell
    shape = ["-p", test[2:], "-n", "0"] if test.startswith("pp") else ["-p", "0", "-n", test[2:]]
    argv = [str(program), "-m", str(file), "-t", str(n_threads), "-d", str(depth), *shape]
    return [*argv, "-r", str(n_reps), "-o", "jsonl"]


def document(program: Path, files: list[Path], threads: list[int], n_reps: int) -> dict[str, Any]:
    """The sweep of all cells."""
    return {
        "models": [{"path": str(file)} for file in files],
        "builds": [str(program)],
        "tests": list(TESTS),
        "matrix": {"threads": threads, "depth": list(DEPTHS)},
        "repetitions": n_reps,
    }


def plan_argvs(sweep: Path, folder: Path) -> list[list[str]]:
    """The calls that llamasweep would make."""
    plan = json.loads(run([LLAMASWEEP, "plan", str(sweep), "--json"], cwd=folder).stdout)
    return [list(group["argv"]) for group in plan["groups"]]


def repetitions_for(seconds: float, argvs: list[list[str]], folder: Path) -> int:
    """How many repetitions fill the time: from one bare pass with a single one."""
    once_s = 0.0
    for argv in argvs:
        once_s += (
            sum(ns for row in rows(run(argv, cwd=folder).stdout) for ns in row["samples_ns"]) / 1e9
        )
    return max(2, math.ceil(seconds / once_s))


def engine_seconds(results: Path) -> float:
    """How long engines ran in the only run of a folder, from start to end of each process."""
    (path,) = results.glob("*/run.json")
    groups = json.loads(path.read_text(encoding="utf-8"))["groups"]
    return float(sum(group["end_ns"] - group["start_ns"] for group in groups) / 1e9)


def main() -> None:
    """Measure the three ways once each, the plan's own before and after llamasweep."""
    options = parser(__doc__, minutes=20).parse_args()
    program = engine(options.engine)
    files = [model("tiny-llama", quant) for quant in QUANTS]
    threads = sorted({1, max(2, (os.cpu_count() or 2) // 2)})
    with scratch() as folder:
        single = plan_argvs(write_sweep(folder, document(program, files, threads, 1)), folder)
        n_reps = repetitions_for(min(LEAST_WALL_S, options.minutes * 60 / 4), single, folder)
        sweep = write_sweep(folder, document(program, files, threads, n_reps))
        argvs = plan_argvs(sweep, folder)
        tell(f"{n_reps} repetitions; the plan's own calls, bare")
        before = [run(argv, cwd=folder) for argv in argvs]
        tell("llamasweep")
        harness = run(
            [
                LLAMASWEEP,
                "run",
                str(sweep),
                "--results",
                str(folder / "results"),
                "--fresh",
                "--no-report",
            ],
            cwd=folder,
        )
        engines_s = engine_seconds(folder / "results")
        report = run([LLAMASWEEP, "report", "--results", str(folder / "results")], cwd=folder)
        tell("the plan's own calls again")
        after = [run(argv, cwd=folder) for argv in argvs]
        tell("a process for each cell")
        loop_s = sum(
            run(cell_argv(program, file, cell, n_reps), cwd=folder).wall_s
            for file in files
            for cell in itertools.product(threads, DEPTHS, TESTS)
        )
    n_cells = sum(len(rows(done.stdout)) for done in before)
    assert n_cells == N_CELLS, f"{n_cells} rows instead of {N_CELLS}"
    plan_s = (sum(done.wall_s for done in before) + sum(done.wall_s for done in after)) / 2
    emit(
        "sweep_wall",
        {
            "n_cells": n_cells,
            "n_processes": len(argvs),
            "repetitions": n_reps,
            "harness_s": round(harness.wall_s, 2),
            "plan_argvs_s": round(plan_s, 2),
            "plan_argvs_before_after_s": [
                round(sum(d.wall_s for d in done), 2) for done in (before, after)
            ],
            "harness_own_s": round(harness.wall_s - engines_s, 2),
            "harness_own_to_engines_ratio": round(harness.wall_s / engines_s, 4),
            "report_s": round(report.wall_s, 2),
            "process_per_cell_s": round(loop_s, 2),
            "harness_to_plan_ratio": round(harness.wall_s / plan_s, 4),
            "harness_to_plan_ratio_aim_at_most": 1.03,
            "process_per_cell_to_harness_ratio": round(loop_s / harness.wall_s, 4),
        },
    )


if __name__ == "__main__":
    main()
