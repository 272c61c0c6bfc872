"""A process over time as a Vega-Lite specification: rows of phases on top, a lane per quantity below, one axis of seconds.

Every lane has its own scale, whose ends are written beside it; so heights are made here, in pixels from the top.
"""

from __future__ import annotations

from llamasweep.report import figures
from llamasweep.report.lanes import Lane, Line
from llamasweep.report.marks import DASHES, GROUPED, PALETTE, WIDTH, Spec, by_series, framed
from llamasweep.report.names import shown
from llamasweep.report.spans import KINDS, WORDS, Span
from llamasweep.report.timelines import ProcessLine
from llamasweep.results.timeline import Series

ROW, LANE, TITLE, GAP = 16, 46, 22, 8
"""Heights in px: of a row of phases, of a lane, of its title, and below it."""
GUTTER, AXIS = 88, 44
"""Px right of the plot, for the ends of the scales, and below it, for the seconds."""
DASH_WORDS = ("solid", "dashed", "dotted", "dash-dotted")
COLORS = {"failed": "bad", "throttled": "bad", "pp": "pp", "tg": "tg", "pg": "ink"}
SHADED = ("load", "pp", "tg", "pg")
FONT_SIZE = 13


def timeline_chart(view: ProcessLine) -> Spec:
    """Phases and lanes of one engine process."""
    kinds = [kind for kind in KINDS if any(span.kind == kind for span in view.spans)]
    tops = _tops(kinds, view.lanes.lanes)
    height = (tops[-1] if tops else 0) + LANE + GAP
    placed = list(zip(view.lanes.lanes, tops, strict=True))
    n_dashes = max((len(lane.lines) for lane, _ in placed), default=1)
    layers = [
        *(_shades(kind, view.spans, tops) for kind in SHADED if kind in kinds),
        *(_phases(kind, index * ROW, view.spans) for index, kind in enumerate(kinds)),
        _baselines([top + LANE for top in tops], view.length_s),
        _lines(placed, n_dashes),
        _texts(
            [(index * ROW + ROW / 2, WORDS.get(k, k)) for index, k in enumerate(kinds)],
            is_title=False,
        ),
        _texts([(top - TITLE / 2 - 1, _lane_title(lane)) for lane, top in placed], is_title=True),
        _texts(
            [
                item
                for lane, top in placed
                for item in ((top + 6.0, lane.high_text), (top + LANE - 6.0, lane.low_text))
            ],
            is_title=False,
        ),
    ]
    for layer in layers:
        layer["encoding"].setdefault("x", _seconds("x", view.length_s))
        layer["encoding"]["y"] = _pixels("y", height)
        if "y2" in layer["encoding"]:
            layer["encoding"]["y2"] = {"field": "y2"}
    spec = framed([], layers, height=height, config={"axisX": {"grid": False}})
    return spec | {
        "width": WIDTH - GUTTER - 4,
        "autosize": "none",
        "padding": {"left": 4, "top": 4, "right": GUTTER, "bottom": AXIS},
    }


def _tops(kinds: list[str], lanes: tuple[Lane, ...]) -> list[int]:
    first = len(kinds) * ROW + (GAP if kinds else 0) + TITLE
    return [first + index * (LANE + TITLE + GAP) for index in range(len(lanes))]


def _seconds(field: str, length_s: float) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": "seconds since the engine was started",
        "scale": {"domain": [0, length_s], "nice": False},
        "axis": {"labelFlush": False, "labelExpr": GROUPED},
    }


def _pixels(field: str, height: int) -> Spec:
    scale = {"domain": [height, 0], "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": None}


def _shades(kind: str, spans: tuple[Span, ...], tops: list[int]) -> Spec:
    """The spans of a kind behind all lanes, faintly."""
    values = [
        {"x": _rounded(span.start_s), "x2": _rounded(span.end_s), "y": top, "y2": top + LANE}
        for span in spans
        if span.kind == kind
        for top in tops
    ]
    color = PALETTE[COLORS.get(kind, "quiet")]
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "color": color, "opacity": 0.14, "aria": False},
        "encoding": {"x2": {"field": "x2"}, "y2": {}},
    }


