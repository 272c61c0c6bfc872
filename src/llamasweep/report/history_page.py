"""The page of all histories: a small chart per cell with its changes, and the runs behind each point. Plain data in, HTML out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from llamasweep.report.history import Series, series_lines, summary
from llamasweep.report.marks import PALETTE, Spec, framed, speed
from llamasweep.report.names import shown
from llamasweep.report.render import render_template

MAX_SERIES = 120
HEIGHT = 130
_KIND_SHAPES = {"step": "triangle-down", "spike": "cross", "drift": "diamond"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A series as the page shows it. rows: (build, rate or None, rounds, [(run id, link or "")]) newest build first."""

    name: str
    words: str
    lines: tuple[str, ...]
    spec: Spec
    rows: tuple[tuple[str, float | None, int, tuple[tuple[str, str], ...]], ...]


def render_history(found: Sequence[Series], version: str, reports: Collection[str]) -> str:
    """reports: names of the pages in the same folder, so that runs are linked where they have one."""
    return render_template(
        "history.html.j2",
        ("page.js", "history.js"),
        title=summary(found),
        series=[_shown(one, reports) for one in found[:MAX_SERIES]],
        n_left_out=max(0, len(found) - MAX_SERIES),
        version=shown(version, 40),
    )


def _shown(series: Series, reports: Collection[str]) -> Shown:
    return Shown(
        name=series.name,
        words=f"{series.name} {' '.join(shown(p.build, 40) for p in series.points)}".lower(),
        lines=series_lines(series),
        spec=history_chart(series),
        rows=tuple(
            (
                shown(point.build, 60),
                point.median_tps,
                point.n_rounds,
                tuple((shown(run, 80), _link(run, reports)) for run in point.run_ids[-5:]),
            )
            for point in reversed(series.points)
        ),
    )


def _link(run_id: str, reports: Collection[str]) -> str:
    name = f"{run_id}.html"
    return "./" + quote(name, safe="") if name in reports else ""


def history_chart(series: Series) -> Spec:
    """Rates along the builds from 0, a mark where something changed, a rule where other things did."""
    changed = {change.index: change.kind for change in series.changes}
    splits = {one.start for one in series.stretches if one.differs}
    values = [
        {
            "place": index,
            "build": shown(point.build, 24),
            "median": point.median_tps,
            "change": changed.get(index),
            "is_split": index in splits,
            "words": f"{shown(point.build, 40)}: {point.median_tps:.3g} t/s"
            if point.median_tps is not None
            else "",
        }
        for index, point in enumerate(series.points)
    ]
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
                "encoding": {"x": x, "y": speed("median")},
            }
            for kind, shape in _KIND_SHAPES.items()
            if kind in changed.values()
        ),
    ]  # fmt: skip
    return framed(values, layers, height=HEIGHT, config={})


def _color(series: Series) -> str:
    return "tg" if series.kind == "tg" else "pp"


def _quoted(text: str) -> str:
    """Text inside of a Vega expression."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
