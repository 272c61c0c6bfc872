"""The chart of physical batches under their roofs, both axes logarithmic. Plain data in, a Vega-Lite specification out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from llamasweep.report.batch import Batches, Step, step_words
from llamasweep.report.charts import row_figures
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    DASHES,
    PALETTE,
    SHAPES,
    Spec,
    by_series,
    end_names,
    framed,
    log_quantity,
    spread_apart,
)
from llamasweep.report.names import axis_title, shown

ROOM = 2.2
"""How far above the highest measured or compute roof the axis goes; the memory roof leaves it."""


def batch_chart(view: Batches) -> Spec:
    """Measured speeds as marks and lines, memory and compute roofs in ink."""
    values = [
        _value(step, index, steps) for index, (_, steps) in enumerate(view.lines) for step in steps
    ]
    x, y = _axes(view)
    n = len(view.lines)
    color = PALETTE["pp"]
    layers: list[Spec] = [
        *_roofs(view, y["scale"]["domain"][1]),
        {
            "mark": {"type": "line", "color": color, "strokeWidth": 2},
            "encoding": {
                "strokeDash": by_series(n, DASHES),
                "detail": {"field": "series"},
                "description": {"field": "of_series"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 62, "color": color, "opacity": 1},
            "encoding": {"shape": by_series(n, SHAPES), "description": {"field": "words"}},
        },
        _names(view, y),
    ]
    for layer in layers:
        layer["encoding"].setdefault("x", x)
        layer["encoding"].setdefault("y", y)
    return framed(values, layers, height=240, config={"axisX": {"grid": False}})


def _value(step: Step, index: int, steps: Sequence[Step]) -> Spec:
    return row_figures(step.row) | {
        "x": step.n_ubatch,
        "y": step.tps,
        "series": str(index),
        "words": told([step.row], step_words(step)),
        "of_series": told(one.row for one in steps),
    }


def _axes(view: Batches) -> tuple[Spec, Spec]:
    steps = [step for _, line in view.lines for step in line]
    sizes = sorted({step.n_ubatch for step in steps})
    x = log_quantity("x", axis_title("n_ubatch"), [sizes[0], sizes[-1]])
    x["axis"] |= {"values": sizes, "format": "d", "grid": False, "labelOverlap": "greedy"}
    x["scale"] |= {"base": 2, "padding": 8}
    tops = [step.tps for step in steps] + [step.compute_tps for step in steps if step.compute_tps]
    bottom = min(step.tps for step in steps) / 2
    y = log_quantity("y", "tokens per second", [bottom, max(tops) * ROOM])
    return x, y


def _roofs(view: Batches, top_tps: float) -> list[Spec]:
    memory = [
        {"x": x, "y": y, "roof": f"m{index}", "of_rows": told(step.row for step in steps)}
        for index, (_, steps) in enumerate(view.lines)
        for x, y in _below([(step.n_ubatch, step.memory_tps) for step in steps], top_tps)
    ]
    compute = [
        {"x": step.n_ubatch, "y": step.compute_tps, "roof": f"c{index}", "of_rows": rows}
        for index, (_, steps) in enumerate(view.lines)
        for rows in [told(step.row for step in steps)]
        for step in steps
        if step.compute_tps is not None
    ]
    return [
        {
            "data": {"values": values},
            "mark": {
                "type": "line",
                "color": PALETTE["ink"],
                "strokeWidth": 1.25,
                "strokeDash": dash,
            },
            "encoding": {"detail": {"field": "roof"}, "description": {"field": "of_rows"}},
        }
        for values, dash in ((memory, [1, 0]), (compute, [5, 3]))
        if values
    ]


def _below(line: Sequence[tuple[float, float]], top: float) -> list[tuple[float, float]]:
    """The part of a rising line under `top`, its last piece cut where it crosses (both axes logarithmic)."""
    kept = [point for point in line if point[1] <= top]
    if not kept or len(kept) == len(line):
        return kept
    (x, y), (next_x, next_y) = kept[-1], line[len(kept)]
    share = math.log(top / y) / math.log(next_y / y)
    return [*kept, (x * (next_x / x) ** share, top)]


def _names(view: Batches, y: Spec) -> Spec:
    """Names of series and of the compute roof at the right, moved apart along the logarithmic axis."""
    ends = [
        (math.log10(steps[-1].tps), shown(label, 40), told(step.row for step in steps))
        for label, steps in view.lines
    ]
    roofs: dict[float, str] = {}
    for _, steps in view.lines:
        if steps[-1].compute_tps is not None:
            roofs.setdefault(steps[-1].compute_tps, told(step.row for step in steps))
    ends += [(math.log10(tps), "compute", rows) for tps, rows in roofs.items()]
    ends.sort()
    low, high = (math.log10(end) for end in y["scale"]["domain"])
    heights = [(height, label) for height, label, _ in ends]
    placed = spread_apart(heights, gap=(high - low) * 0.07, floor=low)
    named = [
        {"y": 10**height, "label": label, "of_rows": rows}
        for (height, label), (_, _, rows) in zip(placed, ends, strict=True)
    ]
    return end_names(named, y)
