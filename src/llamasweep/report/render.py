"""Lays the page out: plain data through Jinja2 and vl-convert into one HTML text that fetches nothing.

Charts become inline SVG while the page is made (docs/decisions explains why); the only script is this room's own, and the
page's content security policy names it by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from llamasweep.report import figures
from llamasweep.report.charts import row_words
from llamasweep.report.mark_rows import with_rows
from llamasweep.report.table import CellText, rate_text
from llamasweep.report.tracks import Track
from llamasweep.report.views import Page, page
from llamasweep.results.records import RunData

VEGA_LITE = "6.1"
_LONG_NUMBERS = re.compile(r' (?:d|transform|[xy]2?)="[^"<]*"')
_ID = re.compile(r'(\bid="|url\(#|href="#)([^")]+)')


def render_report(runs: Sequence[RunData]) -> str:
    """The report of one run or several as HTML. Raises ValueError for no run."""
    return render_page(page(runs))


def render_page(view: Page) -> str:
    """HTML of a page that is already plain data."""
    return render_template("page.html.j2", ("page.js", "rows.js"), page=view)


def render_template(name: str, scripts: Sequence[str], **shows: Any) -> str:
    """A template of this room with the page's style, its scripts and the policy that names them; valid UTF-8."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("llamasweep.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        chart=_numbered_charts(),
        words=row_words,
        rate=rate_text,
        percent=figures.percent,
        counted=figures.counted,
        number=figures.number,
        count=figures.count,
        sort_key=_sort_key,
        place=lambda position: f"{position * 100:.2f}%",
    )
    environment.tests["track"] = lambda value: isinstance(value, Track)
    script, style = "".join(map(_own, scripts)), _own("page.css")
    html = environment.get_template(name).render(
        **shows,
        script=Markup(script),  # noqa: S704  (a file of this package)
        style=Markup(style),  # noqa: S704  (a file of this package)
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


def chart_svg(spec: dict[str, Any], prefix: str) -> str:
    """A chart as SVG whose ids begin with `prefix`, so that several stand in one page; its marks name their rows."""
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    return with_rows(_LONG_NUMBERS.sub(_shortened, _with_own_ids(svg, prefix)))


def _with_own_ids(svg: str, prefix: str) -> str:
    """The engine counts its ids over all charts that it ever drew; here they begin anew, so that a page is the same each time."""
    numbers: dict[str, int] = {}

    def own(found: re.Match[str]) -> str:
        before, name = found.groups()
        return f"{before}{prefix}{numbers.setdefault(name, len(numbers) + 1)}"

    return _ID.sub(own, svg)


def _sort_key(cell: CellText) -> Markup:
    """What a cell is sorted by, where its text does not tell: empty for absent, numbers to six digits."""
    value = cell.sort
    if value is None:
        return Markup(' data-v=""')
    if isinstance(value, str) or cell.text == f"{value:g}":
        return Markup("")
    return Markup(' data-v="{}"').format(f"{value:.6g}")


def _shortened(attribute: re.Match[str]) -> str:
    """Coordinates to a hundredth of a pixel: half the bytes of a chart with many dots."""
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute.group())


def _numbered_charts() -> Any:
    drawn = 0

    def draw(spec: dict[str, Any]) -> Markup:
        nonlocal drawn
        drawn += 1
        return Markup(chart_svg(spec, f"c{drawn}-"))  # noqa: S704  (Vega escapes all text)

    return draw


def _own(name: str) -> str:
    return files("llamasweep.report").joinpath("templates", name).read_text(encoding="utf-8")
