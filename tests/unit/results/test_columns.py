"""Columns come from the records and the parameters; rows go there and back."""

from __future__ import annotations

import dataclasses
from datetime import datetime

import pytest
from tests.unit.store.records import attempt, samples_of

from llamasweep.results.columns import (
    ATTEMPT_COLUMNS,
    TABLES,
    from_row,
    record_from_row,
    record_row,
    to_row,
)
from llamasweep.results.records import Attempt, Sample, TelemetryFigures
from llamasweep.results.request_times import RequestTimes
from llamasweep.sweep.parameters import PARAMETERS

_BY_NAME = {c.name: c for c in ATTEMPT_COLUMNS}


def test_every_field_parameter_and_figure_has_its_column_once() -> None:
    names = [c.name for c in ATTEMPT_COLUMNS]
    own = {f.name for f in dataclasses.fields(Attempt)} - {
        *("requested", "applied", "telemetry", "requests")
    }
    nested = (TelemetryFigures, RequestTimes)
    figures = {f.name for record in nested for f in dataclasses.fields(record)}
    parameters = {p.name for p in PARAMETERS} | {f"{p.name}_applied" for p in PARAMETERS}

    assert len(names) == len(set(names))
    assert set(names) == own | figures | parameters


def test_columns_carry_type_unit_sentence_and_whether_they_may_be_absent() -> None:
    assert (_BY_NAME["median_tps"].type, _BY_NAME["median_tps"].unit) == ("float64", "tps")
    assert _BY_NAME["started_at"].type == "timestamp"
    assert _BY_NAME["status"].type == "string"
    assert not _BY_NAME["status"].nullable
    assert _BY_NAME["n_threads_applied"].nullable
    assert _BY_NAME["flash_attn"].type == "string"
    assert _BY_NAME["repack"].type == "bool"
    assert _BY_NAME["n_depth"].source == "field"
    assert not _BY_NAME["n_depth"].nullable
    assert all(c.doc for columns in TABLES.values() for c in columns)


def test_an_attempt_goes_to_a_row_and_back() -> None:
    original = attempt(differences=("n_batch: asked 2048, applied 512",), exit_code=0)

    row = to_row(original)

    assert list(row) == [c.name for c in ATTEMPT_COLUMNS]
    assert row["n_threads"] == 2
    assert row["flash_attn"] is None
    assert row["flash_attn_applied"] == "on"
    assert row["ram_peak_process_bytes"] == 123
    assert row["reasons"] == '{"gpu_energy_j": "no GPU"}'
    assert from_row(row) == original


def test_absent_stays_absent() -> None:
    row = to_row(attempt(telemetry=None, median_tps=None, requested={}, applied={}))

    assert row["median_tps"] is None
    assert row["n_threads"] is None
    assert row["gpu_power_mean_w"] is None
    assert from_row(row).telemetry is None


def test_the_requested_depth_is_the_depth_itself() -> None:
    row = to_row(attempt(n_depth=4096, requested={"n_depth": 4096, "n_threads": 1}))

    assert row["n_depth"] == 4096
    assert from_row(row).requested == {"n_threads": 1}


@pytest.mark.parametrize(
    ("value", "reason"),
    [(float("nan"), "not a finite number"), (float("inf"), "not a finite number")],
)
def test_a_number_that_is_none_becomes_null_with_a_reason(value: float, reason: str) -> None:
    back = from_row(to_row(attempt(engine_mean_tps=value)))

    assert back.engine_mean_tps is None
    assert back.reasons["engine_mean_tps"] == reason


def test_a_number_beyond_64_bits_becomes_null_with_a_reason() -> None:
    back = from_row(to_row(attempt(model_n_params=2**64)))

    assert back.model_n_params is None
    assert back.reasons["model_n_params"] == "beyond 64 bits"


def test_bytes_that_are_no_text_become_visible_escapes() -> None:
    back = from_row(to_row(attempt(model_file="a\udcff.gguf", reasons={"x": "\udc80"})))

    assert back.model_file == "a\\udcff.gguf"
    assert back.reasons == {"x": "\\udc80"}


def test_what_no_row_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not a parameter: colour"):
        to_row(attempt(requested={"colour": 1}))
    with pytest.raises(ValueError, match="started_at"):
        to_row(attempt(started_at=datetime(2026, 1, 1)))  # noqa: DTZ001  (the point)
    with pytest.raises(ValueError, match="tps"):
        record_row(dataclasses.replace(samples_of(attempt())[0], tps=float("nan")))
    with pytest.raises(ValueError, match="status is missing"):
        from_row({k: v for k, v in to_row(attempt()).items() if k != "status"})


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("median_tps", float("nan"), "the file holds no finite number"),
        ("median_tps", float("-inf"), "the file holds no finite number"),
        ("median_tps", -5.0, "the file holds -5, which is below 0"),
        ("median_tps", 1e300, "the file holds 1e+300, which nothing can reach"),
        ("achieved_bytes_per_s", 1e300, "the file holds 1e+300, which nothing can reach"),
        ("ceiling_fraction", -0.5, "the file holds -0.5, which is below 0"),
        ("gpu_power_mean_w", float("inf"), "the file holds no finite number"),
        ("median_tps", 0.0, "the file holds 0, which is no rate"),
        ("energy_per_token_j", 0.0, "the file holds 0: the energy counter did not move"),
        ("gpu_energy_j", -2.0, "the file holds -2, which is below 0"),
        ("ttft_median_s", -1.0, "the file holds -1, which is below 0"),
    ],
)
def test_a_number_in_a_file_that_nothing_can_have_measured_is_absent_with_a_reason(
    column: str, value: float, reason: str
) -> None:
    back = from_row(to_row(attempt()) | {column: value})

    assert to_row(back)[column] is None
    assert back.reasons[column] == reason


@pytest.mark.parametrize(
    ("column", "value"),
    [("cpu_temperature_peak_c", -20.0), ("ceiling_peak_flop_per_s", 2e15), ("sample_std_tps", 0.0)],
)
def test_an_unusual_number_that_can_be_is_kept(column: str, value: float) -> None:
    back = from_row(to_row(attempt()) | {column: value})

    assert to_row(back)[column] == value
    assert column not in back.reasons


@pytest.mark.parametrize("tps", [float("nan"), -1.0, 1e300])
def test_a_sample_with_an_impossible_rate_is_refused(tps: float) -> None:
    row = record_row(samples_of(attempt())[0]) | {"tps": tps}
    with pytest.raises(ValueError, match="column tps: the file holds"):
        record_from_row(Sample, row)


@pytest.mark.parametrize("text", ["[1]", "5", "[" * 100_000])
def test_reasons_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="column reasons"):
        from_row(to_row(attempt()) | {"reasons": text})
