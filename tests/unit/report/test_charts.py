"""Charts as data: valid Vega-Lite, every repetition and ceiling in them, nothing from outside where it could act."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import altair
import pytest
from tests.unit.report.factory import HOSTILE, hostile_run, lost, measured, run_of, sweep_parts

from llamasweep.report import charts, panels
from llamasweep.report.marks import PALETTE, ceilings, spread_apart
from llamasweep.report.rows import Measured, Row, rows_of
from llamasweep.report.views import Page, page

RESOURCES = {"roofline", "memory", "energy"}


def _specs(view: Page, without: set[str] | None = None) -> list[dict[str, Any]]:
    sections = [section for section in view.sections if section.anchor not in (without or set())]
    return [chart.spec for section in sections for chart in section.charts]


def _values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = spec["data"]["values"]
    return values


def _strings(node: object) -> Iterator[tuple[str, str]]:
    """Every (key, text) outside of data."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "data":
                continue
            if isinstance(value, str):
                yield key, value
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)


def _tg_rows() -> list[Row]:
    return [
        row for row in rows_of([run_of(sweep_parts(threads=(2,), depths=(0,)))]) if row.kind == "tg"
    ]


@pytest.mark.parametrize(
    "run", [run_of(sweep_parts()), hostile_run(), run_of(sweep_parts(gpu=True))]
)
def test_every_chart_is_valid_vega_lite(run: Any) -> None:
    specs = _specs(page([run]))
    assert specs
    for spec in specs:
        # A null background is valid in Vega-Lite, but altair's class for the whole takes only colours.
        altair.LayerChart.from_dict(
            {k: v for k, v in spec.items() if k not in ("background", "$schema")}
        )


def test_bars_carry_median_range_repetitions_and_ceiling() -> None:
    rows = _tg_rows()
    spec = charts.rates_chart(rows, [row.subject for row in rows])
    for row, value in zip(rows, _values(spec), strict=True):
        assert row.rates is not None
        assert value["median"] == row.rates.median
        assert (value["low"], value["high"]) == (row.rates.low, row.rates.high)
        assert value["kept"] == list(row.rates.kept)
        assert value["ceiling"] == row.ceiling.value
        assert value["pencil"] == row.pencil_ceiling.value
        assert value["name"] == row.subject
        assert f"n = {row.rates.n_kept}" in value["words"]
    marks = [layer["mark"]["type"] for layer in spec["layer"]]
    assert marks == ["bar", "bar", "rule", "point", "tick", "tick", "text"]


def test_generation_has_the_usual_band_of_its_pencil_ceiling_behind_the_bar() -> None:
    rows = _tg_rows()
    for row, value in zip(
        rows, _values(charts.rates_chart(rows, [row.subject for row in rows])), strict=True
    ):
        assert row.pencil_ceiling.value is not None
        assert value["band_low"] == pytest.approx(0.70 * row.pencil_ceiling.value)
        assert value["band_high"] == pytest.approx(0.85 * row.pencil_ceiling.value)
    (prompt,) = rows_of([run_of([measured(1, [5.0], test_kind="pp", n_prompt=32, n_gen=0)])])
    assert "band_low" not in _values(charts.rates_chart([prompt], ["x"]))[0]


def test_long_names_stand_above_their_bars_and_short_ones_left_of_them() -> None:
    rows = _tg_rows()
    short = charts.rates_chart(rows, [f"m{n}" for n, _ in enumerate(rows)])
    assert short["layer"][0]["encoding"]["y"]["axis"] is not None
    long = charts.rates_chart(rows, [f"a-model-with-a-long-name-{n}" for n, _ in enumerate(rows)])
    assert long["layer"][0]["encoding"]["y"]["axis"] is None
    assert long["layer"][-1]["encoding"]["text"] == {"field": "name"}
    assert long["height"] > short["height"]


def test_names_are_moved_apart_as_little_as_needed() -> None:
    placed = spread_apart([(10.0, "c"), (10.0, "a"), (10.0, "b"), (30.0, "far")], gap=2.0)
    assert placed == [(8.0, "a"), (10.0, "b"), (12.0, "c"), (30.0, "far")]
    assert spread_apart([], gap=1.0) == []
    assert spread_apart([(0.1, "b"), (0.1, "a")], gap=2.0) == [(0.0, "a"), (2.0, "b")]


def test_one_repetition_has_no_range_to_draw() -> None:
    (row,) = rows_of([run_of([measured(1, [10.0])])])
    (value,) = _values(charts.rates_chart([row], ["x"]))
    assert value["low"] is None
    assert value["high"] is None


