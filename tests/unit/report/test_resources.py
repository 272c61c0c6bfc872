"""Memory and energy: what stands beside what, and absence where nothing was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.report.factory import SIZES, Part, measured, run_of, sweep_parts, telemetry

from llamasweep.report.figures import THIN
from llamasweep.report.resource_charts import energy_chart, growth_chart, memory_chart
from llamasweep.report.resource_sections import resource_sections
from llamasweep.report.resources import energy_bars, memory_bars, memory_growth
from llamasweep.report.rows import Row, rows_of


def _rows(*parts: Part) -> tuple[Row, ...]:
    return rows_of([run_of(parts)])


def _at(depth: int, n_bytes: int, number: int) -> Part:
    figures = replace(telemetry(0, gpu=False), ram_peak_process_bytes=n_bytes)
    return measured(number, [10.0], n_depth=depth, requested={"n_depth": depth}, telemetry=figures)


def test_peaks_stand_beside_the_size_of_the_model() -> None:
    vram, ram = memory_bars(_rows(*sweep_parts(gpu=True)))
    assert vram.title == "VRAM peaks at 1.12 times the size of the model"
    assert [bar.label for bar in vram.bars][:2] == ["tiny-llama Q8_0", "tiny-qwen3 Q8_0"]
    assert vram.bars[0].mark == SIZES["Q8_0"]
    assert vram.bars[0].value == round(SIZES["Q8_0"] * 1.12)
    assert "VRAM peak 3.76" in vram.bars[0].words
    assert ram.title.startswith("RAM peaks at 0.2")
    values = memory_chart(vram)["data"]["values"]
    assert values[0]["value"] == pytest.approx(SIZES["Q8_0"] * 1.12 / 2**30)
    assert values[0]["mark"] == pytest.approx(SIZES["Q8_0"] / 2**30)


def test_a_model_of_unknown_size_has_its_peak_alone() -> None:
    row = measured(1, [10.0], model_size_bytes=None, telemetry=telemetry(2**20, gpu=False))
    (ram,) = memory_bars(_rows(row))
    assert ram.title == f"RAM peaks at 1.07{THIN}MiB"
    assert ram.bars[0].mark is None
    (value,) = memory_chart(ram)["data"]["values"]
    assert value["mark"] is None
    assert value["label_x"] == value["value"]


def test_memory_against_depth_is_drawn_where_depth_varies() -> None:
    (view,) = memory_growth(_rows(_at(0, 100 << 20, 1), _at(4096, 164 << 20, 2)))
    assert view.title == f"RAM grows by 64.0{THIN}MiB up to depth 4096"
    (line,) = view.lines
    assert [(x, y) for x, y, _ in line.points] == [(0.0, 100 << 20), (4096.0, 164 << 20)]
    assert [value["y"] for value in growth_chart(view)["data"]["values"]] == [100, 164]
    assert memory_growth(_rows(_at(0, 100 << 20, 1))) == ()


def test_memory_that_does_not_grow_is_said_not_to() -> None:
    (view,) = memory_growth(_rows(_at(0, 100 << 20, 1), _at(4096, 100 << 20, 2)))
    assert view.title == "RAM does not grow up to depth 4096"


def test_energy_is_told_per_token_with_what_it_covers() -> None:
    (tg, bars), (pp, _) = energy_bars(_rows(*sweep_parts(gpu=True)))
    assert (tg, pp) == ("tg", "pp")
    assert bars.title == f"tiny-llama Q4_0 takes 0.410{THIN}J a token, 8780 tokens per Wh"
    assert bars.subtitle == "tg32, energy of the GPU alone"
    assert energy_chart(bars, "tg")["data"]["values"][0]["value"] == 0.41


def test_what_was_not_measured_has_no_section() -> None:
    assert resource_sections(_rows(measured(1, [10.0]))) == ()
    anchors = [section.anchor for section in resource_sections(_rows(*sweep_parts()))]
    assert anchors == ["roofline", "memory"]


def test_a_peak_stands_beside_what_was_predicted_and_no_prediction_is_null() -> None:
    told = measured(
        1, [10.0], predicted_ram_bytes=2_200_000_000, telemetry=telemetry(SIZES["Q4_0"], gpu=False)
    )
    silent = measured(2, [9.0], model_label="other", telemetry=telemetry(SIZES["Q4_0"], gpu=False))
    (view,) = memory_bars(rows_of([run_of([told, silent])]))
    assert {bar.label: bar.predicted for bar in view.bars} == {
        "tiny-llama Q4_0": 2_200_000_000,
        "other Q4_0": None,
    }
    values = memory_chart(view)["data"]["values"]
    assert [value["predicted"] for value in values].count(None) == 1
    assert "predicted 2.05" in next(b.words for b in view.bars if b.predicted)
