"""Charts of memory and energy: plain data in, Vega-Lite specifications out. Same rules as `charts`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llamasweep.report import figures
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
from llamasweep.report.resources import Bars, Growth

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
    """Memory along an axis: lines told apart by dash and shape, named at their ends."""
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
    x: Spec = {"field": "x", "type": "quantitative", "title": axis_title(view.axis)}
    x["axis"] = {"grid": False, "values": sorted({value["x"] for value in values})}
    x["axis"] |= {"labelOverlap": "greedy", "labelFlush": False, "labelExpr": GROUPED}
    x["scale"] = {"domainMin": 0, "nice": False, "padding": 8}
    y = quantity("y", f"peak, {unit}")
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
        end_names(
            [
                {"y": height, "label": label, "of_rows": rows}
                for (height, label), (_, _, rows) in zip(placed, ends, strict=True)
            ],
            y,
        ),
    ]
    return framed(values, layers, height=210, config={"axisX": {"grid": False}})


def _bars_chart(view: Bars, title: str, scale: float, color: str, show: Show) -> Spec:
    values = [
        {
            "name": shown(bar.label, 48),
            "value": bar.value / scale,
            "mark": bar.mark / scale if bar.mark is not None else None,
            "predicted": bar.predicted / scale if bar.predicted is not None else None,
            "label_x": max(end for end in (bar.value, bar.mark, bar.predicted) if end is not None)
            / scale,
            "label": show(bar.value),
            "words": told([bar.row], bar.words),
            "of_row": told([bar.row]),
        }
        for bar in view.bars
    ]
    names = [str(value["name"]) for value in values]
    position = name_position(names)
    text = {"type": "text", "align": "left", "dx": 7, "fontSize": 13}
    tick = {"type": "tick", "thickness": 2.5, "size": 22, "opacity": 1}
    silent = {"description": {"field": "of_row"}}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": 12, "color": color, "opacity": 0.85},
            "encoding": {"x": quantity("value", title), "description": {"field": "words"}},
        },
        {
            "transform": [{"filter": "isValid(datum.mark)"}],
            "mark": {**tick, "color": PALETTE["ink"]},
            "encoding": {"x": quantity("mark", title), **silent},
        },
        {
            "transform": [{"filter": "isValid(datum.predicted)"}],
            "mark": {
                "type": "point",
                "shape": "diamond",
                "filled": False,
                "size": 70,
                "strokeWidth": 2,
                "opacity": 1,
                "color": PALETTE["ink"],
            },
            "encoding": {"x": quantity("predicted", title), **silent},
        },
        {
            "mark": {**text, "color": PALETTE["ink"]},
            "encoding": {"x": quantity("label_x", title), "text": {"field": "label"}, **silent},
        },
    ]
    layers += name_layers(names)
    for layer in layers:
        layer["encoding"]["y"] = position
    return framed(values, layers, height=bars_height(names), config={"axisY": {"grid": False}})


def _memory_unit(values: Sequence[float]) -> tuple[float, str]:
    return (GIB, "GiB") if max(values) >= GIB else (MIB, "MiB")
