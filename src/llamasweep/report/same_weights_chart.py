"""The chart of a server beside llama-bench: the server filled, llama-bench hollow. Plain data in, Vega-Lite out."""

from __future__ import annotations

from llamasweep.report import figures
from llamasweep.report.charts import row_figures
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    PALETTE,
    Spec,
    bars_height,
    framed,
    name_layers,
    name_position,
    range_layer,
    speed,
)
from llamasweep.report.names import shown
from llamasweep.report.same_weights import Pair, SameWeights, pair_words


def same_weights_chart(view: SameWeights) -> Spec:
    """Both medians from 0, the server's with its range, and its share at the end of the line."""
    values = [_values(pair) for pair in view.pairs]
    names = list(dict.fromkeys(value["name"] for value in values))
    text = {"type": "text", "align": "left", "dx": 10, "color": PALETTE["ink"], "fontSize": 13}
    layers: list[Spec] = [
        range_layer("x"),
        _bench_range(view.kind),
        _points(view.kind, "bench", "bench_words", is_filled=False),
        _points(view.kind, "median", "words", is_filled=True),
        {
            "mark": text,
            "encoding": {
                "x": speed("label_x"),
                "text": {"field": "label"},
                "description": {"field": "of_row"},
            },
        },
    ]
    layers += name_layers(names)
    position = name_position(names)
    for layer in layers:
        layer["encoding"]["y"] = position
    height = bars_height(names)
    return framed(values, layers, height=height, config={"axisY": {"grid": False}})


def _values(pair: Pair) -> Spec:
    found = row_figures(pair.row)
    low, high = pair.bench_range or (None, None)
    ends = [found["median"], found["high"], pair.bench_tps, high]
    return found | {
        "bench_low": low,
        "bench_high": high,
        "name": shown(pair.label, 60),
        "bench": pair.bench_tps,
        "bench_words": told([pair.row], pair_words(pair)),
        "label_x": max(end for end in ends if end is not None),
        "label": f"{figures.percent(pair.share)}: {figures.number(found['median'])} of {figures.number(pair.bench_tps)}",
    }


def _bench_range(kind: str) -> Spec:
    return {
        "transform": [{"filter": "isValid(datum.bench_low)"}],
        "mark": {"type": "rule", "color": PALETTE[kind], "strokeWidth": 1.25},
        "encoding": {
            "x": speed("bench_low"),
            "x2": {"field": "bench_high"},
            "description": {"field": "of_row"},
        },
    }


def _points(kind: str, field: str, words: str, *, is_filled: bool) -> Spec:
    return {
        "mark": {
            "type": "point",
            "filled": is_filled,
            "shape": "circle",
            "size": 62,
            "strokeWidth": 2,
            "color": PALETTE[kind],
            "opacity": 1,
        },
        "encoding": {"x": speed(field), "description": {"field": words}},
    }
