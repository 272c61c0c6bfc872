"""Physical batches under their roofs: memory rises with the batch, compute is level, titles tell the shares."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.report.factory import BANDWIDTH, SIZES, run_of, sweep_parts
from tests.unit.report.wide import PEAK_FLOP_PER_S, every_axis_run

from llamasweep.report.batch import batches, step_words, title
from llamasweep.report.batch_charts import ROOM, batch_chart
from llamasweep.report.rows import rows_of
from llamasweep.results.records import RunData


def test_roofs_are_bandwidth_over_bytes_and_peak_over_work() -> None:
    (view,) = batches(rows_of([every_axis_run()]))
    ((_, steps),) = view.lines
    assert [step.n_ubatch for step in steps] == [16, 64, 256, 1024]
    assert [step.memory_tps for step in steps] == pytest.approx(
        [BANDWIDTH * min(n, 512) / (SIZES["Q4_0"] * 0.95) for n in (16, 64, 256, 1024)]
    )
    flop = steps[0].row.attempt.flop_per_token
    assert flop is not None
    assert [step.compute_tps for step in steps] == pytest.approx([PEAK_FLOP_PER_S / flop] * 4)
    assert "of the compute roof there" in title(view)


def test_without_a_peak_there_is_no_compute_roof() -> None:
    (view,) = batches(rows_of([_without_compute(every_axis_run())]))
    assert {step.compute_tps for _, steps in view.lines for step in steps} == {None}
    assert "compute" not in title(view)
    assert "compute" not in step_words(view.lines[0][1][0])
    dashes = [layer["mark"].get("strokeDash") for layer in batch_chart(view)["layer"]]
    assert [5, 3] not in dashes


def test_a_sweep_that_leaves_the_batch_alone_has_no_such_chart() -> None:
    assert batches(rows_of([run_of(sweep_parts())])) == ()


def test_the_memory_roof_is_cut_where_it_leaves_the_chart() -> None:
    (view,) = batches(rows_of([every_axis_run()]))
    spec = batch_chart(view)
    roof = spec["layer"][0]["data"]["values"]
    top = max(step.compute_tps or 0.0 for _, steps in view.lines for step in steps) * ROOM
    assert roof[-1]["y"] == pytest.approx(top)
    assert max(point["y"] for point in roof) <= top * 1.0001
    assert spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def _without_compute(run: RunData) -> RunData:
    attempts = tuple(
        replace(a, ceiling_bound=None, ceiling_tps=None) if a.test_kind == "pp" else a
        for a in run.attempts
    )
    return replace(run, attempts=attempts)