def _phases(kind: str, top: int, spans: tuple[Span, ...]) -> Spec:
    """The spans of a kind in their row, at least a pixel wide."""
    values = [
        {
            "x": _rounded(span.start_s),
            "x2": _rounded(span.end_s),
            "y": top + 3,
            "y2": top + ROW - 3,
            "words": f"{span.words}: {_clock(span.start_s)} to {_clock(span.end_s)} after the start",
        }
        for span in spans
        if span.kind == kind
    ]
    color = PALETTE[COLORS.get(kind, "quiet")]
    return {
        "data": {"values": values},
        "mark": {
            "type": "rect",
            "color": color,
            "stroke": color,
            "strokeWidth": 1,
            "opacity": 0.9 if kind in COLORS else 0.55,
        },
        "encoding": {"x2": {"field": "x2"}, "y2": {}, "description": {"field": "words"}},
    }


def _baselines(bottoms: list[int], length_s: float) -> Spec:
    return {
        "data": {"values": [{"x": 0, "x2": _rounded(length_s), "y": y} for y in bottoms]},
        "mark": {"type": "rule", "color": PALETTE["grid"], "strokeWidth": 1, "aria": False},
        "encoding": {"x2": {"field": "x2"}},
    }


def _lines(placed: list[tuple[Lane, int]], n_dashes: int) -> Spec:
    values: list[Spec] = []
    for lane, top in placed:
        for index, line in enumerate(lane.lines):
            for number, piece in enumerate(line.pieces):
                shape = {
                    "id": f"{lane.key}-{index}-{number}",
                    "series": str(index),
                    "words": line_words(lane, line),
                }
                values += [shape | point for point in _points(piece, lane, top)]
    return {
        "data": {"values": values},
        "mark": {"type": "line", "color": PALETTE["ink"], "strokeWidth": 1.25},
        "encoding": {
            "detail": {"field": "id"},
            "strokeDash": by_series(n_dashes, DASHES),
            "description": {"field": "words"},
        },
    }


def _points(piece: Series, lane: Lane, top: int) -> list[Spec]:
    height = max(lane.high - lane.low, 1e-300)
    return [
        {"x": _rounded(time_ns / 1e9), "y": round(top + LANE * (lane.high - value) / height, 1)}
        for time_ns, value in zip(piece.times_ns, piece.values, strict=True)
    ]


def line_words(lane: Lane, line: Line) -> str:
    """The sentence of a line."""
    values = figures.counted(line.n_values, "value")
    name = shown(line.name, 24)
    return f"{lane.title}, {name}, {values}; scale {lane.low_text} to {lane.high_text}"


def _lane_title(lane: Lane) -> str:
    if len(lane.lines) == 1:
        name = lane.lines[0].name
        return lane.title if name == "cpu" else f"{lane.title}, {name}"
    names = [f"{line.name} {dash}" for line, dash in zip(lane.lines, DASH_WORDS, strict=False)]
    return f"{lane.title}: {', '.join(names)}"


def _texts(items: list[tuple[float, str]], *, is_title: bool) -> Spec:
    """Titles inside the plot, everything else in the gutter."""
    mark: Spec = {
        "type": "text",
        "aria": False,
        "baseline": "middle",
        "align": "left",
        "dx": 0 if is_title else 6,
        "limit": WIDTH - 8,
        "color": PALETTE["ink" if is_title else "quiet"],
        "fontSize": FONT_SIZE,
    }
    return {
        "data": {"values": [{"y": y, "label": label} for y, label in items]},
        "mark": mark,
        "encoding": {
            "x": {"value": 0 if is_title else "width"},
            "text": {"field": "label"},
        },
    }


def _rounded(seconds: float) -> float:
    """To the millisecond; to a tenth of one where a process was over in a moment."""
    return round(seconds, 4)


def _clock(seconds: float) -> str:
    return figures.duration(seconds) if seconds else "0"
