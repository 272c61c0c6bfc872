"""The roofline as a chart: roofs in ink, spots of generation and prompts named. Plain data in, a Vega-Lite specification out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    PALETTE,
    SHAPES,
    Spec,
    by_series,
    end_names,
    framed,
    log_quantity,
    spread_apart,
)
from llamasweep.report.names import shown
from llamasweep.report.roofline import Roofline, Spot
from llamasweep.report.rows import varying


def roofline_chart(view: Roofline) -> Spec:
    """Work per byte against calculations per second, both logarithmic; roofs in ink, each spot named."""
    values = [_spot_value(spot, view) for spot in view.spots]
    by_kind = {
        kind: [
            (v, spot) for v, spot in zip(values, view.spots, strict=True) if spot.row.kind == kind
        ]
        for kind in ("tg", "pp")
    }
    left = min(spot.flop_per_byte for spot in view.spots) / 2
    right = max(spot.flop_per_byte for spot in view.spots) * 2
    roof = _roof(view, view.bandwidth_bytes_per_s, left, right)
    others = [_roof(view, other.bytes_per_s, left, right) for other in view.other_roofs]
    bottom = min(roof[0]["y"], *(spot.flop_per_s for spot in view.spots)) / 3
    x: Spec = log_quantity("x", "FLOP per byte", [left, right])
    highest = [point["y"] for line in (roof, *others) for point in line]
    top = max(*highest, *(spot.flop_per_s for spot in view.spots)) * 2
    y: Spec = log_quantity("y", "FLOP per second", [bottom, top])
    gap = math.log10(top / bottom) * 0.065
    shapes = by_series(len({value["series"] for value in values}), SHAPES)
    layers: list[Spec] = [
        {
            "data": {"values": roof},
            "mark": {"type": "line", "color": PALETTE["ink"], "strokeWidth": 1.5, "aria": False},
            "encoding": {"x": x, "y": y},
        },
        *(_other_roof(line, x, y) for line in others),
        *(_spots(kind, [v for v, _ in of], x, y, shapes) for kind, of in by_kind.items()),
        *(_spot_names(kind, of, gap, x, y) for kind, of in by_kind.items()),
    ]
    return framed(values, layers, height=260, config={})


def _roof(view: Roofline, bandwidth: float, left: float, right: float) -> list[Spec]:
    peak = view.peak_flop_per_s
    points = [{"x": left, "y": left * bandwidth}]
    if peak is not None and left * bandwidth < peak < right * bandwidth:
        return [*points, {"x": peak / bandwidth, "y": peak}, {"x": right, "y": peak}]
    return [*points, {"x": right, "y": right * bandwidth}]


def _other_roof(line: Sequence[Spec], x: Spec, y: Spec) -> Spec:
    """Thin and dashed: known of the same memory, but not what the ceilings rest on."""
    mark = {"type": "line", "color": PALETTE["quiet"], "strokeWidth": 1.25, "strokeDash": [5, 3]}
    return {
        "data": {"values": list(line)},
        "mark": {**mark, "aria": False},
        "encoding": {"x": x, "y": y},
    }


def _spot_value(spot: Spot, view: Roofline) -> Spec:
    row = spot.row
    rows = [other.row for other in view.spots]
    name = row.quant if row.quant and len({other.family for other in rows}) == 1 else row.subject
    identity = [axis for axis in varying(rows) if axis in ("run_id", "build")]
    return {
        "x": spot.flop_per_byte,
        "y": spot.flop_per_s,
        "series": "0" if row.kind == "tg" else "1",
        "label": shown(", ".join([name, *(getattr(row, axis) for axis in identity)]), 40),
        "of_row": told([row]),
        "words": told(
            [row],
            f"{shown(row.subject, 60)}, {row.test}: {figures.number(spot.flop_per_byte)} FLOP per byte, "
            f"{figures.compute(spot.flop_per_s)}",
        ),
    }


def _spots(kind: str, values: Sequence[Spec], x: Spec, y: Spec, shapes: Spec) -> Spec:
    return {
        "data": {"values": list(values)},
        "mark": {"type": "point", "filled": True, "size": 70, "color": PALETTE[kind], "opacity": 1},
        "encoding": {"x": x, "y": y, "shape": shapes, "description": {"field": "words"}},
    }


_Named = tuple[Spec, Spot]


def _spot_names(kind: str, of_kind: Sequence[_Named], gap: float, x: Spec, y: Spec) -> Spec:
    """Names right of generation and left of prompts, moved apart along the logarithmic axis."""
    clusters = _clusters(of_kind, gap / 2)
    ends = [
        (
            math.log10(first.flop_per_s),
            f"{len(cluster)} rows" if len(cluster) > 1 else value["label"],
        )
        for cluster in clusters
        for value, first in cluster[:1]
    ]
    placed = spread_apart(ends, gap=gap, floor=math.log10(y["scale"]["domain"][0]))
    names = [
        {
            "x": cluster[0][0]["x"],
            "y": 10**height,
            "label": label,
            "of_rows": told(spot.row for _, spot in cluster),
        }
        for cluster, (height, label) in zip(clusters, placed, strict=True)
    ]
    layer = end_names(names, y)
    is_left = kind == "pp"
    layer["mark"] |= {"align": "right" if is_left else "left", "dx": -9 if is_left else 9}
    layer["encoding"]["x"] = x
    return layer


def _clusters(of_kind: Sequence[_Named], near: float) -> list[list[_Named]]:
    """Spots, lowest first; those within `near` decades of the first of a cluster would hide each other's names."""
    clusters: list[list[_Named]] = []
    for value, spot in sorted(of_kind, key=lambda one: (one[1].flop_per_s, one[0]["label"])):
        first = clusters[-1][0][1] if clusters else None
        if first and max(_decades(spot, first)) <= near:
            clusters[-1].append((value, spot))
        else:
            clusters.append([(value, spot)])
    return clusters


def _decades(spot: Spot, other: Spot) -> tuple[float, float]:
    return (
        abs(math.log10(spot.flop_per_s / other.flop_per_s)),
        abs(math.log10(spot.flop_per_byte / other.flop_per_byte)),
    )
