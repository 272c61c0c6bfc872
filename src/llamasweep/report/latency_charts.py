"""Charts of latency: bars with the 95th percentile as a tick, or lines along an axis. Plain data in, Vega-Lite out."""

from __future__ import annotations

from llamasweep.report.latency import Latency, Timing, duration, timing_words
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    DASHES,
    GROUPED,
    PALETTE,
    SHAPES,
    Spec,
    bars_height,
    by_series,
    end_names,
    framed,
    name_layers,
    name_position,
    quantity,
    spread_apart,
)
from llamasweep.report.names import axis_title, shown

COLORS = {"ttft": "pp", "tpot": "tg", "e2e": "quiet"}
"""The first token is prompt reading, the further ones are generation."""


def latency_chart(view: Latency) -> Spec:
    """Bars where nothing varies, else lines."""
    return _bars(view) if view.axis is None else _lines(view, view.axis)


def _scale(view: Latency) -> tuple[float, str]:
    most = max(timing.p95_s or timing.median_s for line in view.lines for timing in line)
    return (1.0, "seconds") if most >= 1 else (1e-3, "milliseconds")


def _value(timing: Timing, view: Latency) -> Spec:
    scale, _ = _scale(view)
    return {
        "median": timing.median_s / scale,
        "p95": None if timing.p95_s is None else timing.p95_s / scale,
        "of_row": told([timing.row]),
        "words": told([timing.row], timing_words(timing, view)),
    }


def _bars(view: Latency) -> Spec:
    title = _scale(view)[1]
    values = [
        _value(timing, view)
        | {
            "name": shown(timing.label, 48),
            "label": duration(timing.median_s),
            "label_x": max(timing.median_s, timing.p95_s or 0.0) / _scale(view)[0],
        }
        for (timing, *_) in view.lines
    ]
    names = [value["name"] for value in values]
    position = name_position(names)
    silent = {"description": {"field": "of_row"}}
    text = {"type": "text", "align": "left", "dx": 7, "fontSize": 13, "color": PALETTE["ink"]}
    tick = {"type": "tick", "thickness": 2.5, "size": 20, "opacity": 1, "color": PALETTE["ink"]}
    layers: list[Spec] = [
        {
            "mark": {
                "type": "bar",
                "height": 12,
                "color": PALETTE[COLORS[view.measure]],
                "opacity": 0.85,
            },
            "encoding": {"x": quantity("median", title), "description": {"field": "words"}},
        },
        {
            "transform": [{"filter": "isValid(datum.p95)"}],
            "mark": tick,
            "encoding": {"x": quantity("p95", title), **silent},
        },
        {
            "mark": text,
            "encoding": {"x": quantity("label_x", title), "text": {"field": "label"}, **silent},
        },
    ]
    layers += name_layers(names)
    for layer in layers:
        layer["encoding"]["y"] = position
    return framed(values, layers, height=bars_height(names), config={"axisY": {"grid": False}})


def _lines(view: Latency, axis: str) -> Spec:
    scale, title = _scale(view)
    values = [
        _value(timing, view)
        | {
            "x": timing.x,
            "series": str(index),
            "of_series": told(one.row for one in line),
        }
        for index, line in enumerate(view.lines)
        for timing in line
    ]
    x: Spec = {"field": "x", "type": "quantitative", "title": axis_title(axis)}
    x["axis"] = {"grid": False, "values": sorted({value["x"] for value in values})}
    x["axis"] |= {"labelOverlap": "greedy", "labelFlush": False, "labelExpr": GROUPED}
    x["scale"] = {"domainMin": 0, "nice": False, "padding": 8}
    n, color = len(view.lines), PALETTE[COLORS[view.measure]]
    y = quantity("median", title)
    layers: list[Spec] = [
        {
            "transform": [{"filter": "isValid(datum.p95)"}],
            "mark": {"type": "rule", "color": PALETTE["ink"], "strokeWidth": 1.25},
            "encoding": {"y": y, "y2": {"field": "p95"}, "description": {"field": "of_row"}},
        },
        {
            "transform": [{"filter": "isValid(datum.p95)"}],
            "mark": {"type": "tick", "orient": "horizontal", "size": 9, "color": PALETTE["ink"]},
            "encoding": {"y": quantity("p95", title), "description": {"field": "of_row"}},
        },
        {
            "mark": {"type": "line", "color": color, "strokeWidth": 2},
            "encoding": {
                "y": y,
                "strokeDash": by_series(n, DASHES),
                "detail": {"field": "series"},
                "description": {"field": "of_series"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 62, "color": color, "opacity": 1},
            "encoding": {
                "y": y,
                "shape": by_series(n, SHAPES),
                "description": {"field": "words"},
            },
        },
        _names(view, scale, title),
    ]
    for layer in layers:
        layer["encoding"].setdefault("x", x)
    return framed(values, layers, height=210, config={"axisX": {"grid": False}})


def _names(view: Latency, scale: float, title: str) -> Spec:
    ends = sorted(
        (line[-1].median_s / scale, shown(line[-1].label, 40), told(t.row for t in line))
        for line in view.lines
    )
    highest = max(t.p95_s or t.median_s for line in view.lines for t in line) / scale
    placed = spread_apart([(height, label) for height, label, _ in ends], gap=highest * 0.08)
    named = [
        {"y": height, "label": label, "of_rows": rows}
        for (height, label), (_, _, rows) in zip(placed, ends, strict=True)
    ]
    return end_names(named, quantity("y", title))
