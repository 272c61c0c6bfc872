"""How large the report is and how long it takes for 20, 200 and 1,000 measured cells. Aim: under 2 MB for 200.

Made of invented records, so that it needs no engine; the shape is that of a sweep over models, quantisations, depths
and threads with five repetitions each.
"""

from __future__ import annotations

import random
import statistics
import time

from benchmarks.bare import emit, parser

from llamasweep.report.render import render_report
from llamasweep.results.records import SCHEMA_VERSION, Attempt, RunData, RunInfo, Sample

SIZES = (20, 200, 1000)
N_REPETITIONS = 5


def main() -> None:
    """Render each size and tell bytes and seconds."""
    parser(__doc__, minutes=1).parse_args()
    render_report([invented(1)])  # the chart engine starts once per process
    figures: dict[str, object] = {}
    for n_cells in SIZES:
        run = invented(n_cells)
        start = time.perf_counter()
        html = render_report([run])
        figures[f"cells_{n_cells}"] = {
            "page_bytes": len(html.encode()),
            "render_s": round(time.perf_counter() - start, 2),
        }
    emit("report_size", {**figures, "cells_200_page_bytes_aim_below": 2_000_000})


def invented(n_cells: int) -> RunData:
    """A run of n cells: up to 12 models x 2 quantisations, then depths and threads as long as cells are needed."""
    rng = random.Random(1)
    attempts: list[Attempt] = []
    samples: list[Sample] = []
    for number in range(n_cells):
        rest, kind_index = divmod(number, 2)
        rest, depth_index = divmod(rest, 4)
        rest, threads_index = divmod(rest, 3)
        model_index, quant_index = divmod(rest, 2)
        kind = ("pp", "tg")[kind_index]
        n_tokens = 512 if kind == "pp" else 128
        depth = (0, 1024, 4096, 16384)[depth_index]
        level = (900.0 if kind == "pp" else 40.0) / (1 + model_index % 12) / (1 + depth / 20000)
        rates = [level * (1 + rng.gauss(0, 0.02)) for _ in range(N_REPETITIONS)]
        attempt = Attempt(
            run_id="invented",
            attempt_id=f"a{number}",
            cell_id=f"c{number}",
            group_id=f"g{rest}",
            round_index=0,
            attempt_index=0,
            sweep_name="invented",
            engine="llama-bench",
            status="ok",
            build_label="11434",
            build_hash="b",
            cpu_name="an invented processor",
            model_label=f"model-{model_index}-{('Q4_K_M', 'Q8_0')[quant_index]}",
            model_hash=f"m{rest}",
            model_quant=("Q4_K_M", "Q8_0")[quant_index],
            model_size_bytes=(2_500_000_000, 4_300_000_000)[quant_index],
            test_kind=kind,
            test_label=f"{kind}{n_tokens}",
            n_prompt=n_tokens if kind == "pp" else 0,
            n_gen=0 if kind == "pp" else n_tokens,
            n_depth=depth,
            requested={"n_depth": depth, "n_threads": (2, 4, 8)[threads_index]},
            n_samples=N_REPETITIONS,
            n_discarded=0,
            median_tps=statistics.median(rates),
            sample_std_tps=statistics.stdev(rates),
            min_tps=min(rates),
            max_tps=max(rates),
            pencil_ceiling_tps=50.0 if kind == "tg" else None,
            pencil_fraction=level / 50.0 if kind == "tg" else None,
        )
        attempts.append(attempt)
        samples += [
            Sample(
                attempt_id=attempt.attempt_id,
                cell_id=attempt.cell_id,
                repetition_index=index,
                n_tokens=n_tokens,
                duration_ns=round(n_tokens * 1e9 / tps),
                tps=tps,
                is_discarded=False,
            )
            for index, tps in enumerate(rates)
        ]
    return RunData(info=_info(attempts), attempts=tuple(attempts), samples=tuple(samples))


def _info(attempts: list[Attempt]) -> RunInfo:
    groups = [
        {
            "group_id": group,
            "argv": ["llama-bench", "-m", "model.gguf", "-o", "jsonl"],
            "exit_code": 0,
        }
        for group in dict.fromkeys(attempt.group_id for attempt in attempts)
    ]
    return RunInfo(
        schema_version=SCHEMA_VERSION,
        llamasweep_version="0",
        run_id="invented",
        sweep_name="invented",
        sweep_file="sweeps/invented.yaml",
        sweep_resolved={"version": 1},
        started_at="2026-01-01T00:00:00+00:00",
        finished_at="2026-01-01T01:00:00+00:00",
        seed=1,
        machine={},
        builds=[],
        models=[],
        groups=groups,
        notes=[],
        n_cells_planned=len(attempts),
    )


if __name__ == "__main__":
    main()
