"""Charts as data: views in, Vega-Lite specifications out. Draws nothing and knows no file.

Colours are fixed words of the light page (PALETTE); the style sheet gives each its value in the other theme. Every mark
carries a sentence for screen readers and tooltips. Names from outside stand in `data`, never in an expression or a field
name.
"""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.mark_rows import told
from llamasweep.report.marks import (
    GROUPED,
    PALETTE,
    Spec,
    bars_height,
    ceiling_layers,
    end_labels,
    estimate_layers,
    framed,
    label_layers,
    line_layer,
    name_layers,
    name_position,
    point_layer,
    range_layer,
    speed,
)
from llamasweep.report.names import axis_title, shown
from llamasweep.report.panels import MAX_DOTS, Panel
from llamasweep.report.rows import Rates, Row
from llamasweep.report.tracks import BAND_HIGH, BAND_LOW


def rates_chart(rows: Sequence[Row], labels: Sequence[str]) -> Spec:
    """Bars of one kind of test, one per row, with range, repetitions, exact and pencil ceiling as ink ticks."""
    kind = rows[0].kind
    values = [_bar(row, label) for row, label in zip(rows, labels, strict=True)]
    names = [value["name"] for value in values]
    position = name_position(names)
    layers: list[Spec] = [
        *(_band_layers() if kind == "tg" else ()),
        {
            "mark": {"type": "bar", "height": 12, "color": PALETTE[kind], "opacity": 0.85},
            "encoding": {"x": speed("median"), "description": {"field": "words"}},
        },
        range_layer("x"),
        *_dot_layers([row for row in rows if row.rates], values, "x"),
        _tick_layer("pencil", thickness=1, size=16),
        _tick_layer("ceiling", thickness=2.5, size=22),
        {
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 7,
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
    layers += name_layers(names)
    for layer in layers:
        layer["encoding"]["y"] = position
    return framed(values, layers, height=bars_height(names), config={"axisY": {"grid": False}})


def _band_layers() -> tuple[Spec]:
    """What people quote as usual for generation, behind the bar, told by its outline from every fill."""
    mark = {"type": "bar", "height": 20, "color": PALETTE["quiet"], "fillOpacity": 0.14}
    outline = {"stroke": PALETTE["quiet"], "strokeWidth": 1, "strokeDash": [2, 2], "opacity": 1}
    return (
        {
            "transform": [{"filter": "isValid(datum.band_low)"}],
            "mark": {**mark, **outline},
            "encoding": {
                "x": speed("band_low"),
                "x2": {"field": "band_high"},
                "description": {"field": "band_words"},
            },
        },
    )


def _tick_layer(field: str, *, thickness: float, size: int) -> Spec:
    return {
        "transform": [{"filter": f"isValid(datum.{field})"}],
        "mark": {
            "type": "tick",
            "color": PALETTE["ink"],
            "thickness": thickness,
            "size": size,
            "opacity": 1,
        },
        "encoding": {"x": speed(field), "description": {"field": f"{field}_words"}},
    }


def panel_chart(panel: Panel) -> Spec:
    """Speed along one axis: lines for numbers, points for words; series by shape and dash, named at their ends."""
    values = [value for index, series in enumerate(panel.series) for value in _line(index, panel)]
    xs = sorted({value["x"] for value in values}) if panel.is_numeric else _order(values)
    x: Spec = {"field": "x", "type": "quantitative" if panel.is_numeric else "nominal"}
    x["title"] = axis_title(panel.axis)
    x["axis"] = {"grid": False, "labelOverlap": "greedy", "labelFlush": False, "labelAngle": 0}
    if panel.is_numeric:
        x["axis"]["values"] = xs
        x["axis"]["labelExpr"] = GROUPED
        x["scale"] = {
            "domain": [0 if panel.axis == "n_depth" else min(xs), max(xs)],
            "nice": False,
            "padding": 8,
        }
    else:
        x["sort"] = xs
        x["scale"] = {"type": "point", "padding": 0.5}
    layers = [
        line_layer(panel),
        range_layer("y"),
        *_dot_layers([p.row for s in panel.series for p in s.points], values, "y"),
        point_layer(panel),
        *ceiling_layers(panel),
        *estimate_layers(panel),
    ]
    for layer in layers:
        layer["encoding"].setdefault("x", x)
    labels = end_labels(values, panel)
    layers += label_layers(labels)
    return framed(values, layers, height=210, config={"axisX": {"grid": False}})


def row_figures(row: Row) -> Spec:
    """What every mark of a row carries."""
    rates = row.rates
    if rates is None:
        return {"of_row": told([row])}
    has_range = rates.n_kept > 1 and rates.low is not None and rates.high is not None
    return {
        "median": rates.median,
        "low": rates.low if has_range else None,
        "high": rates.high if has_range else None,
        "of_row": told([row]),
        "words": told([row], row_words(row)),
    }


def row_words(row: Row) -> str:
    """The sentence of a mark: identity, median, range, n, shares of the ceilings, log."""
    rates = row.rates
    if rates is None:
        return f"{shown(row.subject)}, {row.test}: not measured"
    text = f"{shown(row.subject)}, {row.test}"
    if row.attempt.n_depth:
        text += f" at depth {row.attempt.n_depth}"
    text += f": median {figures.rate(rates.median)}"
    if rates.n_kept > 1 and rates.low is not None and rates.high is not None:
        text += f", {figures.number(rates.low)} to {figures.number(rates.high)}"
    text += f", n = {rates.n_kept}"
    if row.fraction.value is not None and row.ceiling.value is not None:
        is_reference = bool(row.attempt.ceiling_is_reference)
        share = figures.share_of_ceiling(row.fraction.value, is_reference=is_reference)
        text += f", {share} of {figures.rate(row.ceiling.value)}"
    if row.pencil_fraction.value is not None:
        text += f", {figures.percent(row.pencil_fraction.value)} of the pencil ceiling"
    if row.attempt.log_path:
        text += f"; log {shown(row.attempt.log_path, 60)}"
    return text


def _bar(row: Row, label: str) -> Spec:
    """A row without a rate has its name and `not measured` at the left end of the axis, and no bar."""
    rates = row.rates
    ticks = {"ceiling": row.ceiling.value, "pencil": row.pencil_ceiling.value}
    return (
        row_figures(row)
        | ticks
        | {
            "name": shown(label, 48),
            "ceiling_words": told([row], _tick_words("exact ceiling", ticks["ceiling"])),
            "pencil_words": told([row], _tick_words("pencil ceiling", ticks["pencil"])),
            **_band(row),
            "label_x": 0.0
            if rates is None
            else _label_x(rates, [*ticks.values(), *_band_ends(row)]),
            "label": "not measured" if rates is None else figures.number(rates.median),
            "kept": [] if rates is None else list(rates.kept),
        }
    )


def _band(row: Row) -> Spec:
    ends = _band_ends(row)
    if not ends:
        return {}
    low, high = ends
    words = f"70 to 85 % of the pencil ceiling: {figures.number(low)} to {figures.number(high)} t/s"
    return {"band_low": low, "band_high": high, "band_words": told([row], words)}


def _band_ends(row: Row) -> tuple[float, float] | tuple[()]:
    pencil = row.pencil_ceiling.value
    if pencil is None or row.kind != "tg":
        return ()
    return pencil * BAND_LOW, pencil * BAND_HIGH


def _label_x(rates: Rates, ticks: Sequence[float | None]) -> float:
    """The bar's end. A tick close behind it would run through the figure, so the figure steps behind the tick."""
    top = rates.median if rates.high is None else max(rates.median, rates.high)
    for tick in sorted(tick for tick in ticks if tick is not None):
        if top <= tick < top * 1.6:
            top = tick
    return top


def _tick_words(name: str, tps: float | None) -> str:
    return "" if tps is None else f"{name} {figures.rate(tps)}"


def _line(index: int, panel: Panel) -> list[Spec]:
    series = panel.series[index]
    return [
        row_figures(point.row)
        | {
            "x": point.x,
            "series": str(index),
            "is_last": point is series.points[-1],
            "of_series": told(one.row for one in series.points),
            "label": shown(series.label, 40),
            "kept": list(point.row.rates.kept) if point.row.rates else [],
        }
        for point in series.points
    ]


def _order(values: Sequence[Spec]) -> list[str]:
    return list(dict.fromkeys(value["x"] for value in values))


def _dot_layers(rows: Sequence[Row], values: list[Spec], along: str) -> list[Spec]:
    """One dot per kept repetition, where there is room for them."""
    if not has_dots(rows):
        for value in values:
            value.pop("kept", None)
        return []
    across = "y" if along == "x" else "x"
    return [
        {
            "transform": [{"flatten": ["kept"]}],
            "mark": {
                "type": "point",
                "shape": "circle",
                "size": 11,
                across + "Offset": 10 if along == "x" else 7,
                "filled": True,
                "color": PALETTE["ink"],
                "opacity": 0.6,
            },
            "encoding": {along: speed("kept"), "description": {"field": "of_row"}},
        }
    ]


def has_dots(rows: Sequence[Row]) -> bool:
    """Whether a chart of these rows draws its repetitions one by one."""
    return 0 < sum(len(row.rates.kept) for row in rows if row.rates) <= MAX_DOTS
