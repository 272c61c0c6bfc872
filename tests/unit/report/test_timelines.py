"""Time lines: which quantities become lanes, which processes are drawn, and what stands in the chart."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import altair
import pytest
from tests.unit.report.factory import lost, run_of
from tests.unit.report.readings_made import (
    LENGTH_S,
    LOAD_S,
    PAUSE_S,
    PP_S,
    START_NS,
    at,
    group,
    process_readings,
    run_over_time,
)

from llamasweep.report import timelines
from llamasweep.report.decimation import rates
from llamasweep.report.lanes import lanes
from llamasweep.report.render import render_report
from llamasweep.report.spans import Span, drawable, throttled_share
from llamasweep.report.timeline_chart import timeline_chart
from llamasweep.report.timeline_section import timeline_sections
from llamasweep.report.timelines import process_lines
from llamasweep.results.records import Reading, RunData
from llamasweep.results.timeline import Series, make_timeline


def _timeline(*facts: tuple[float, str, str, float]) -> Any:
    """(seconds, device, metric, value) of one source."""
    return make_timeline(
        Reading(time_ns=round(s * 1e9), source="nvml", device=device, metric=metric, value=value)
        for s, device, metric, value in facts
    )


def test_only_what_moved_is_a_lane_and_the_rest_is_told() -> None:
    found = lanes(
        _timeline(
            *((t, "gpu0", "power_w", 100.0 + t) for t in range(9)),
            *((t, "gpu0", "memory_clock_mhz", 10_501.0) for t in range(9)),
        )
    )
    assert [lane.title for lane in found.lanes] == ["Power"]
    assert found.level == ("GPU memory clock 10\u202f501\u202fMHz",)


def test_a_lane_starts_at_nought_but_a_temperature_at_its_lowest() -> None:
    found = lanes(
        _timeline(
            *((t, "gpu0", "power_w", 100.0 + t) for t in range(9)),
            *((t, "gpu0", "temperature_c", 50.0 + t) for t in range(9)),
        )
    )
    power, heat = found.lanes
    assert (power.low, power.low_text, power.high_text) == (0.0, "0", "108\u202fW")
    assert (heat.low, heat.high, heat.low_text) == (50.0, 58.0, "50.0\u202f°C")


def test_a_counter_becomes_a_rate_and_a_fall_of_it_a_pause() -> None:
    counter = Series(times_ns=tuple(range(0, 6 * 10**9, 10**9)), values=(0, 2, 4, 1, 3, 5))
    found = rates(counter, 10**9)
    assert found.values == (2.0, 2.0, 2.0, 2.0)
    assert 2_500_000_000 not in found.times_ns


def test_an_energy_counter_stands_in_only_where_no_power_is_read() -> None:
    readings = [
        *((t, "gpu0", "power_w", 100.0 + t) for t in range(9)),
        *((t, "gpu0", "energy_j", 100.0 * t * t) for t in range(9)),
        *((t, "package-0", "energy_j", 10.0 * t * t) for t in range(9)),
    ]
    (power,) = lanes(_timeline(*readings)).lanes
    assert [line.name for line in power.lines] == ["gpu0", "package-0"]
    assert power.lines[1].high == pytest.approx(150.0)


def test_readings_that_are_no_numbers_are_left_out() -> None:
    (power,) = lanes(
        _timeline(*((t, "gpu0", "power_w", t if t % 2 else float("nan")) for t in range(9)))
    ).lanes
    assert power.lines[0].n_values == 4


def test_lines_beyond_the_bound_are_named() -> None:
    found = lanes(
        _timeline(*((t, f"gpu{g}", "power_w", 10.0 * t) for t in range(9) for g in range(6)))
    )
    assert [line.name for line in found.lanes[0].lines] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert found.more == ("Power: gpu4", "Power: gpu5")


def test_phases_come_from_the_records() -> None:
    (line,) = process_lines([run_over_time()]).drawn
    spans = {span.kind: span for span in line.spans if span.kind != "prepare"}
    first_s = LOAD_S + PAUSE_S
    assert (spans["load"].start_s, spans["load"].end_s) == (0.0, LOAD_S)
    assert spans["pp"].start_s == pytest.approx(first_s)
    assert spans["pp"].end_s == pytest.approx(first_s + PP_S)
    assert spans["tg"].start_s == pytest.approx(first_s + PP_S + PAUSE_S)
    assert spans["pp"].words == "pp512, 3 repetitions"


def test_without_times_of_repetitions_nothing_is_shaded() -> None:
    run = run_over_time()
    bare = replace(run, samples=tuple(replace(s, started_at=None) for s in run.samples))
    (line,) = process_lines([bare]).drawn
    assert {span.kind for span in line.spans} == {"load"}


def test_spans_too_near_to_tell_apart_are_joined_and_others_stay() -> None:
    spans = [
        Span(kind="tg", start_s=0.0, end_s=1.0, words="a"),
        Span(kind="tg", start_s=1.001, end_s=2.0, words="b"),
        Span(kind="tg", start_s=5.0, end_s=99.0, words="b"),
    ]
    found = drawable(spans, 10.0)
    assert [(s.start_s, s.end_s) for s in found] == [(0.0, 2.0), (5.0, 10.0)]
    assert found[0].words == "several: tg"


def test_throttling_is_marked_and_is_the_title() -> None:
    (section,) = timeline_sections([run_over_time(gpu=True)])
    chart = section.charts[0]
    (line,) = process_lines([run_over_time(gpu=True)]).drawn
    assert chart.title == "tiny-llama Q4_0: throttled in 24\u202f% of the readings"
    assert any(span.kind == "throttled" for span in line.spans)
    assert "#b3261e" in json.dumps(chart.spec)
    quiet = timeline_sections([run_over_time()])[0].charts[0]
    assert "#b3261e" not in json.dumps(quiet.spec)
    assert "No sensor tells of throttling." in quiet.caption


def test_a_share_of_throttling_is_absent_where_nothing_reads_it() -> None:
    assert throttled_share(_timeline((0, "gpu0", "power_w", 1.0))) is None
    assert throttled_share(_timeline((0, "gpu0", "is_throttled", 0.0))) == 0.0


def test_a_run_without_readings_has_no_section() -> None:
    run = run_over_time()
    assert timeline_sections([replace(run, readings=())]) == ()
    assert timeline_sections([run_of([])]) == ()


def test_failed_and_throttled_processes_come_first_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timelines, "MAX_DRAWN", 2)
    run = run_over_time(4)
    failed = lost(99, status="failed", log_path="logs/00003-g3.jsonl", error_message="x")[0]
    lines = process_lines([replace(run, attempts=(*run.attempts, failed))])
    assert [line.place for line in lines.drawn] == ["1 of 4", "4 of 4"]
    assert lines.n_left_out == 2
    (section,) = timeline_sections([replace(run, attempts=(*run.attempts, failed))])
    assert "Of 4 processes 2 are drawn" in section.intro
    assert "telemetry.parquet" in section.intro
    assert section.charts[1].title.endswith("1 cell of 3 failed")


@pytest.mark.parametrize(
    "changes", [{"start_ns": None}, {"end_ns": START_NS - 1}, {"start_ns": "x"}, {"end_ns": 10**30}]
)
def test_a_process_with_no_usable_times_is_passed_over(changes: dict[str, Any]) -> None:
    run = run_over_time()
    broken = replace(run.info, groups=[group(0, 0.0, LENGTH_S, **changes)])
    assert process_lines([replace(run, info=broken)]).n_processes == 0


@pytest.mark.parametrize("gpu", [False, True])
def test_the_chart_is_valid_and_every_point_lies_in_its_lane(gpu: bool) -> None:
    (line,) = process_lines([run_over_time(gpu=gpu)]).drawn
    spec = timeline_chart(line)
    altair.LayerChart.from_dict(
        {k: v for k, v in spec.items() if k not in ("background", "$schema")}
    )
    (drawn,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    ids = {value["id"].rsplit("-", 2)[0] for value in drawn["data"]["values"]}
    assert ids == {lane.key for lane in line.lanes.lanes}
    assert all(0 <= v["y"] <= spec["height"] for v in drawn["data"]["values"])
    assert all(0 <= v["x"] <= LENGTH_S for v in drawn["data"]["values"])


def _hour(run: RunData) -> RunData:
    """A process of an hour, read every second at fifteen places."""
    readings = tuple(process_readings(0.0, 3600.0, gpu=True, interval_s=1.0))
    return replace(run, readings=readings, info=replace(run.info, groups=[group(0, 0.0, 3600.0)]))


def test_a_long_process_takes_no_more_room_than_a_short_one() -> None:
    run = run_over_time(gpu=True)
    bare = len(render_report([replace(run, readings=())]))
    long = len(render_report([_hour(run)]))
    assert long - bare < 60_000


def test_many_devices_mean_fewer_processes_and_a_page_that_stays_small() -> None:
    run = run_over_time(8)
    many = [
        replace(reading, source="nvml", device=f"gpu{g}", metric=metric)
        for reading in run.readings
        if reading.metric == "cpu_time_s"
        for g in range(8)
        for metric in ("power_w", "temperature_c", "sm_clock_mhz", "vram_used_bytes")
    ]
    wide = [replace(reading, value=reading.value % 7 + reading.time_ns % 5) for reading in many]
    lines = process_lines([replace(run, readings=tuple(wide))])
    n_points = sum(
        len(piece.values)
        for line in lines.drawn
        for lane in line.lanes.lanes
        for one in lane.lines
        for piece in one.pieces
    )
    assert len(lines.drawn) > 1
    assert n_points <= timelines.MAX_POINTS
    assert len(lines.drawn) + lines.n_left_out == 8


def test_the_bound_of_points_leaves_processes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "MAX_POINTS", 10)
    lines = process_lines([run_over_time(3)])
    assert len(lines.drawn) == 1
    assert lines.n_left_out == 2


def test_a_process_in_which_nothing_moved_is_told() -> None:
    run = run_over_time(2)
    second_ns = run.info.groups[1]["start_ns"]
    level = [
        replace(reading, value=1.0) if reading.time_ns >= second_ns else reading
        for reading in run.readings
    ]
    still = replace(run, readings=tuple(level))
    lines = process_lines([still])
    assert (len(lines.drawn), lines.n_left_out, lines.n_still) == (1, 0, 1)
    (section,) = timeline_sections([still])
    assert section.intro.endswith("In 1 nothing that was read moved.")


def test_a_kind_of_test_that_is_not_known_is_passed_over() -> None:
    assert drawable([Span(kind="else", start_s=0.0, end_s=1.0, words="x")], 2.0) == ()


def test_a_failed_cell_stands_where_it_was_tried() -> None:
    run = run_over_time()
    times = {"started_at": at(17.0), "finished_at": at(18.5), "log_path": "logs/00000-g0.jsonl"}
    failed = lost(9, status="out_of_memory", error_message="x", n_depth=4096, **times)[0]
    (line,) = process_lines([replace(run, attempts=(*run.attempts, failed))]).drawn
    (span,) = [span for span in line.spans if span.kind == "failed"]
    assert span.start_s == pytest.approx(17.0)
    assert span.end_s == pytest.approx(18.5)
    assert span.words == "tg32 at depth 4096: out of memory"
    lost_time = replace(failed, finished_at=None)
    (line,) = process_lines([replace(run, attempts=(*run.attempts, lost_time))]).drawn
    assert [span for span in line.spans if span.kind == "failed"] == []


def test_a_title_never_lays_the_whole_machines_peak_at_the_engines_door() -> None:
    run = run_over_time()
    busy = [
        replace(reading, value=reading.value * 50) if reading.device == "system" else reading
        for reading in run.readings
    ]
    (section,) = timeline_sections([replace(run, readings=tuple(busy))])
    assert section.charts[0].title == (
        "tiny-llama Q4_0 takes up to 65.0\u202fW of power and 4.0\u202fcores"
    )
    only_machine = [reading for reading in busy if reading.device == "system"]
    (section,) = timeline_sections([replace(run, readings=tuple(only_machine))])
    assert section.charts[0].title.startswith(
        "tiny-llama Q4_0: CPU in use of the whole machine up to "
    )
