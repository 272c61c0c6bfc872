"""Sections of speeds: models side by side, then one panel per axis that varies, and a sentence of each for the top."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import (
    charts,
    depth_loss,
    findings,
    marks,
    panel_titles,
    panels,
    stream_words,
    strips,
)
from llamasweep.report.chart_section import Chart, ChartSection, caption, in_the_table, kind_words
from llamasweep.report.names import AXIS_DOCS, axis_word, shown
from llamasweep.report.rows import Row, varying
from llamasweep.report.setting_sections import charts_besides_speed
from llamasweep.report.told import Told
from llamasweep.results.request_load import DEFAULTS as LOAD_DEFAULTS

MAX_BARS = 40


def rates_section(rows: Sequence[Row]) -> tuple[ChartSection, ...]:
    """Bars of each model and quantisation, tg and pp; empty where nothing was measured."""
    rows = [row for row in rows if row.rates is not None]
    pairs = strips.per_model(rows)
    identity = [axis for axis in varying(rows) if axis in ("run_id", "build")]
    made = []
    for index in (0, 1):
        chosen = [row for pair in pairs if (row := pair[index]) is not None and row.rates]
        if not chosen:
            continue
        bars = chosen[:MAX_BARS]
        labels = [
            ", ".join([row.subject, *(str(getattr(row, axis)) for axis in identity)])
            for row in bars
        ]
        made.append(
            Chart(
                title=panel_titles.rates_title(chosen),
                subtitle=f"{kind_words(bars[0].kind)}, {bars[0].test}",
                spec=charts.rates_chart(bars, labels),
                caption=caption(bars, "Bar")
                + _tick_words(bars)
                + (
                    f" {len(chosen) - len(bars)} more in the table."
                    if len(chosen) > len(bars)
                    else ""
                ),
            )
        )
    if not made:
        return ()
    intro = _choice_words(varying(rows))
    return (
        ChartSection(
            anchor="rates", title="Models and quantisations", intro=intro, charts=tuple(made)
        ),
    )


def _choice_words(axes: Sequence[str]) -> str:
    """How the bars were chosen; '' where a model has one row of a kind."""
    settings = [a for a in axes if a not in ("run_id", "build", "n_depth", *LOAD_DEFAULTS)]
    parts = ["at the least depth"] if "n_depth" in axes else []
    if not LOAD_DEFAULTS.keys().isdisjoint(axes):
        parts.append("of the least load (one new request where that was asked)")
    if settings:
        parts.append(f"in its fastest setting of {', '.join(map(axis_word, settings))}")
    return f"Each model and quantisation {', '.join(parts)}." if parts else ""


def axis_sections(rows: Sequence[Row]) -> tuple[ChartSection, ...]:
    """One section per axis that varies among the measured rows."""
    sections = []
    for axis in panels.axes_of(rows):
        made = panels.panels(rows, axis)
        if made:
            word = axis_word(axis)
            sections.append(
                ChartSection(
                    anchor=f"axis-{axis}",
                    title=word[0].upper() + word[1:],
                    intro=f"{AXIS_DOCS[axis][0].upper()}{AXIS_DOCS[axis][1:]}."
                    if axis in AXIS_DOCS
                    else "",
                    charts=(
                        *(_panel_chart(panel) for panel in made),
                        *charts_besides_speed(rows, axis),
                    ),
                )
            )
    return tuple(sections)


def axis_findings(rows: Sequence[Row]) -> list[findings.Finding]:
    """The title of the first panel of each axis as a sentence on top of the page."""
    found = []
    for axis in panels.axes_of(rows)[:4]:
        made = panels.panels(rows, axis)
        if made:
            told = Told()
            family = told.name(shown(made[0].family, 60))
            name = f" ({family})" if len({p.family for p in made}) > 1 else ""
            text = f"{panel_titles.panel_title(made[0], told)}{name}."
            found.append(findings.finding(text, f"axis-{axis}", told))
    return found


def _panel_chart(panel: panels.Panel) -> Chart:
    rows = [point.row for series in panel.series for point in series.points]
    extra = f" Held at {', '.join(panel.fixed)}." if panel.fixed else ""
    if panel.axis == "n_depth":
        extra = depth_loss.share_words(panel) + extra
    if panel.axis == "concurrency":
        extra = stream_words.points_words(panel) + extra
        extra += stream_words.expected_words(panel)
        if marks.estimates(panel):
            extra = " Dashed ink line: what is expected." + extra
    if marks.ceilings(panel):
        extra = " Ink line: exact ceiling." + extra
    extra += in_the_table(panel.n_left_out, "other series", "other series")
    return Chart(
        title=panel_titles.panel_title(panel),
        subtitle=f"{shown(panel.family, 60)}, {kind_words(panel.kind)}, {panel.test}",
        spec=charts.panel_chart(panel),
        caption=caption(rows, "Mark") + extra,
    )


def _tick_words(rows: Sequence[Row]) -> str:
    text = " Thick tick: exact ceiling." if any(row.ceiling.value for row in rows) else ""
    if any(row.pencil_ceiling.value for row in rows):
        text += " Thin tick: pencil ceiling."
        if any(row.pencil_ceiling.value and row.kind == "tg" for row in rows):
            text += " Dashed frame: 70 to 85 % of it, as people quote it."
    return text
