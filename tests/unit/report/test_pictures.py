"""Charts as pictures: every chart once, its words inside, a name that any system takes."""

from __future__ import annotations

import re

import altair
import pytest
from tests.unit.report.factory import hostile_run, run_of, sweep_parts
from tests.unit.report.readings_made import run_over_time

from llamasweep.report.pictures import Picture, picture_png, picture_svg, pictures
from llamasweep.report.views import page
from llamasweep.results.records import RunData


def _pictures(run: RunData) -> tuple[Picture, ...]:
    return pictures(page([run]))


def test_every_chart_of_the_page_is_a_picture_with_its_own_name() -> None:
    view = page([run_over_time(2, gpu=True)])
    drawn = pictures(view)
    charts = [chart for s in (*view.sections, *view.time_lines) for chart in s.charts]
    assert len(drawn) == len(charts) > 2
    assert len({picture.name for picture in drawn}) == len(drawn)
    assert drawn[-1].name == "timelines-2-engine-process-2-of-2"


@pytest.mark.parametrize("run", [hostile_run(), run_of(sweep_parts())], ids=["hostile", "plain"])
def test_names_are_plain_and_short(run: RunData) -> None:
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,90}", p.name) for p in _pictures(run))


def test_title_reading_help_and_source_stand_inside() -> None:
    view = page([run_of(sweep_parts())])
    chart = view.sections[0].charts[0]
    words = _pictures(run_of(sweep_parts()))[0].spec["title"]
    assert " ".join(words["text"]) == chart.title.replace("\u202f", "\u00a0")
    told = " ".join(words["subtitle"])
    assert chart.subtitle in told
    assert "AMD EPYC 7763 · sweep quick · build 11434" in told
    assert told.endswith("llamasweep 0.1.0")
    svg = picture_svg(_pictures(run_of(sweep_parts()))[0])
    assert words["text"][0].split()[0] in svg


def test_specifications_stay_valid() -> None:
    for picture in _pictures(run_over_time(gpu=True)):
        altair.LayerChart.from_dict({k: v for k, v in picture.spec.items() if k != "$schema"})


def test_a_hostile_name_is_text_in_the_picture() -> None:
    for picture in _pictures(hostile_run()):
        svg = picture_svg(picture)
        assert "<script" not in svg
        assert "⟦" not in svg


def test_a_png_is_one_and_twice_as_wide_as_its_chart() -> None:
    png = picture_png(_pictures(run_of(sweep_parts()))[0])
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(png[16:20]) == 2 * (420 + 120)
