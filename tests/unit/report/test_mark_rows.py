"""Marks of charts name the rows that they stand for, and nothing from outside can name others."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from tests.unit.report.factory import hostile_run, measured, run_of, sweep_parts

from llamasweep.report.mark_rows import told, with_rows
from llamasweep.report.render import chart_svg
from llamasweep.report.rows import rows_of
from llamasweep.report.views import page


def test_a_description_begins_with_the_rows_each_once() -> None:
    first, second = rows_of([run_of([measured(1, [1.0]), measured(2, [2.0])])])
    assert told([first, second, first], "a sentence") == "⟦1,2⟧a sentence"


def test_words_stay_for_screen_readers_and_silent_marks_are_hidden_from_them() -> None:
    spoken = (
        '<path aria-label="⟦3⟧m: 5 t/s" role="graphics-symbol" aria-roledescription="bar" d=""/>'
    )
    assert with_rows(spoken) == (
        '<path data-rows="row-3" aria-label="m: 5 t/s" role="graphics-symbol" aria-roledescription="bar" d=""/>'
    )
    silent = '<line aria-label="⟦3,12⟧" role="graphics-symbol" aria-roledescription="rule mark"/>'
    assert with_rows(silent) == '<line data-rows="row-3 row-12" aria-hidden="true"/>'


def test_a_group_without_a_name_is_no_symbol_for_screen_readers() -> None:
    unnamed = '<g class="mark-rect role-mark" role="graphics-symbol" aria-roledescription="rect mark container">'
    assert with_rows(unnamed) == '<g class="mark-rect role-mark">'
    axis = '<g class="mark-group role-axis" role="graphics-symbol" aria-roledescription="axis" aria-label="X">'
    assert with_rows(axis) == axis


def test_a_name_that_looks_like_rows_names_none() -> None:
    (row,) = rows_of([run_of([measured(1, [1.0])])])
    label = f'<path aria-label="{told([row], "⟦9⟧ evil")}" role="graphics-symbol"/>'
    assert re.findall(r'data-rows="([^"]*)"', with_rows(label)) == ["row-1"]


def test_every_drawn_mark_of_every_chart_names_rows_of_the_page() -> None:
    for run in (run_of(sweep_parts(gpu=True)), hostile_run()):
        view = page([run])
        anchors = {line.anchor for line in view.table.lines}
        charts = [chart for section in view.sections for chart in section.charts]
        assert charts
        for chart in charts:
            svg = ET.fromstring(chart_svg(chart.spec, "c"))  # noqa: S314  (drawn by ourselves)
            groups = [g for g in svg.iter() if "role-mark" in g.get("class", "")]
            marks = [mark for group in groups for mark in group if mark.get("class") is None]
            named = [m.get("data-rows", "").split() for m in marks if m.get("data-rows")]
            assert named
            assert {anchor for names in named for anchor in names} <= anchors
            unnamed = [mark for mark in marks if not mark.get("data-rows")]
            assert len(unnamed) <= _n_roofs(chart.spec)


def _n_roofs(spec: dict[str, object]) -> int:
    """Lines that belong to the machine and not to rows."""
    layers = spec["layer"]
    assert isinstance(layers, list)
    return sum(layer["mark"].get("aria") is False for layer in layers)
