"""Latency: whichever columns are there, along streams where they vary, absent where nothing was measured."""

from __future__ import annotations

import pytest
from tests.unit.report.factory import measured, run_of
from tests.unit.report.wide import streamed, streams_parts

from llamasweep.report.latency import MEASURES, Latency, latencies, seconds, timing_words, title
from llamasweep.report.latency_charts import latency_chart
from llamasweep.report.rows import Row, rows_of
from llamasweep.report.setting_sections import setting_sections

TTFT_S = {1: (0.2, 0.25), 2: (0.4, 0.5), 4: (0.9, 1.5)}


def _read(row: Row, measure: str, figure: str) -> float | None:
    """TTFT by streams as a streaming engine would have measured it."""
    streams = row.settings.get("concurrency", 1)
    assert isinstance(streams, int)
    told = TTFT_S.get(streams) if measure == "ttft" else None
    return None if told is None else told[0 if figure == "median" else 1]


def _along_streams() -> Latency:
    (view,) = latencies(rows_of([run_of(streams_parts())]), _read)
    return view


def test_a_column_of_the_requests_is_read_and_absent_stays_absent() -> None:
    (told,) = rows_of([run_of([streamed(measured(1, [10.0]), ttft_median_s=0.25)])])
    (untold,) = rows_of([run_of([measured(1, [10.0])])])
    assert seconds(told, "ttft", "median") == 0.25
    assert seconds(told, "ttft", "p95") is None
    assert seconds(untold, "ttft", "median") is None


@pytest.mark.parametrize(
    ("n_requests", "words"),
    [
        (None, "p95 250 ms, between the two slowest"),
        (5, "p95 of 5 requests 250 ms, between the two slowest"),
        (20, "95 % of 20 requests within 250 ms"),
    ],
)
def test_a_percentile_of_few_requests_is_not_said_to_hold_for_95_percent(
    n_requests: int | None, words: str
) -> None:
    times = {"ttft_median_s": 0.2, "ttft_p95_s": 0.25}
    part = streamed(measured(1, [10.0]), n_requests=n_requests, **times)
    (view,) = latencies(rows_of([run_of([part])]))
    text = timing_words(view.lines[0][0], view).replace("\u202f", " ")
    assert text.endswith(f"median 200 ms, {words}")
    caption = setting_sections(rows_of([run_of([part])]))[-1].charts[0].caption
    is_few = n_requests != 20
    assert ("between the two slowest" in caption) == is_few
    assert ("95 % of the requests" in caption) == (not is_few)


def test_nothing_is_shown_of_engines_that_measure_no_latency() -> None:
    assert latencies(rows_of([run_of([measured(1, [10.0])])])) == ()


def test_along_streams_each_row_is_a_point_in_their_order() -> None:
    view = _along_streams()
    assert view.axis == "concurrency"
    ((first, *_),) = view.lines
    assert [timing.x for timing in view.lines[0]] == [1, 2, 4]
    assert [(t.median_s, t.p95_s) for t in view.lines[0]] == list(TTFT_S.values())
    assert title(view).replace("\u202f", " ") == (
        "Time to the first token: 200 ms at concurrency 1, 900 ms at concurrency 4"
    )
    assert "p95 250\u202fms" in timing_words(first, view)


def test_without_an_axis_each_row_is_a_bar() -> None:
    rows = rows_of([run_of([measured(1, [10.0]), measured(2, [11.0], engine="ollama-api")])])
    (view,) = latencies(rows, _read)
    assert view.axis is None
    assert [timing.label for (timing,) in view.lines] == ["llama-bench", "ollama-api"]
    spec = latency_chart(view)
    assert [value["median"] for value in spec["data"]["values"]] == pytest.approx([200, 200])
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["bar", "tick", "text"]


def test_a_missing_percentile_is_null_in_the_chart() -> None:
    def median_only(row: Row, measure: str, figure: str) -> float | None:
        return _read(row, measure, figure) if figure == "median" else None

    (view,) = latencies(rows_of([run_of(streams_parts())]), median_only)
    assert {value["p95"] for value in latency_chart(view)["data"]["values"]} == {None}


def test_measures_come_in_the_order_of_a_request() -> None:
    def all_of_them(_row: Row, measure: str, _figure: str) -> float | None:
        return {"ttft": 0.1, "tpot": 0.02, "e2e": 1.5}[measure]

    made = latencies(rows_of([run_of(streams_parts())]), all_of_them)
    assert [view.measure for view in made] == list(MEASURES)
