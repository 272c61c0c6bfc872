"""Time lines, summary, key figures and list of the report against expected files: plain data, specifications and words.

`make golden` writes the expected files anew; review them as a diff.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.factory import failed_parts, run_of, sweep_parts
from tests.unit.report.readings_made import LENGTH_S, process_readings, run_over_time

from llamasweep.report.chart_section import ChartSection
from llamasweep.report.pictures import pictures
from llamasweep.report.rows import rows_of
from llamasweep.report.summary_markdown import summary_markdown
from llamasweep.report.timeline_section import timeline_sections
from llamasweep.report.timelines import process_lines
from llamasweep.report.views import page
from llamasweep.results.records import RunData

FOLDER = Path(__file__).parent / "report"
SWEEP = run_of([*sweep_parts(threads=(1, 2), depths=(0, 512)), *failed_parts()])


def _seldom_read(*, gpu: bool) -> RunData:
    """A process read twice a second, so that the expected files can be read by people."""
    readings = tuple(process_readings(0.0, LENGTH_S, gpu=gpu, interval_s=0.5))
    return dataclasses.replace(run_over_time(gpu=gpu), readings=readings)


def _charts(sections: tuple[ChartSection, ...]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(chart) for section in sections for chart in section.charts]


def _json(plain: object) -> str:
    """With the innermost objects and lists on one line each."""
    text = json.dumps(plain, indent=1, ensure_ascii=False)
    inner = re.compile(r'[\[{](?:[^"\[\]{}]|"(?:[^"\\]|\\.)*")*[\]}]')
    return inner.sub(lambda found: re.sub(r"\n *", " ", found[0]), text) + "\n"


MADE = {
    "timelines-cpu.json": lambda: _json(
        dataclasses.asdict(process_lines([_seldom_read(gpu=False)]))
    ),
    "timelines-gpu.json": lambda: _json(
        dataclasses.asdict(process_lines([_seldom_read(gpu=True)]))
    ),
    "timeline-charts.json": lambda: _json(_charts(timeline_sections([_seldom_read(gpu=True)]))),
    "summary.md": lambda: summary_markdown(page([SWEEP]), rows_of([SWEEP])),
    "key-figures.json": lambda: _json(dataclasses.asdict(page([SWEEP]).key)),
    "picture-titles.json": lambda: _json(
        {picture.name: picture.spec["title"] for picture in pictures(page([SWEEP]))}
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_the_report_is_as_expected(name: str) -> None:
    expected = FOLDER / name
    text = MADE[name]()
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")
