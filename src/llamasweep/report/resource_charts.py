"""Charts of memory, energy and the roofline: plain data in, Vega-Lite specifications out. Same rules as `charts`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llamasweep.report import figures
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    DASHES,
    GROUPED,
    MAX_LABEL_WIDTH,
    PALETTE,
    ROW_HEIGHT,
    SHAPES,
    Spec,
    by_series,
    framed,
    spread_apart,
)
from llamasweep.report.names import shown
from llamasweep.report.resources import Bars, Growth
from llamasweep.report.roofline import Roofline, Spot

GIB, MIB = float(1 << 30), float(1 << 20)
Show = Callable[[float], str]


def memory_chart(view: Bars) -> Spec:
    """Peaks as bars, the size of the model as an ink tick."""
    scale, unit = _memory_unit([bar.value for bar in view.bars])
    return _bars_chart(view, f"peak, {unit}", scale, PALETTE["quiet"], figures.size)


def energy_chart(view: Bars, kind: str) -> Spec:
    """Joules per token as bars."""
    return _bars_chart(view, "joules per token", 1.0, PALETTE[kind], figures.energy)


def growth_chart(view: Growth) -> Spec:
    """Memory along the depth: lines told apart by dash and shape, named at their ends."""
    scale, unit = _memory_unit([value for line in view.lines for _, value, _ in line.points])
    values = [
        {
            "x": x,
            "y": value / scale,
            "series": str(index),
            "words": told([row], words),
            "of_series": told(line.rows),
        }
        for index, line in enumerate(view.lines)
        for (x, value, words), row in zip(line.points, line.rows, strict=True)
    ]
    x: Spec = {"field": "x", "type": "quantitative", "title": "tokens already in the context"}
    x["axis"] = {"grid": False, "values": sorted({value["x"] for value in values})}
    x["axis"] |= {"labelOverlap": "greedy", "labelFlush": False, "labelExpr": GROUPED}
    x["scale"] = {"domainMin": 0, "nice": False, "padding": 8}
    y = _quantity("y", f"peak, {unit}")
    n = len(view.lines)
    mark = {"color": PALETTE["quiet"], "opacity": 1}
    ends = sorted(
        (line.points[-1][1] / scale, shown(line.label, 40), told(line.rows)) for line in view.lines
    )
    highest = max(value / scale for line in view.lines for _, value, _ in line.points)
    placed = spread_apart([(height, label) for height, label, _ in ends], gap=highest * 0.08)
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "strokeWidth": 2, **mark},
            "encoding": {
                "x": x,
                "y": y,
                "strokeDash": by_series(n, DASHES),
                "detail": {"field": "series"},
                "description": {"field": "of_series"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 62, **mark},
            "encoding": {
                "x": x,
                "y": y,
                "shape": by_series(n, SHAPES),
                "description": {"field": "words"},
            },
        },
        _end_names(
            [
                {"y": height, "label": label, "of_rows": rows}
                for (height, label), (_, _, rows) in zip(placed, ends, strict=True)
            ],
            y,
        ),
    ]
    return framed(values, layers, height=210, config={"axisX": {"grid": False}})


def roofline_chart(view: Roofline) -> Spec:
    """Work per byte against calculations per second, both logarithmic; roofs in ink, each spot named."""
    values = [_spot_value(spot, view) for spot in view.spots]
    left = min(spot.flop_per_byte for spot in view.spots) / 2
    right = max(spot.flop_per_byte for spot in view.spots) * 2
    roof = _roof(view, left, right)
    bottom = min(spot.flop_per_s for spot in view.spots) / 3
    x: Spec = _log("x", "FLOP per byte", [left, right])
    top = max(point["y"] for point in roof) * 1.5
    y: Spec = _log("y", "FLOP per second", [bottom, top])
    gap = math.log10(top / bottom) * 0.065
    shapes = by_series(len({value["series"] for value in values}), SHAPES)
    layers: list[Spec] = [
        {
            "data": {"values": roof},
            "mark": {"type": "line", "color": PALETTE["ink"], "strokeWidth": 1.5, "aria": False},
            "encoding": {"x": x, "y": y},
        },
        *(_spots(kind, values, x, y, shapes) for kind in ("tg", "pp")),
        *(_spot_names(kind, values, gap, x, y) for kind in ("tg", "pp")),
    ]
    return framed(values, layers, height=260, config={})


def _bars_chart(view: Bars, title: str, scale: float, color: str, show: Show) -> Spec:
    values = [
        {
            "name": shown(bar.label, 48),
            "value": bar.value / scale,
            "mark": bar.mark / scale if bar.mark is not None else None,
            "label_x": max(bar.value, bar.value if bar.mark is None else bar.mark) / scale,
            "label": show(bar.value),
            "words": told([bar.row], bar.words),
            "of_row": told([bar.row]),
        }
        for bar in view.bars
    ]
    names = [value["name"] for value in values]
    position: Spec = {"field": "name", "type": "nominal", "sort": names, "title": None}
    position["axis"] = {"labelLimit": 150, "ticks": False, "domain": False, "labelPadding": 6}
    text = {"type": "text", "align": "left", "dx": 7, "fontSize": 13}
    tick = {"type": "tick", "thickness": 2.5, "size": 22, "opacity": 1}
    silent = {"description": {"field": "of_row"}}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": 12, "color": color, "opacity": 0.85},
            "encoding": {"x": _quantity("value", title), "description": {"field": "words"}},
        },
        {
            "transform": [{"filter": "isValid(datum.mark)"}],
            "mark": {**tick, "color": PALETTE["ink"]},
            "encoding": {"x": _quantity("mark", title), **silent},
        },
        {
            "mark": {**text, "color": PALETTE["ink"]},
            "encoding": {"x": _quantity("label_x", title), "text": {"field": "label"}, **silent},
        },
    ]
    for layer in layers:
        layer["encoding"]["y"] = position
    return framed(
        values, layers, height=ROW_HEIGHT * len(values), config={"axisY": {"grid": False}}
    )


def _quantity(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": True, "nice": True},
        "axis": {"labelFlush": False, "labelExpr": GROUPED},
    }


def _memory_unit(values: Sequence[float]) -> tuple[float, str]:
    return (GIB, "GiB") if max(values) >= GIB else (MIB, "MiB")


def _end_names(names: Sequence[Spec], y: Spec) -> Spec:
    return {
        "data": {"values": list(names)},
        "mark": {
            "type": "text",
            "align": "left",
            "dx": 9,
            "limit": MAX_LABEL_WIDTH,
            "color": PALETTE["ink"],
            "fontSize": 13,
        },
        "encoding": {
            "x": {"value": "width"},
            "y": y,
            "text": {"field": "label"},
            "description": {"field": "of_rows"},
        },
    }


def _log(field: str, title: str, domain: list[float]) -> Spec:
    low, high = (math.log10(end) for end in domain)
    decades = [10.0**n for n in range(math.ceil(low), math.floor(high) + 1)]
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": domain, "nice": False, "zero": False},
        "axis": {"format": "~s", "values": decades, "grid": True},
    }


def _roof(view: Roofline, left: float, right: float) -> list[Spec]:
    bandwidth, peak = view.bandwidth_bytes_per_s, view.peak_flop_per_s
    points = [{"x": left, "y": left * bandwidth}]
    if peak is not None and left * bandwidth < peak < right * bandwidth:
        return [*points, {"x": peak / bandwidth, "y": peak}, {"x": right, "y": peak}]
    return [*points, {"x": right, "y": right * bandwidth}]


def _spot_value(spot: Spot, view: Roofline) -> Spec:
    row = spot.row
    is_one_family = len({other.row.family for other in view.spots}) == 1
    return {
        "x": spot.flop_per_byte,
        "y": spot.flop_per_s,
        "kind": row.kind,
        "series": "0" if row.kind == "tg" else "1",
        "label": shown(row.quant if is_one_family and row.quant else row.subject, 40),
        "of_row": told([row]),
        "words": told(
            [row],
            f"{shown(row.subject, 60)}, {row.test}: {figures.number(spot.flop_per_byte)} FLOP per byte, "
            f"{figures.compute(spot.flop_per_s)}",
        ),
    }


def _spots(kind: str, values: Sequence[Spec], x: Spec, y: Spec, shapes: Spec) -> Spec:
    return {
        "data": {"values": [value for value in values if value["kind"] == kind]},
        "mark": {"type": "point", "filled": True, "size": 70, "color": PALETTE[kind], "opacity": 1},
        "encoding": {"x": x, "y": y, "shape": shapes, "description": {"field": "words"}},
    }


def _spot_names(kind: str, values: Sequence[Spec], gap: float, x: Spec, y: Spec) -> Spec:
    """Names right of generation and left of prompts, moved apart along the logarithmic axis."""
    of_kind = sorted((value for value in values if value["kind"] == kind), key=lambda v: v["y"])
    ends = [(math.log10(value["y"]), value["label"]) for value in of_kind]
    placed = spread_apart(ends, gap=gap)
    is_left = kind == "pp"
    return {
        "data": {
            "values": [
                {"x": value["x"], "y": 10**height, "label": label, "of_row": value["of_row"]}
                for value, (height, label) in zip(of_kind, placed, strict=True)
            ]
        },
        "mark": {
            "type": "text",
            "align": "right" if is_left else "left",
            "dx": -9 if is_left else 9,
            "limit": MAX_LABEL_WIDTH,
            "color": PALETTE["ink"],
            "fontSize": 13,
        },
        "encoding": {
            "x": x,
            "y": y,
            "text": {"field": "label"},
            "description": {"field": "of_row"},
        },
    }
