"""Histories over all runs: builds in order, one point per build, changes between builds, splits where the kernel changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.report.factory import HOSTILE, run_of
from tests.unit.stats.rounds_made import row

from llamasweep.report.history import change_line, history, plain_history, series_lines, summary
from llamasweep.report.history_page import history_chart, render_history
from llamasweep.results.annotations import Annotation
from llamasweep.results.records import RunData
from llamasweep.results.request_times import RequestTimes

NUMBERS = [10000 + 100 * i for i in range(12)]


def _run(
    number: int, tps: float | None, machine: dict[str, Any] | None = None, **changes: Any
) -> RunData:
    run_id = f"20261129T{number % 1000000:06d}Z-nightly-ab12cd"
    base = run_of([])
    info = replace(
        base.info,
        run_id=run_id,
        started_at=f"2026-11-29T{number % 24:02d}:00:00+00:00",
        machine=machine or {"kernel": "6.1"},
    )
    attempts = tuple(
        row(r, None if tps is None else tps * (1 + 0.001 * r), run_id=run_id, build_label=f"b{number}",
            build_number=number, build_hash=f"h{number}", **changes)
        for r in range(3)
    )  # fmt: skip
    return replace(base, info=info, attempts=attempts)


def _stepped(at: int = 6, factor: float = 0.9) -> list[RunData]:
    wobble = [1.0, 1.004, 0.997, 1.002, 0.998, 1.001]
    return [
        _run(n, 100.0 * wobble[i % 6] * (factor if i >= at else 1.0)) for i, n in enumerate(NUMBERS)
    ]


def test_a_step_is_found_with_its_size_and_the_builds_on_either_side() -> None:
    (series,) = history(list(reversed(_stepped())))
    assert [point.number for point in series.points] == NUMBERS
    (change,) = series.changes
    told = change_line(series, change).replace("\u202f", " ")
    assert told.startswith("step at b10600: −10.")
    assert told.endswith(", after b10500")
    assert summary([series]).startswith("1 of 1 series changed; the largest fall is decode of tiny")


def test_a_build_measured_in_two_runs_is_one_point() -> None:
    runs = _stepped()
    again = replace(runs[3], info=replace(runs[3].info, run_id="again"))
    again = replace(again, attempts=tuple(replace(a, run_id="again") for a in again.attempts))
    (series,) = history([*runs, again])
    assert len(series.points) == len(NUMBERS)
    assert series.points[3].n_rounds == 6
    assert len(series.points[3].run_ids) == 2


def test_speeds_are_not_compared_across_another_kernel() -> None:
    runs = [
        replace(run, info=replace(run.info, machine={"kernel": "6.1" if i < 6 else "6.9"}))
        for i, run in enumerate(_stepped())
    ]
    (series,) = history(runs)
    assert series.changes == ()
    assert series_lines(series) == ("not compared across b10600: other kernel",)


def test_a_build_that_failed_is_a_gap_and_one_that_was_not_asked_is_none() -> None:
    runs = [*_stepped(), _run(20000, None), _run(20001, None, status="unsupported")]
    (series,) = history(runs)
    assert [p.median_tps is None for p in series.points] == [False] * 12 + [True]


def test_patterns_choose_models_and_builds_and_one_build_is_no_history() -> None:
    assert history(_stepped(), models=["other*"]) == ()
    (series,) = history(_stepped(), builds=["b100*", "b101*"])
    assert [p.number for p in series.points] == [10000, 10100]
    assert history(_stepped()[:1]) == ()


def test_json_has_every_point_and_change() -> None:
    (plain,) = plain_history(history(_stepped()))
    assert len(plain["points"]) == 12
    (change,) = plain["changes"]
    assert (change["kind"], change["build"], change["after"]) == ("step", "b10600", "b10500")
    assert change["low"] < change["ratio"] < change["high"] < 1


def test_the_page_draws_each_series_and_links_the_runs_that_have_a_report() -> None:
    found = history(_stepped())
    linked = found[0].points[-1].run_ids[0]
    html = render_history(found, "0.1", {f"{linked}.html"})
    assert html.count("<figure") == 1
    assert f'href="./{linked}.html"' in html
    assert html.count("<a href") == 1
    kinds = [layer["mark"].get("shape") for layer in history_chart(found[0])["layer"]]
    assert "triangle-down" in kinds


def test_notes_stand_at_their_build_or_at_the_first_build_of_a_later_day() -> None:
    runs = [
        replace(run, info=replace(run.info, started_at=f"2026-11-{10 + i:02d}T08:00:00+00:00"))
        for i, run in enumerate(_stepped())
    ]
    notes = [
        Annotation(at="2026-11-13", text="more memory"),
        Annotation(at="10200", text="by number"),
        Annotation(at="2027-01-01", text="not yet"),
        Annotation(at="b10600", text="new allocator"),
    ]
    (series,) = history(runs, notes=notes)
    assert [(index, note.text) for index, note in series.notes] == [
        (2, "by number"),
        (3, "more memory"),
        (6, "new allocator"),
    ]
    assert series_lines(series)[:2] == (
        "note at b10200: by number",
        "note at b10300 (2026-11-13): more memory",
    )
    assert [one["build"] for one in plain_history([series])[0]["notes"]] == [
        "b10200",
        "b10300",
        "b10600",
    ]


def test_a_note_at_a_day_does_not_stand_at_a_build_of_which_no_day_is_known() -> None:
    first, *others = _stepped()
    stray = replace(first, attempts=tuple(replace(r, run_id="gone") for r in first.attempts))
    (series,) = history([stray, *others], notes=[Annotation(at="2000-01-01", text="old")])
    assert series.points[0].measured_on is None
    assert [index for index, _ in series.notes] == [1]


def test_a_mark_of_the_page_names_the_row_with_its_runs_and_a_note_has_its_mark() -> None:
    found = history(_stepped(), notes=[Annotation(at="b10300", text="more memory")])
    html = render_history(found, "0.1", set())
    assert html.count('data-rows="row-3" aria-label="b10300: ') == 1
    assert 'data-rows="row-3" aria-label="note: more memory"' in html
    assert html.count('<tr id="row-3">') == 1
    assert "<small>note: <bdi>more memory</bdi></small>" in html


def test_hostile_notes_stay_text() -> None:
    notes = [Annotation(at="b10300", text=HOSTILE), Annotation(at=HOSTILE, text="x")]
    html = render_history(history(_stepped(), notes=notes), "0.1", set())
    assert "<script>alert" not in html
    assert "\u202e" not in html


def test_hostile_names_stay_text() -> None:
    runs = [
        replace(
            run,
            attempts=tuple(
                replace(a, model_label=HOSTILE, build_label=f"{HOSTILE}{i}") for a in run.attempts
            ),
        )
        for i, run in enumerate(_stepped())
    ]
    html = render_history(history(runs), "0.1", set())
    assert "<script>alert" not in html
    assert "\u202e" not in html


def _asked(run: RunData, mode: str | None, build_hash: str) -> RunData:
    requests = None if mode is None else RequestTimes(request_mode=mode)
    rows = tuple(replace(a, build_hash=build_hash, requests=requests) for a in run.attempts)
    return replace(run, attempts=rows)


def test_rates_that_a_server_gave_when_asked_in_two_ways_are_two_series() -> None:
    runs = [
        *(_asked(_run(n, 100.0), "verbose, raw", f"v{n}") for n in NUMBERS),
        *(_asked(_run(n + 1, 60.0), "api, raw", f"a{n}") for n in NUMBERS),
        _asked(_run(NUMBERS[-1], None), None, f"v{NUMBERS[-1]}"),
    ]
    found = {one.name.rpartition(" · ")[2]: one for one in history(runs)}
    assert {way: (len(one.points), one.changes) for way, one in found.items()} == {
        "verbose, raw": (12, ()),
        "api, raw": (12, ()),
    }


def test_nothing_is_said_to_be_no_slower_where_no_step_could_be_found() -> None:
    short, long = history(_stepped(factor=1.0)[:5]), history(_stepped(factor=1.0))
    few = "fewer than the 6 builds that a step needs"
    assert summary(short) == f"0 of 1 series changed; it has {few}."
    assert summary([*short, *short]) == f"0 of 2 series changed; each has {few}."
    assert summary(long) == "0 of 1 series changed; none became slower."
    assert summary([*short, *long]).endswith(f"; none became slower, but one has {few}.")


def test_builds_on_two_sides_of_another_kernel_are_not_enough_for_a_step_together() -> None:
    runs = [
        _run(n, 100.0, machine={"kernel": "6.1" if i < 6 else "6.9"})
        for i, n in enumerate(NUMBERS[:11])
    ]
    (whole,), (halved,) = history(runs), history(runs[1:])
    assert (whole.is_too_short_for_a_step, halved.is_too_short_for_a_step) == (False, True)
