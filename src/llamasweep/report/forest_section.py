"""The forest of two builds as a section of the page: its chart as a Vega-Lite specification, and the words around it."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report.chart_section import Chart, ChartSection, in_the_table
from llamasweep.report.compare_words import VERDICT_WORDS, percent_change
from llamasweep.report.findings import Finding, finding
from llamasweep.report.forest import Forest, ForestLine, forests
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import PALETTE, WIDTH, Spec, framed
from llamasweep.report.names import shown
from llamasweep.report.rows import Row
from llamasweep.report.told import Told
from llamasweep.results.records import RunData
from llamasweep.stats.verdicts import Verdict

ANCHOR = "builds"
LINE_HEIGHT = 46
_MARKS: dict[Verdict, tuple[str, str, bool]] = {
    "slower": ("triangle-down", PALETTE["bad"], True),
    "faster": ("triangle-up", PALETTE["pp"], True),
    "same": ("circle", PALETTE["ink"], True),
    "undecided": ("diamond", PALETTE["quiet"], False),
}
"""Verdict -> shape, colour, filled: the shape alone tells them apart."""


def forest_sections(
    rows: Sequence[Row], runs: Sequence[RunData]
) -> tuple[tuple[ChartSection, ...], tuple[Finding, ...]]:
    """The section with a chart for each run of two builds, and its sentences for the top; empty where there is none."""
    found = forests(rows, runs)
    if not found:
        return (), ()
    section = ChartSection(
        anchor=ANCHOR,
        title="Builds side by side",
        intro=_intro(found[0]),
        charts=tuple(_chart(forest) for forest in found),
    )
    return (section,), tuple(_finding(forest) for forest in found)


def _finding(forest: Forest) -> Finding:
    """The sentence as it is: its numbers are those of `stats`, made of all pairs and not of single rows."""
    words = Told()
    return finding(words.name(forest.sentence), ANCHOR, words)


def _intro(forest: Forest) -> str:
    """What else differs, before any word of faster or slower."""
    if not forest.differs:
        return "Nothing else that is recorded differs between the builds."
    return f"What else differs ({shown(forest.a, 40)} | {shown(forest.b, 40)}): {'; '.join(forest.differs)}."


def _chart(forest: Forest) -> Chart:
    caption = (
        "Mark: change of the median rate, Hodges–Lehmann, with its 95 % interval. Dots: each round's pair. "
        "Grey band: the floor, within which a change does not count. "
        + "; ".join(f"{_SHAPE_WORDS[v]}: {VERDICT_WORDS[v]}" for v in _MARKS).capitalize()
        + "."
    )
    if forest.others:
        caption += f" Without an interval: {'; '.join(forest.others)}."
    caption += in_the_table(forest.n_left_out, "more cell")
    return Chart(
        title=forest.sentence.removesuffix("."),
        subtitle=f"change of {shown(forest.b, 60)} against {shown(forest.a, 60)}, percent",
        spec=forest_chart(forest),
        caption=caption,
    )


_SHAPE_WORDS: dict[Verdict, str] = {
    "slower": "red triangle down",
    "faster": "green triangle up",
    "same": "filled circle",
    "undecided": "hollow diamond",
}


def forest_chart(forest: Forest) -> Spec:
    """Changes in percent around 0, one line per cell with its name above it, what matters most on top."""
    values = [_value(line, index) for index, line in enumerate(forest.lines)]
    limit = max(max(abs(v["low"]), abs(v["high"]), v["floor_high"]) for v in values) * 1.15
    position = {
        "field": "line",
        "type": "ordinal",
        "axis": None,
        "scale": {"paddingInner": 0, "paddingOuter": 0},
    }
    layers: list[Spec] = [
        _band(limit),
        {
            "mark": {"type": "rule", "color": PALETTE["quiet"], "strokeDash": [2, 2]},
            "encoding": {"x": _change("zero", limit)},
        },
        _pairs_layer(forest, limit),
        {
            "mark": {"type": "rule", "color": PALETTE["ink"], "strokeWidth": 1.75},
            "encoding": {
                "x": _change("low", limit),
                "x2": {"field": "high"},
                "description": {"field": "of_rows"},
            },
        },
        *(
            _points(verdict, limit)
            for verdict in _MARKS
            if any(v["verdict"] == verdict for v in values)
        ),
        _names(),
    ]
    for layer in layers:
        layer["encoding"]["y"] = position
    return framed(
        values, layers, height=LINE_HEIGHT * len(values), config={"axisX": {"grid": True}}
    )


def _value(line: ForestLine, index: int) -> Spec:
    return {
        "line": index,
        "name": f"{shown(line.name, 60)}: {percent_change(line.ratio)}",
        "verdict": line.verdict,
        "change": 100 * (line.ratio - 1),
        "low": 100 * (line.low - 1),
        "high": 100 * (line.high - 1),
        "floor_high": 100 * line.floor_fraction,
        "floor_low": 100 * (1 / (1 + line.floor_fraction) - 1),
        "zero": 0,
        "of_rows": told(line.rows),
        "words": told(line.rows, line.words),
    }


def _change(field: str, limit: float) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": "change, %",
        "scale": {"domain": [-limit, limit], "nice": False, "clamp": True},
        "axis": {"format": "+~r", "labelExpr": "datum.value === 0 ? '0' : datum.label"},
    }


def _band(limit: float) -> Spec:
    return {
        "mark": {"type": "bar", "color": PALETTE["grid"], "opacity": 0.8, "height": LINE_HEIGHT},
        "encoding": {
            "x": _change("floor_low", limit),
            "x2": {"field": "floor_high"},
            "description": {"field": "of_rows"},
        },
    }


def _pairs_layer(forest: Forest, limit: float) -> Spec:
    pairs = [
        {"line": index, "pair": 100 * (ratio - 1), "of_rows": told(line.rows)}
        for index, line in enumerate(forest.lines)
        for ratio in line.pairs
    ]
    return {
        "data": {"values": pairs},
        "mark": {
            "type": "point",
            "filled": True,
            "size": 10,
            "yOffset": 9,
            "color": PALETTE["quiet"],
            "opacity": 0.55,
        },
        "encoding": {"x": _change("pair", limit), "description": {"field": "of_rows"}},
    }


def _points(verdict: Verdict, limit: float) -> Spec:
    shape, color, is_filled = _MARKS[verdict]
    return {
        "transform": [{"filter": f"datum.verdict === '{verdict}'"}],
        "mark": {
            "type": "point",
            "shape": shape,
            "color": color,
            "filled": is_filled,
            "size": 90,
            "strokeWidth": 2,
            "opacity": 1,
        },
        "encoding": {"x": _change("change", limit), "description": {"field": "words"}},
    }


def _names() -> Spec:
    """Names above their lines, from the left edge."""
    return {
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "bottom",
            "dy": -8,
            "fontSize": 13,
            "color": PALETTE["ink"],
            "limit": WIDTH - 20,
        },
        "encoding": {
            "x": {"value": 2},
            "text": {"field": "name"},
            "description": {"field": "of_rows"},
        },
    }