def test_a_bar_without_a_rate_has_words_and_no_number() -> None:
    (row,) = rows_of([run_of([lost(1, status="failed")])])
    (value,) = _values(charts.rates_chart([row], ["x"]))
    assert value["label"] == "not measured"
    assert "median" not in value


def test_a_label_stands_at_the_median_where_the_fastest_is_not_known() -> None:
    (row,) = rows_of([run_of([measured(1, [10.0, 11.0])])])
    assert row.rates is not None
    none = Measured(value=None, reason="not known")
    rates = replace(row.rates, high=None)
    row = replace(row, rates=rates, ceiling=none, pencil_ceiling=none)
    (value,) = _values(charts.rates_chart([row], ["x"]))
    assert value["high"] is None
    assert value["label_x"] == 10.5


def test_too_many_repetitions_are_not_drawn_one_by_one() -> None:
    rows = rows_of(
        [run_of([measured(n, [10.0 + n / 10] * 100) for n in range(panels.MAX_DOTS // 100 + 1)])]
    )
    spec = charts.rates_chart(rows, [f"row {n}" for n in range(len(rows))])
    assert not charts.has_dots(rows)
    assert "kept" not in _values(spec)[0]
    assert "point" not in [layer["mark"]["type"] for layer in spec["layer"]]


def test_lines_go_through_the_measured_points_and_end_with_their_name() -> None:
    panel = panels.panels(rows_of([run_of(sweep_parts(models=("m",), threads=(2,)))]), "n_depth")[0]
    spec = charts.panel_chart(panel)
    assert [value["x"] for value in _values(spec)] == [0, 512, 2048] * 2
    labels = [
        v["label"]
        for layer in spec["layer"]
        if layer["mark"]["type"] == "text"
        for v in layer["data"]["values"]
    ]
    assert labels == ["Q8_0", "Q4_0", "ceiling Q8_0", "ceiling Q4_0"]


def test_names_at_line_ends_do_not_touch() -> None:
    parts = [
        measured(
            10 * q + n,
            [10.0 + q / 100],
            model_label=f"m-{q}",
            model_quant=str(q),
            requested={"n_threads": n},
        )
        for q in range(4)
        for n in (1, 2)
    ]
    (panel,) = panels.panels(rows_of([run_of(parts)]), "n_threads")
    spec = charts.panel_chart(panel)
    (labels,) = [
        layer["data"]["values"]
        for layer in spec["layer"]
        if layer["mark"]["type"] == "text" and layer["mark"]["color"] == PALETTE["ink"]
    ]
    heights = sorted(label["y"] for label in labels)
    assert all(b - a > 0.5 for a, b in itertools.pairwise(heights))


def test_the_ceiling_falls_with_depth_and_is_level_along_threads() -> None:
    rows = rows_of([run_of(sweep_parts(models=("m",), quants=("Q4_0",), threads=(1, 2)))])
    depth = panels.panels(rows, "n_depth")[0]
    (line,) = ceilings(depth)
    assert [x for x, _ in line] == [0, 512, 2048]
    assert [tps for _, tps in line] == sorted((tps for _, tps in line), reverse=True)
    assert line[-1][1] == pytest.approx(41.8e9 / (1.9e9 * 0.95 + 2048 * 131_072))
    threads = panels.panels(rows, "n_threads")[0]
    assert all(len({tps for _, tps in level}) == 1 for level in ceilings(threads))
    (layer,) = [
        layer for layer in charts.panel_chart(depth)["layer"] if "ceiling" in str(layer["encoding"])
    ]
    assert layer["mark"]["type"] == "line"
    assert layer["mark"]["color"] == PALETTE["ink"]


def test_a_ceiling_that_would_squash_the_measurements_is_left_to_the_table() -> None:
    parts = [measured(n, [1.0 + n, 1.1 + n], requested={"n_threads": n}) for n in (1, 2)]
    (panel,) = panels.panels(rows_of([run_of(parts)]), "n_threads")
    spec = charts.panel_chart(panel)
    assert not [
        layer
        for layer in spec["layer"]
        if layer.get("data", {}).get("values", [{}])[0].get("ceiling")
    ]


def test_rates_start_at_zero_and_axes_name_their_unit() -> None:
    for spec in _specs(page([run_of(sweep_parts())]), without=RESOURCES):
        speeds = [
            channel
            for layer in spec["layer"]
            for channel in layer["encoding"].values()
            if isinstance(channel, dict) and channel.get("title") == "tokens per second"
        ]
        assert speeds
        assert all(channel["scale"]["zero"] for channel in speeds)


def test_names_from_outside_stand_only_in_data() -> None:
    for spec in _specs(page([hostile_run()])):
        assert not [text for key, text in _strings(spec) if "script" in text or "\u202e" in text]
        assert HOSTILE not in json.dumps(spec, ensure_ascii=False)
