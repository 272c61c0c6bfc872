"""The parts charts are made of: colours, frame, axes, and layers that several charts share. Vega-Lite as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llamasweep.report.names import shown
from llamasweep.report.panels import Panel

Spec = dict[str, Any]

PALETTE: dict[str, str] = {
    "tg": "#0072b2",
    "pp": "#009e73",
    "ink": "#1d2126",
    "quiet": "#5b636e",
    "grid": "#e3e5e8",
}
"""Okabe–Ito blue and bluish green; ink for ceilings and text."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 420
"""Whole chart with its labels, in px: readable when a phone shrinks it to 328."""
ROW_HEIGHT = 30
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3]]


def framed(
    values: list[Spec], layers: list[Spec], *, height: int, config: Spec, right: int = 56
) -> Spec:
    return {
        "$schema": SCHEMA,
        "background": None,
        "width": WIDTH,
        "height": height,
        "padding": {"left": 2, "top": 6, "right": right, "bottom": 2},
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


def speed(field: str, title: str = "tokens per second") -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": True, "nice": True},
        "axis": {"labelFlush": False},
    }


def range_layer(along: str) -> Spec:
    return {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "color": PALETTE["ink"], "strokeWidth": 1.5, "aria": False},
        "encoding": {along: speed("low"), along + "2": {"field": "high"}},
    }


def _by_series(n_series: int, values: Sequence[Any]) -> Spec:
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
            "aria": False,
            "color": PALETTE[panel.kind],
            "strokeWidth": 2,
            "opacity": 1 if panel.is_numeric else 0.35,
        },
        "encoding": {
            "y": speed("median"),
            "strokeDash": _by_series(n, DASHES),
            "detail": {"field": "series"},
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
            "shape": _by_series(n, SHAPES),
            "description": {"field": "words"},
        },
    }


def ceiling_layers(panel: Panel) -> list[Spec]:
    """The pencil ceiling of each series as an ink line, where it does not squash the measurements."""
    top = max(point.median for series in panel.series for point in series.points)
    ceilings = {
        series.points[0].row.pencil_ceiling.value: series.label
        for series in panel.series
        if series.points[0].row.pencil_ceiling.value
    }
    drawn = [
        {
            "ceiling": value,
            "label": f"pencil ceiling{f' {shown(label, 24)}' if len(ceilings) > 1 else ''}",
        }
        for value, label in ceilings.items()
        if value is not None and value <= top * 2.2
    ]
    if not drawn:
        return []
    data = {"values": drawn}
    return [
        {
            "data": data,
            "mark": {
                "type": "rule",
                "aria": False,
                "color": PALETTE["ink"],
                "strokeWidth": 1.25,
                "strokeDash": [1, 0],
            },
            "encoding": {"y": speed("ceiling"), "x": {"value": 0}, "x2": {"value": "width"}},
        },
        {
            "data": data,
            "mark": {
                "type": "text",
                "aria": False,
                "align": "left",
                "baseline": "bottom",
                "dy": -3,
                "color": PALETTE["quiet"],
                "fontSize": 12,
            },
            "encoding": {"y": speed("ceiling"), "x": {"value": 2}, "text": {"field": "label"}},
        },
    ]


def end_label_layer(values: Sequence[Spec]) -> Spec:
    """Names at the right end of the lines, moved apart where they would touch."""
    ends = sorted((v for v in values if v["is_last"]), key=lambda value: float(value["median"]))
    top = max(float(v["high"] or v["median"]) for v in values)
    gap = top * 0.075
    placed: list[Spec] = []
    last = -gap
    for value in ends:
        y = max(float(value["median"]), last + gap)
        last = y
        placed.append({"x": value["x"], "y": y, "label": value["label"]})
    return {
        "data": {"values": placed},
        "mark": {
            "type": "text",
            "aria": False,
            "align": "left",
            "dx": 9,
            "limit": 104,
            "color": PALETTE["ink"],
            "fontSize": 13,
        },
        "encoding": {"x": {"value": "width"}, "y": speed("y"), "text": {"field": "label"}},
    }
