"""The page of all histories: a small chart per cell with its changes, and the runs behind each point. Plain data in, HTML out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from llamasweep.report.history import MAX_POINTS, Series, series_lines, summary
from llamasweep.report.mark_rows import told_numbers
from llamasweep.report.marks import PALETTE, Spec, framed, speed
from llamasweep.report.names import shown
from llamasweep.report.render import render_template

MAX_SERIES = 120
HEIGHT = 130
_KIND_SHAPES = {"step": "triangle-down", "spike": "cross", "drift": "diamond"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownPoint:
    """A build in the table. anchor: id of its row, which its mark in the chart names. runs: (run id, link or "")."""

    anchor: str
    build: str
    median_tps: float | None
    n_rounds: int
    notes: tuple[str, ...]
    runs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A series as the page shows it. rows: newest build first."""

    name: str
    words: str
    lines: tuple[str, ...]
    spec: Spec
    rows: tuple[ShownPoint, ...]


def render_history(found: Sequence[Series], version: str, reports: Collection[str]) -> str:
    """reports: names of the pages in the same folder, so that runs are linked where they have one."""
    return render_template(
        "history.html.j2",
        ("page.js", "history.js"),
        title=summary(found),
        series=[_shown(n, one, reports) for n, one in enumerate(found[:MAX_SERIES])],
        n_left_out=max(0, len(found) - MAX_SERIES),
        version=shown(version, 40),
    )


def _shown(number: int, series: Series, reports: Collection[str]) -> Shown:
    first = number * MAX_POINTS
    return Shown(
        name=series.name,
        words=f"{series.name} {' '.join(shown(p.build, 40) for p in series.points)}".lower(),
        lines=series_lines(series),
        spec=history_chart(series, first),
        rows=tuple(
            ShownPoint(
                anchor=f"row-{first + index}",
                build=shown(point.build, 60),
                median_tps=point.median_tps,
                n_rounds=point.n_rounds,
                notes=tuple(shown(n.text, 500) for i, n in series.notes if i == index),
                runs=tuple((shown(run, 80), _link(run, reports)) for run in point.run_ids[-5:]),
            )
            for index, point in reversed(list(enumerate(series.points)))
        ),
    )


def _link(run_id: str, reports: Collection[str]) -> str:
    name = f"{run_id}.html"
    return "./" + quote(name, safe="") if name in reports else ""


def _values(series: Series, first: int) -> list[Spec]:
    """One object per point; the words of its marks name the row of the table that lists its runs."""
    changed = {change.index: change.kind for change in series.changes}
    splits = {one.start for one in series.stretches if one.differs}
    notes: dict[int, list[str]] = {}
    for index, note in series.notes:
        notes.setdefault(index, []).append(shown(note.text, 120))
    return [
        {
            "place": index,
            "build": shown(point.build, 24),
            "median": point.median_tps,
            "change": changed.get(index),
            "is_split": index in splits,
            "note": told_numbers([first + index], f"note: {'; '.join(notes[index])}")
            if index in notes
            else None,
            "words": told_numbers(
                [first + index], f"{shown(point.build, 40)}: {point.median_tps:.3g} t/s"
            )
            if point.median_tps is not None
            else "",
        }
        for index, point in enumerate(series.points)
    ]


def history_chart(series: Series, first: int = 0) -> Spec:
    """Rates along the builds from 0, a mark where something changed, a rule where other things did, a square at a note.

    first: number of the row of the series' first point in the page.
    """
    values = _values(series, first)
    changed = {change.kind for change in series.changes}
    last = len(values) - 1
    middle = {0, last // 2, last}
    labels = " : ".join(
        f"datum.value === {i} ? '{_quoted(str(values[i]['build']))}'" for i in sorted(middle)
    )
    x: Spec = {
        "field": "place",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [-0.5, last + 0.5], "nice": False},
        "axis": {"values": sorted(middle), "labelExpr": f"{labels} : ''", "grid": False},
    }
    layers: list[Spec] = [
        {
            "transform": [{"filter": "datum.is_split"}],
            "mark": {"type": "rule", "color": PALETTE["quiet"], "strokeDash": [3, 3]},
            "encoding": {"x": x},
        },
        {
            "transform": [{"filter": "isValid(datum.median)"}],
            "mark": {"type": "line", "color": PALETTE[_color(series)], "strokeWidth": 1.5},
            "encoding": {"x": x, "y": speed("median")},
        },
        {
            "transform": [{"filter": "isValid(datum.median)"}],
            "mark": {"type": "point", "filled": True, "size": 28, "color": PALETTE[_color(series)], "opacity": 1},
            "encoding": {"x": x, "y": speed("median"), "description": {"field": "words"}},
        },
        *(
            {
                "transform": [{"filter": f"datum.change === '{kind}'"}],
                "mark": {"type": "point", "shape": shape, "size": 110, "color": PALETTE["bad"], "strokeWidth": 2, "opacity": 1},
                "encoding": {"x": x, "y": speed("median"), "description": {"field": "words"}},
            }
            for kind, shape in _KIND_SHAPES.items()
            if kind in changed
        ),
        {
            "transform": [{"filter": "isValid(datum.note)"}],
            "mark": {"type": "point", "shape": "square", "filled": True, "size": 70, "color": PALETTE["quiet"], "opacity": 1},
            "encoding": {"x": x, "y": {"value": 4}, "description": {"field": "note"}},
        },
    ]  # fmt: skip
    return framed(values, layers, height=HEIGHT, config={})


def _color(series: Series) -> str:
    return "tg" if series.kind == "tg" else "pp"


def _quoted(text: str) -> str:
    """Text inside of a Vega expression."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
