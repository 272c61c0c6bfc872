"""The quantisation ladder: bytes and speed from the records, the line bandwidth ÷ bytes, quality as the sweep gives it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.report.factory import BANDWIDTH, READ_SHARE, SIZES, Part, measured, run_of
from tests.unit.report.wide import PERPLEXITY, QUALITY_SOURCE, every_axis_run

from llamasweep.report.ladder import ladders, quality, quality_title, title
from llamasweep.report.ladder_charts import GB, ladder_chart, quality_chart
from llamasweep.report.rows import rows_of


def _quant(number: int, quant: str, share: float) -> Part:
    """Reaches that share of bandwidth ÷ bytes."""
    size = SIZES[quant]
    tps = BANDWIDTH / (size * READ_SHARE) * share
    return measured(
        number,
        [tps, tps * 1.001],
        model_label=f"m-{quant}",
        model_quant=quant,
        model_size_bytes=size,
    )


def test_rungs_stand_by_their_bytes_with_their_share_of_the_line() -> None:
    (view,) = ladders(rows_of([run_of([_quant(1, "Q8_0", 0.70), _quant(2, "Q4_0", 0.72)])]))
    assert [rung.label for rung in view.rungs] == ["Q4_0", "Q8_0"]
    assert view.rungs[0].bytes_per_token == SIZES["Q4_0"] * READ_SHARE
    assert view.rungs[0].share == pytest.approx(0.72, rel=1e-3)
    assert view.bandwidth_bytes_per_s == BANDWIDTH
    assert title(view).startswith("Speed follows the bytes: each quantisation reaches 70 to 72")


def test_a_quantisation_that_falls_behind_is_named() -> None:
    (view,) = ladders(rows_of([run_of([_quant(1, "Q8_0", 0.80), _quant(2, "Q4_K_M", 0.55)])]))
    assert title(view).replace("\u202f", " ") == (
        "Q8_0 gets 80 % of what the memory gives, Q4_K_M 55 %"
    )


def test_a_speed_above_the_line_is_an_error_of_the_line() -> None:
    (view,) = ladders(rows_of([run_of([_quant(1, "Q8_0", 1.8), _quant(2, "Q4_0", 0.9)])]))
    assert title(view) == "Q8_0 lies above bandwidth ÷ bytes, so one of these is wrong"


def test_without_a_bandwidth_only_what_is_measured_is_compared() -> None:
    parts = [_quant(1, "Q8_0", 0.8), _quant(2, "Q4_0", 0.8)]
    parts = [(replace(a, ceiling_bandwidth_bytes_per_s=None), s) for a, s in parts]
    (view,) = ladders(rows_of([run_of(parts)]))
    assert [rung.share for rung in view.rungs] == [None, None]
    assert title(view).replace("\u202f", " ") == (
        "Q4_0 moves 53 % of the bytes of Q8_0 and writes 1.89 times as fast"
    )
    assert [layer["mark"]["type"] for layer in ladder_chart(view)["layer"]].count("line") == 0


def test_one_quantisation_or_unknown_bytes_are_no_ladder() -> None:
    assert ladders(rows_of([run_of([_quant(1, "Q8_0", 0.8)])])) == ()
    unknown = measured(2, [9.0], model_label="m-Q4_0", model_quant="Q4_0", model_size_bytes=None)
    assert ladders(rows_of([run_of([_quant(1, "Q8_0", 0.8), unknown])])) == ()


def test_the_line_of_the_chart_is_bandwidth_over_bytes() -> None:
    (view,) = ladders(rows_of([run_of([_quant(1, "Q8_0", 0.7), _quant(2, "Q4_0", 0.7)])]))
    spec = ladder_chart(view)
    (line,) = [
        layer["data"]["values"] for layer in spec["layer"] if layer["mark"]["type"] == "line"
    ]
    assert all(point["y"] == pytest.approx(BANDWIDTH / (point["x"] * GB)) for point in line)
    assert line[0]["x"] < view.rungs[0].bytes_per_token / GB < line[-1]["x"]
    assert [v["x"] * GB for v in spec["data"]["values"]] == [r.bytes_per_token for r in view.rungs]


def test_quality_is_what_the_sweep_file_told_and_says_from_where() -> None:
    view = ladders(rows_of([every_axis_run()]))[0]
    told = quality(view)
    assert told is not None
    assert {rung.label: value for rung, value in told.points} == PERPLEXITY
    assert told.sources == (QUALITY_SOURCE,)
    assert "perplexity 6.11 against 5.83" in quality_title(told)
    values = quality_chart(told)["data"]["values"]
    assert [value["quality"] for value in values] == [value for _, value in told.points]


def test_quality_of_one_quantisation_is_nothing_to_compare() -> None:
    parts = [_quant(1, "Q8_0", 0.8), _quant(2, "Q4_0", 0.8)]
    one = replace(parts[0][0], quality_metric="perplexity", quality_value=5.8)
    (view,) = ladders(rows_of([run_of([(one, parts[0][1]), parts[1]])]))
    assert quality(view) is None
