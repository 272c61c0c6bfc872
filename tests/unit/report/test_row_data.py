"""The rows as data in the page: same figures as the records, absent as null, nothing that could end its element."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.unit.report.factory import (
    HOSTILE,
    failed_parts,
    hostile_run,
    lost,
    measured,
    run_of,
    sweep_parts,
)

from llamasweep.report.render import render_report
from llamasweep.report.row_data import MAX_CHOICES, RowData, row_data
from llamasweep.report.rows import rows_of
from llamasweep.results.records import RunData


def _data(run: RunData) -> RowData:
    return row_data(rows_of([run]))


def _whole(data: RowData) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(data.to_json())
    columns = {name: _unpacked(column) for name, column in plain["columns"].items()}
    return plain | {"columns": columns}


def _unpacked(column: Any) -> Any:
    if isinstance(column, dict) and "each" in column:
        return [column["each"][place] for place in column["of_row"]]
    return column["same"] if isinstance(column, dict) else column


def test_figures_are_those_of_the_records() -> None:
    run = run_of(sweep_parts())
    columns = _whole(_data(run))["columns"]
    assert columns["median_tps"] == [a.median_tps for a in run.attempts]
    assert columns["sample_std_tps"] == [a.sample_std_tps for a in run.attempts]
    assert columns["ceiling_fraction"] == [a.ceiling_fraction for a in run.attempts]
    assert columns["n_threads"] == [a.requested["n_threads"] for a in run.attempts]
    assert columns["n_depth"] == [a.n_depth for a in run.attempts]


def test_absent_is_null_and_a_column_without_any_value_is_left_out() -> None:
    data = _data(run_of([measured(1, [10.0]), lost(2, status="failed", error_message="no")]))
    assert data.columns["median_tps"] == [10, None]
    assert "sample_std_tps" not in data.columns
    assert "vram_peak_device_bytes" not in data.columns
    assert data.columns["error_message"] == [None, "no"]


def test_words_that_return_are_written_once_and_read_back() -> None:
    run = run_of(sweep_parts())
    plain = json.loads(_data(run).to_json())["columns"]["model_label"]
    assert plain["each"] == list(dict.fromkeys(a.model_label for a in run.attempts))
    assert _whole(_data(run))["columns"]["model_label"] == [a.model_label for a in run.attempts]


def test_a_column_of_equal_values_is_written_once() -> None:
    plain = json.loads(_data(run_of(sweep_parts())).to_json())
    assert plain["columns"]["status"] == {"same": "ok"}
    switches = [measured(n, [1.0], requested={"no_kv_offload": v}) for n, v in ((1, True), (2, 1))]
    assert json.loads(_data(run_of(switches)).to_json())["columns"]["no_kv_offload"] == [True, 1]


def test_figures_that_are_no_number_are_absent() -> None:
    row, samples = measured(1, [10.0])
    data = _data(run_of([(replace(row, median_tps=float("inf")), samples)]))
    assert "median_tps" not in data.columns


def test_filters_are_what_varies_in_words() -> None:
    data = _data(run_of([*sweep_parts(models=("m",)), *failed_parts()]))
    filters = {one.key: one for one in data.filters}
    assert list(filters) == ["model", "quant", "depth", "threads", "test"]
    assert filters["threads"].values == ("1", "2", "4")
    assert filters["quant"].values == ("Q4_0", "Q8_0", "unknown")
    rows = rows_of([run_of([*sweep_parts(models=("m",)), *failed_parts()])])
    for row, place in zip(rows, filters["test"].of_row, strict=True):
        assert filters["test"].values[place] == row.test


def test_a_dimension_with_one_value_or_too_many_is_no_filter() -> None:
    many = [
        measured(n, [1.0], model_label=f"m{n}", model_quant=None) for n in range(MAX_CHOICES + 1)
    ]
    assert _data(run_of(many)).filters == ()


def test_hostile_names_stay_whole_and_cannot_end_the_element() -> None:
    data = _data(hostile_run())
    text = data.to_json()
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert _whole(data)["columns"]["model_label"] == HOSTILE


def test_strips_name_their_rows() -> None:
    html = render_report([run_of(sweep_parts(models=("m",), quants=("Q4_0",), depths=(0,)))])
    assert 'data-rows="row-6 row-5"' in html


def test_a_run_without_rows_has_no_data() -> None:
    data = _data(run_of([]))
    assert (data.n_rows, data.columns, data.filters) == (0, {}, ())


def test_engines_can_be_chosen_where_there_are_several() -> None:
    mixed = [measured(1, [1.0]), measured(2, [1.0], engine="ollama-cli")]
    filters = {f.key: f.values for f in _data(run_of(mixed)).filters}
    assert filters["engine"] == ("llama-bench", "ollama-cli")
    assert "engine" not in {f.key for f in _data(run_of(sweep_parts())).filters}
