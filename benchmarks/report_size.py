"""How large the report is, how long it takes to make, and how soon a browser shows its first chart, for 20 to 5,000 cells.

Aims: under 2 MB for 200 cells and 6 MB for 5,000; the first chart within 2 s for 1,000, in headless Chromium on two cores.

Made of invented records, so that it needs no engine; the shape is that of a sweep over models, quantisations, depths
and threads with five repetitions each.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.bare import emit, parser
from tests.integration.browser import browser, program

from llamasweep.report.render import render_report
from llamasweep.results.records import SCHEMA_VERSION, Attempt, RunData, RunInfo, Sample

SIZES = (20, 200, 1000, 5000)
N_OPENINGS = 5
FIRST_CHART = "performance.getEntriesByName('first chart')[0].startTime"
N_REPETITIONS = 5


def main() -> None:
    """Render each size and tell bytes and seconds."""
    parser(__doc__, minutes=1).parse_args()
    render_report([invented(1)])  # the chart engine starts once per process
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for n_cells in SIZES:
            run = invented(n_cells)
            start = time.perf_counter()
            html = render_report([run])
            rendered_s = time.perf_counter() - start
            page = Path(folder) / f"{n_cells}.html"
            page.write_text(html, encoding="utf-8")
            figures[f"cells_{n_cells}"] = {
                "page_bytes": len(html.encode()),
                "render_s": round(rendered_s, 2),
                "first_chart_s": first_chart_s(page, Path(folder) / "profile"),
            }
    aims = {
        "cells_200_page_bytes_aim_below": 2_000_000,
        "cells_5000_page_bytes_aim_below": 6_000_000,
        "cells_1000_first_chart_s_aim_below": 2.0,
    }
    emit("report_size", {**figures, **aims})


def first_chart_s(page: Path, profile: Path) -> list[float] | None:
    """Seconds from asking for the page until its first chart was painted, of each opening; None without a browser.

    Nothing in the page tells it, so an observer is put in before the page's own script runs: the second frame after the first
    chart was laid out.
    """
    if program() is None:
        return None
    watch = (
        "new MutationObserver((_, me) => { if (document.querySelector('figure.chart svg')) { me.disconnect();"
        " requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('first chart'))); } })"
        ".observe(document, {childList: true, subtree: true});"
    )
    with browser(profile) as tab:
        tab.send("Page.addScriptToEvaluateOnNewDocument", source=watch)
        found = []
        for _ in range(N_OPENINGS):
            tab.open(page)
            found.append(round(float(tab.evaluate(FIRST_CHART)) / 1e3, 3))
        return found


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
