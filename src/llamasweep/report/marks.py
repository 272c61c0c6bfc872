"""The parts charts are made of: colours, frame, axes, and layers that several charts share. Vega-Lite as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from llamasweep.report.mark_rows import told
from llamasweep.report.names import shown
from llamasweep.report.panels import Panel, Series
from llamasweep.report.rows import Row

Spec = dict[str, Any]

PALETTE: dict[str, str] = {
    "tg": "#0072b2",
    "pp": "#009e73",
    "ink": "#1d2126",
    "quiet": "#5b636e",
    "grid": "#e3e5e8",
    "bad": "#b3261e",
}
"""Okabe–Ito blue and bluish green; ink for ceilings and text; red for alarm alone."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 420
"""Whole chart with its labels, in px: readable when a phone shrinks it to 328."""
ROW_HEIGHT = 30
MAX_LABEL_WIDTH = 140
MAX_SIDE_NAME = 18
"""Characters of a name that fits left of its bar."""
GROUPED = (
    "replace(format(datum.value, datum.value >= 10000 ? ',~r' : '~r'), regexp(',', 'g'), '\u202f')"
)
"""Axis numbers as `figures` writes them: grouped by a thin space from five digits on."""
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3]]


def framed(values: list[Spec], layers: list[Spec], *, height: int, config: Spec) -> Spec:
    return {
        "$schema": SCHEMA,
        "background": None,
        "width": WIDTH,
        "height": height,
        "padding": {"left": 2, "top": 6, "right": 10, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": values},
        "layer": layers,
        "config": _config(config),
    }


def _config(extra: Spec) -> Spec:
    axis = {
        "labelColor": PALETTE["quiet"],
        "titleColor": PALETTE["quiet"],
        "domainColor": PALETTE["grid"],
        "tickColor": PALETTE["grid"],
        "gridColor": PALETTE["grid"],
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "tickCount": 5,
    }
    return {
        "font": "system-ui",
        "view": {"stroke": None},
        "axis": axis,
        "axisX": extra.get("axisX", {}),
        "axisY": extra.get("axisY", {}),
    }


def speed(field: str) -> Spec:
    return quantity(field, "tokens per second")


def quantity(field: str, title: str) -> Spec:
    """A linear axis from 0."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": True, "nice": True},
        "axis": {"labelFlush": False, "labelExpr": GROUPED},
    }


def log_quantity(field: str, title: str, domain: Sequence[float]) -> Spec:
    """A logarithmic axis with a line at each power of ten, or at 1, 2 and 5 where there are fewer than three of them."""
    low, high = math.log10(min(domain)), math.log10(max(domain))
    decades = range(math.floor(low), math.ceil(high) + 1)
    inside = [10.0**n for n in decades if low <= n <= high]
    if len(inside) < 3:
        steps = [m * 10.0**n for n in decades for m in (1, 2, 5)]
        inside = [step for step in steps if min(domain) <= step <= max(domain)]
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": list(domain), "nice": False, "zero": False},
        "axis": {"format": "~s", "values": inside, "grid": True},
    }


def name_position(names: Sequence[str]) -> Spec:
    """The y axis of bars in this order. Names that are too long to stand left of them stand above: `name_layers`."""
    position: Spec = {"field": "name", "type": "nominal", "sort": list(names), "title": None}
    if _are_long(names):
        return position | {"axis": None}
    axis = {"labelLimit": 150, "ticks": False, "domain": False, "labelPadding": 6}
    return position | {"axis": axis}


def bars_height(names: Sequence[str]) -> int:
    """Of a chart of one bar for each name, in px."""
    return (ROW_HEIGHT + 16 if _are_long(names) else ROW_HEIGHT) * len(names)


def name_layers(names: Sequence[str]) -> list[Spec]:
    """Long names as text above their bars; nothing for short ones."""
    if not _are_long(names):
        return []
    mark = {"type": "text", "align": "left", "baseline": "bottom", "dy": -12, "fontSize": 13}
    return [
        {
            "mark": {**mark, "color": PALETTE["quiet"], "limit": WIDTH - 20},
            "encoding": {
                "x": {"value": 0},
                "text": {"field": "name"},
                "description": {"field": "of_row"},
            },
        }
    ]


def _are_long(names: Sequence[str]) -> bool:
    return max((len(name) for name in names), default=0) > MAX_SIDE_NAME


def end_names(names: Sequence[Spec], y: Spec, color: str = "ink") -> Spec:
    """Names right of the plot: values of `y`, `label` and `of_rows`."""
    return {
        "data": {"values": list(names)},
        "mark": {
            "type": "text",
            "align": "left",
            "dx": 9,
            "limit": MAX_LABEL_WIDTH,
            "color": PALETTE[color],
            "fontSize": 13,
        },
        "encoding": {
            "x": {"value": "width"},
            "y": y,
            "text": {"field": "label"},
            "description": {"field": "of_rows"},
        },
    }


def name_layer(height: str, *, dy: int) -> Spec:
    """Names of points beside them; `height` is their field on the y axis."""
    return {
        "mark": {
            "type": "text",
            "dy": dy,
            "limit": MAX_LABEL_WIDTH,
            "color": PALETTE["ink"],
            "fontSize": 13,
        },
        "encoding": {
            "y": speed(height),
            "text": {"field": "label"},
            "description": {"field": "of_row"},
        },
    }


def range_layer(along: str) -> Spec:
    return {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "color": PALETTE["ink"], "strokeWidth": 1.25},
        "encoding": {
            along: speed("low"),
            along + "2": {"field": "high"},
            "description": {"field": "of_row"},
        },
    }


def by_series(n_series: int, values: Sequence[Any]) -> Spec:
    domain = [str(index) for index in range(n_series)]
    return {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": domain, "range": list(values[:n_series])},
    }


def line_layer(panel: Panel) -> Spec:
    n = len(panel.series)
    return {
        "mark": {
            "type": "line",
            "color": PALETTE[panel.kind],
            "strokeWidth": 2,
            "opacity": 1 if panel.is_numeric else 0.35,
        },
        "encoding": {
            "y": speed("median"),
            "strokeDash": by_series(n, DASHES),
            "detail": {"field": "series"},
            "description": {"field": "of_series"},
        },
    }


def point_layer(panel: Panel) -> Spec:
    n = len(panel.series)
    return {
        "mark": {
            "type": "point",
            "filled": True,
            "size": 62,
            "color": PALETTE[panel.kind],
            "opacity": 1,
        },
        "encoding": {
            "y": speed("median"),
            "shape": by_series(n, SHAPES),
            "description": {"field": "words"},
        },
    }


CeilingLine = tuple[tuple[float | str, float], ...]
"""(position on the axis, exact ceiling in t/s) of each point that has one."""


ROOM_ABOVE = 2.2
"""A line so many times as high as the fastest point squashes what was measured."""


def ceilings(panel: Panel) -> dict[CeilingLine, str]:
    """The exact ceilings of a panel that can be drawn without squashing its measurements, with their labels.

    A ceiling of a single point is no line.
    """
    top = max(point.median for series in panel.series for point in series.points)
    found: dict[CeilingLine, list[str]] = {}
    for series in panel.series:
        line = _known_ceilings(series)
        if len(line) > 1 and max(value for _, value in line) <= top * ROOM_ABOVE:
            found.setdefault(line, []).append(series.label)
    is_one = len(found) == 1
    return {line: "ceiling" if is_one else f"ceiling {labels[0]}" for line, labels in found.items()}


def ceiling_layers(panel: Panel) -> list[Spec]:
    """Ink lines through the exact ceilings: level along threads, falling with depth."""
    values = [
        {"x": x, "ceiling": value, "line": index, "of_rows": told(_rows_under(line, panel))}
        for index, line in enumerate(ceilings(panel))
        for x, value in line
    ]
    if not values:
        return []
    return [
        {
            "data": {"values": values},
            "mark": {"type": "line", "color": PALETTE["ink"], "strokeWidth": 1.25},
            "encoding": {
                "y": speed("ceiling"),
                "detail": {"field": "line"},
                "description": {"field": "of_rows"},
            },
        }
    ]


def estimates(panel: Panel) -> list[tuple[Series, CeilingLine]]:
    """What several streams were estimated to reach, of each series where that can be drawn as a ceiling can."""
    top = max(point.median for series in panel.series for point in series.points)
    found = []
    for series in panel.series:
        known = [(point.x, point.row.attempt.estimate_tps) for point in series.points]
        line = tuple((x, value) for x, value in known if value is not None)
        if len(line) > 1 and max(value for _, value in line) <= top * ROOM_ABOVE:
            found.append((series, line))
    return found


def estimate_layers(panel: Panel) -> list[Spec]:
    """Dashed ink lines through the estimates."""
    values = [
        {"x": x, "estimate": value, "line": index, "of_rows": told(p.row for p in series.points)}
        for index, (series, line) in enumerate(estimates(panel))
        for x, value in line
    ]
    if not values:
        return []
    mark = {"type": "line", "color": PALETTE["ink"], "strokeWidth": 1.25, "strokeDash": [4, 3]}
    encoding = {
        "y": speed("estimate"),
        "detail": {"field": "line"},
        "description": {"field": "of_rows"},
    }
    return [{"data": {"values": values}, "mark": mark, "encoding": encoding}]


def _known_ceilings(series: Series) -> CeilingLine:
    known = [(point.x, point.row.ceiling.value) for point in series.points]
    return tuple((x, value) for x, value in known if value is not None)


def _rows_under(line: CeilingLine, panel: Panel) -> list[Row]:
    return [p.row for s in panel.series if _known_ceilings(s) == line for p in s.points]


def end_labels(values: Sequence[Spec], panel: Panel) -> list[Spec]:
    """Names beside the right ends of lines and ceilings, moved apart where they would touch."""
    drawn = ceilings(panel)
    ends = [(float(v["median"]), v["label"], "ink", v["of_series"]) for v in values if v["is_last"]]
    ends += [
        (line[-1][1], shown(label, 40), "quiet", told(_rows_under(line, panel)))
        for line, label in drawn.items()
    ]
    tops = [value for line in drawn for _, value in line]
    top = max([*(float(v["high"] or v["median"]) for v in values), *tops])
    ends.sort()
    placed = spread_apart([(y, label) for y, label, *_ in ends], gap=top * 0.08)
    return [
        {"y": y, "label": label, "color": color, "of_rows": rows}
        for (y, label), (_, _, color, rows) in zip(placed, ends, strict=True)
    ]


def spread_apart(
    ends: Sequence[tuple[float, str]], *, gap: float, floor: float = 0.0
) -> list[tuple[float, str]]:
    """Names in the order of their heights, each at least `gap` above the one before, moved as little as that needs.

    None lies below `floor`, the bottom of the axis.

    Least squares: heights less index x gap must not fall, so neighbours that would are pooled to their mean.
    """
    ordered = sorted(ends)
    pools: list[tuple[float, int]] = []
    for index, (y, _) in enumerate(ordered):
        mean, n = y - index * gap, 1
        while pools and pools[-1][0] > mean:
            before, n_before = pools.pop()
            mean = (mean * n + before * n_before) / (n + n_before)
            n += n_before
        pools.append((mean, n))
    level = [max(mean, floor) for mean, n in pools for _ in range(n)]
    return [(mean + i * gap, ordered[i][1]) for i, mean in enumerate(level)]


def label_layers(labels: Sequence[Spec]) -> list[Spec]:
    """The names as text, ceilings in a quieter ink."""
    return [
        end_names([label for label in labels if label["color"] == color], speed("y"), color)
        for color in ("ink", "quiet")
        if any(label["color"] == color for label in labels)
    ]
