"""Several streams against one in the report: each point in words, the estimate as a dashed line, columns of the download."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import Part, measured, run_of
from tests.unit.report.wide import served_parts

from llamasweep.report import marks, panels, speed_sections, stream_words
from llamasweep.report.row_data import row_data
from llamasweep.report.rows import Row, rows_of


def rows(parts: list[Part]) -> tuple[Row, ...]:
    return rows_of([run_of(parts)])


def plain(text: str) -> str:
    return (
        text.replace("\N{MULTIPLICATION SIGN}", "x").replace("\u202f", " ").replace("\u00a0", " ")
    )


def batched(streams: tuple[int, ...] = (1, 2, 4), *, estimates: bool = True) -> list[Part]:
    """An engine without requests: 20, 30 and 40 t/s in all."""
    parts = []
    for place, n in enumerate(streams):
        attempt, samples = measured(
            place,
            [20.0 + 10 * place] * 3,
            engine="llama-batched-bench",
            requested={"concurrency": n},
        )
        estimate = (26.0 + 12 * place) if n > 1 and estimates else None
        parts.append((replace(attempt, estimate_tps=estimate, stream_tps=None), samples))
    return parts


def panel_of(parts: list[Part]) -> panels.Panel:
    return panels.panels(rows(parts), "concurrency")[0]


def test_each_number_of_streams_is_told_against_one() -> None:
    words = plain(stream_words.points_words(panel_of(served_parts())))
    assert words.startswith(" Against 1: 2 at once ")
    assert words.endswith("8 at once 2.44 x the throughput at 3.27 x the latency.")


def test_streams_without_requests_wait_as_long_as_their_share_says() -> None:
    words = plain(stream_words.points_words(panel_of(batched())))
    assert words == (
        " Against 1: 2 at once 1.50 x the throughput at 1.33 x the latency; "
        "4 at once 2.00 x the throughput at 2.00 x the latency."
    )


@pytest.mark.parametrize("streams", [(1, 2), (2, 4, 8)])
def test_what_the_title_says_already_and_what_has_no_row_of_one_is_not_told(
    streams: tuple[int, ...],
) -> None:
    assert stream_words.points_words(panel_of(batched(streams))) == ""


def test_the_estimate_is_a_dashed_line_with_its_words() -> None:
    panel = panel_of(batched())
    ((_, line),) = marks.estimates(panel)
    assert line == ((2.0, 38.0), (4.0, 50.0))
    (layer,) = marks.estimate_layers(panel)
    assert layer["mark"]["strokeDash"]
    assert [v["estimate"] for v in layer["data"]["values"]] == [38.0, 50.0]
    (section,) = speed_sections.axis_sections(rows(batched()))
    assert "Dashed ink line: what is expected." in section.charts[0].caption
    assert "4 at once: 50.0 t/s expected" in plain(section.charts[0].caption)
    assert marks.estimate_layers(panel_of(batched(estimates=False))) == []


def test_the_download_has_the_columns_of_several_streams() -> None:
    document: dict[str, Any] = json.loads(row_data(rows(batched())).to_json())
    columns = document["columns"]
    assert columns["throughput_ratio"] == [None, 1.5, 2]
    assert columns["latency_ratio"] == [None, pytest.approx(4 / 3), 2]
    assert columns["estimate_tps"] == [None, 38, 50]
    assert "ttft_ratio" not in columns
