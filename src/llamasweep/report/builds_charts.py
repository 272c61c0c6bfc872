"""The chart of builds side by side: the first filled, the others hollow. Plain data in, a Vega-Lite specification out."""

from __future__ import annotations

from llamasweep.report import figures
from llamasweep.report.builds_beside import Beside
from llamasweep.report.charts import row_figures
from llamasweep.report.comparison import median
from llamasweep.report.marks import PALETTE, SHAPES, Spec, framed, name_position, range_layer, speed
from llamasweep.report.names import shown

LINE_HEIGHT = 22


def builds_chart(view: Beside) -> Spec:
    """Medians from 0 with their ranges, a line of its own for each build, named at its end."""
    values = [
        row_figures(row)
        | {
            "name": shown(label, 48),
            "build": index,
            "label_x": max(median(row), row.rates.high or 0.0) if row.rates else 0.0,
            "label": f"{figures.number(median(row))}, {shown(row.build, 30)}",
        }
        for label, of_line in view.lines
        for index, row in enumerate(of_line)
    ]
    names = list(dict.fromkeys(value["name"] for value in values))
    position = name_position(names)
    position["scale"] = {"paddingInner": 0.25, "paddingOuter": 0.1}
    layers: list[Spec] = [
        range_layer("x"),
        *(_points(view, index) for index in range(len(view.builds))),
        {
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 10,
                "color": PALETTE["ink"],
                "fontSize": 13,
            },
            "encoding": {
                "x": speed("label_x"),
                "text": {"field": "label"},
                "description": {"field": "of_row"},
            },
        },
    ]
    for layer in layers:
        layer["encoding"]["y"] = position
        layer["encoding"]["yOffset"] = {"field": "build", "type": "nominal"}
    height = LINE_HEIGHT * len(values) + 8 * len(names)
    return framed(values, layers, height=height, config={"axisY": {"grid": False}})


def _points(view: Beside, index: int) -> Spec:
    return {
        "transform": [{"filter": f"datum.build === {index}"}],
        "mark": {
            "type": "point",
            "filled": index == 0,
            "shape": SHAPES[index % len(SHAPES)],
            "size": 62,
            "strokeWidth": 2,
            "color": PALETTE[view.kind],
            "opacity": 1,
        },
        "encoding": {"x": speed("median"), "description": {"field": "words"}},
    }
