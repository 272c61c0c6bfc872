"""The chart of the quantisation ladder and of quality beside it: plain data in, Vega-Lite specifications out."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report.charts import row_figures
from llamasweep.report.ladder import Ladder, Quality, Rung, rung_words
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    PALETTE,
    Spec,
    framed,
    name_layer,
    quantity,
    range_layer,
    speed,
    spread_apart,
)

N_LINE_POINTS = 40
GB = 1e9


def ladder_chart(view: Ladder) -> Spec:
    """Bytes per token against tokens per second, both from 0, with the line bandwidth ÷ bytes."""
    values = [_rung_value(rung) for rung in view.rungs]
    x = quantity("x", "GB moved per token")
    layers: list[Spec] = [
        *_line(view, x),
        range_layer("y"),
        _points(PALETTE["tg"]),
        _names(view, x),
    ]
    for layer in layers:
        layer["encoding"].setdefault("x", x)
    return framed(values, layers, height=230, config={"axisX": {"grid": False}})


def quality_chart(view: Quality) -> Spec:
    """Speed against quality; the axis of quality does not begin at 0."""
    values = [_rung_value(rung) | {"quality": value} for rung, value in view.points]
    y: Spec = quantity("quality", view.metric)
    y["scale"] = {"zero": False, "nice": True, "padding": 20}
    x = speed("median")
    layers: list[Spec] = [
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 70,
                "color": PALETTE["tg"],
                "opacity": 1,
            },
            "encoding": {"x": x, "y": y, "description": {"field": "words"}},
        },
        name_layer("quality", dy=-11),
    ]
    layers[-1]["encoding"] |= {"x": x, "y": y}
    return framed(values, layers, height=210, config={"axisX": {"grid": False}})


def _names(view: Ladder, x: Spec) -> Spec:
    """Left of their points, where the line never runs, moved apart where they would touch."""
    rungs = sorted(view.rungs, key=lambda rung: (rung.tps, rung.label))
    highest = _highest(view)
    placed = spread_apart([(rung.tps, rung.label) for rung in rungs], gap=highest * 0.075)
    layer = name_layer("y", dy=0)
    layer["data"] = {
        "values": [
            {
                "x": rung.bytes_per_token / GB,
                "y": height,
                "label": label,
                "of_row": told([rung.row]),
            }
            for (height, label), rung in zip(placed, rungs, strict=True)
        ]
    }
    layer["mark"] |= {"align": "right", "dx": -9}
    layer["encoding"]["x"] = x
    return layer


def _highest(view: Ladder) -> float:
    return max(rung.tps / (rung.share or 1.0) for rung in view.rungs)


def _rung_value(rung: Rung) -> Spec:
    return row_figures(rung.row) | {
        "x": rung.bytes_per_token / GB,
        "label": rung.label,
        "words": told([rung.row], rung_words(rung)),
    }


def _points(color: str) -> Spec:
    return {
        "mark": {"type": "point", "filled": True, "size": 70, "color": color, "opacity": 1},
        "encoding": {"y": speed("median"), "description": {"field": "words"}},
    }


def _line(view: Ladder, x: Spec) -> Sequence[Spec]:
    """Bandwidth ÷ bytes, from half of the fewest bytes to a little beyond the most."""
    bandwidth = view.bandwidth_bytes_per_s
    if bandwidth is None:
        return ()
    first = view.rungs[0].bytes_per_token * 0.85
    step = (view.rungs[-1].bytes_per_token * 1.1 - first) / N_LINE_POINTS
    line = [first + step * n for n in range(N_LINE_POINTS + 1)]
    return (
        {
            "data": {"values": [{"x": n_bytes / GB, "y": bandwidth / n_bytes} for n_bytes in line]},
            "mark": {
                "type": "line",
                "color": PALETTE["ink"],
                "strokeWidth": 1.25,
                "aria": False,
            },
            "encoding": {"x": x, "y": speed("y")},
        },
    )
