"""Each chart of a page as a picture of its own: its finding, how to read it and where it is from stand inside."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import vl_convert

from llamasweep.report.chart_section import Chart
from llamasweep.report.figures import THIN
from llamasweep.report.marks import PALETTE, Spec
from llamasweep.report.render import VEGA_LITE
from llamasweep.report.views import Page

TITLE_SIZE, TEXT_SIZE, LINE = 16, 12, 17
TITLE_WIDTH, TEXT_WIDTH = 48, 70
"""Characters in a line of a picture."""
EXTRA_WIDTH = 120
"""Px that a picture is wider than the chart on the page, so that its words find room whatever the font."""
MAX_NAME = 40
PNG_SCALE = 2.0
FONT = "system-ui, DejaVu Sans, sans-serif"
_ROWS = re.compile(r"⟦[\d,]*⟧")


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """name: of the file, without its ending. spec: the chart with its words inside, on white."""

    name: str
    spec: Spec


def pictures(view: Page) -> tuple[Picture, ...]:
    """All charts of a page in its order."""
    return tuple(_all(view))


def picture_svg(picture: Picture) -> str:
    """The picture as SVG text."""
    svg: str = vl_convert.vegalite_to_svg(picture.spec, vl_version=VEGA_LITE)
    return _ROWS.sub("", svg)


def picture_png(picture: Picture) -> bytes:
    """The picture as PNG, twice as large as on the page."""
    png: bytes = vl_convert.vegalite_to_png(picture.spec, vl_version=VEGA_LITE, scale=PNG_SCALE)
    return png


def _all(view: Page) -> Iterator[Picture]:
    source = _source(view)
    for section in (*view.sections, *view.time_lines):
        for number, chart in enumerate(section.charts, 1):
            words = _slug(re.split(r"[;·]", chart.subtitle)[0])
            yield Picture(
                name="-".join(part for part in (_slug(section.anchor), str(number), words) if part),
                spec=_with_words(chart, source),
            )


def _source(view: Page) -> str:
    head = view.heads[0]
    more = f" and {len(view.heads) - 1} more" if len(view.heads) > 1 else ""
    return f"{head.where} · {head.line}{more} · llamasweep {view.version}"


def _with_words(chart: Chart, source: str) -> Spec:
    title = _balanced(chart.title, TITLE_WIDTH)
    below = [
        *_lines(chart.subtitle, TEXT_WIDTH),
        *_lines(chart.caption, TEXT_WIDTH),
        *_lines(source, TEXT_WIDTH),
    ]
    words: Spec = {
        "text": title,
        "subtitle": below,
        "anchor": "start",
        "align": "left",
        "frame": "bounds",
        "fontSize": TITLE_SIZE,
        "lineHeight": TITLE_SIZE + 5,
        "color": PALETTE["ink"],
        "subtitleFontSize": TEXT_SIZE,
        "subtitleLineHeight": LINE,
        "subtitleColor": PALETTE["quiet"],
        "subtitlePadding": 6,
        "offset": 14,
    }
    spec = chart.spec
    padding: dict[str, Any] = dict.fromkeys(("left", "top", "right", "bottom"), 16)
    if spec["autosize"] == "none":  # then nobody makes room for the title
        own = spec["padding"]
        height = len(title) * (TITLE_SIZE + 5) + len(below) * LINE + 20
        padding = {side: own[side] + 12 for side in own} | {"top": own["top"] + height}
    return {
        **spec,
        "width": spec["width"] + EXTRA_WIDTH,
        "title": words,
        "background": "#ffffff",
        "padding": padding,
        "config": {**spec["config"], "font": FONT},
    }


def _lines(text: str, width: int) -> list[str]:
    """Lines that break at spaces, never between a number and its unit."""
    return textwrap.wrap(text.replace(THIN, "\u00a0"), width, break_on_hyphens=False) or [""]


def _balanced(text: str, width: int) -> list[str]:
    """As few lines as `width` allows, of about the same length."""
    best = _lines(text, width)
    for narrower in range(width - 1, width // 2, -1):
        lines = _lines(text, narrower)
        if len(lines) > len(best):
            break
        best = lines
    return best


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:300].lower()).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return words if len(words) <= MAX_NAME else words[: MAX_NAME + 1].rpartition("-")[0]
