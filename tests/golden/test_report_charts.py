"""Chart specifications and views of the report against expected files: what is drawn, with which words, not how it looks.

`make golden` writes the expected files anew.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.factory import failed_parts, run_of, sweep_parts
from tests.unit.report.wide import every_axis_run

from llamasweep.report.rows import Row
from llamasweep.report.views import Page, page
from llamasweep.results.records import RunData

FOLDER = Path(__file__).parent / "report"
RUNS: dict[str, RunData] = {
    "plain": run_of(
        [*sweep_parts(models=("tiny-llama",), threads=(1, 2), depths=(0, 512)), *failed_parts()]
    ),
    "every-axis": every_axis_run(),
}


@pytest.mark.parametrize("name", RUNS)
def test_chart_specifications_are_as_expected(name: str) -> None:
    view = page([RUNS[name]])
    charts = [
        {
            "section": section.anchor,
            **{part: getattr(chart, part) for part in ("title", "subtitle", "caption")},
            "spec": _bare(chart.spec),
        }
        for section in view.sections
        for chart in section.charts
    ]
    _compare(f"charts-{name}.json", charts)


@pytest.mark.parametrize("name", RUNS)
def test_views_are_as_expected(name: str) -> None:
    view = page([RUNS[name]])
    left_out = {"sections", "time_lines", "markdown", "row_data", "repeats"}
    left_out |= {"table", "use"} if name == "every-axis" else set()
    parts = [f.name for f in dataclasses.fields(Page) if f.name not in left_out]
    _compare(f"views-{name}.json", {part: _plain(getattr(view, part)) for part in parts})


def _bare(spec: dict[str, Any]) -> dict[str, Any]:
    """Without what every chart has alike: schema, fonts and colours of axes."""
    return {key: _plain(value) for key, value in spec.items() if key not in ("$schema", "config")}


def _plain(value: object) -> Any:
    """Data as JSON; numbers to six digits, rows by their place in the page."""
    if isinstance(value, Row):
        return value.anchor
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _compare(name: str, data: object) -> None:
    """Objects a line each where they are small, so that a diff shows the point that moved."""
    text = _lines(data) + "\n"
    expected = FOLDER / name
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


def _lines(data: object, indent: str = "") -> str:
    flat = json.dumps(data, ensure_ascii=False)
    if len(indent) + len(flat) <= 160 or not isinstance(data, dict | list) or not data:
        return flat
    inner = indent + " "
    if isinstance(data, dict):
        items = [f"{inner}{json.dumps(key)}: {_lines(value, inner)}" for key, value in data.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _lines(value, inner) for value in data) + f"\n{indent}]"
