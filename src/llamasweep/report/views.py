"""The whole page as plain data: what stands where and in which words. Pure; `render` only lays it out.

A section without data is None or empty and so absent from the page. New sections of a fuller report join here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import (
    feel,
    figures,
    findings,
    head,
    headline,
    llama_markdown,
    repeat,
    row_data,
    strips,
    table,
    trouble,
    trust,
    use_it,
    why,
)
from llamasweep.report.chart_section import ChartSection
from llamasweep.report.forest_section import forest_sections
from llamasweep.report.key_figures import KeyFigures, key_figures
from llamasweep.report.names import shown
from llamasweep.report.resource_sections import resource_sections
from llamasweep.report.rows import Row, rows_of
from llamasweep.report.setting_sections import setting_sections
from llamasweep.report.speed_sections import axis_findings, axis_sections, rates_section
from llamasweep.report.timeline_section import timeline_sections
from llamasweep.report.told import Told
from llamasweep.results.records import RunData

MAX_FINDINGS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """All that the template shows. headline_finding: the title with its numbers."""

    title: str
    headline_finding: findings.Finding
    key: KeyFigures
    heads: tuple[head.RunHead, ...]
    findings: tuple[findings.Finding, ...]
    hero: strips.Hero | None
    feel: feel.Feel | None
    sections: tuple[ChartSection, ...]
    why: tuple[why.RunCards, ...]
    failures: tuple[trouble.Failure, ...]
    n_failures_left_out: int
    impossible: tuple[trouble.Impossible, ...]
    trust: trust.Trust
    time_lines: tuple[ChartSection, ...]
    table: table.Table
    markdown: llama_markdown.MarkdownTable
    row_data: row_data.RowData
    use: use_it.Use | None
    repeats: tuple[repeat.Repeat, ...]
    contents: tuple[tuple[str, str], ...]
    version: str


def page(runs: Sequence[RunData]) -> Page:
    """The page of one run or of several together. Raises ValueError for none."""
    if not runs:
        raise ValueError("a report needs at least one run")
    found = why.found_in(runs)
    rows = why.with_findings(rows_of(runs), found)
    heads = tuple(
        head.head(run, [row for row in rows if row.run_id == run.info.run_id]) for run in runs
    )
    places = tuple(dict.fromkeys(one.where for one in heads))
    where = places[0] if len(places) == 1 else figures.counted(len(places), "machine")
    forest, of_builds = forest_sections(rows, runs)
    sections = _sections(rows, runs, forest)
    failed, n_left_out = trouble.failures(rows)
    impossible = trouble.impossible(rows)
    reasons = why.cards(rows, found)
    hero = strips.hero(rows)
    feeling = feel.feel(rows)
    time_lines = timeline_sections(runs)
    told = Told()
    title = headline.headline(rows, where, told)
    used = use_it.use(runs, {i: row.anchor for row in rows for i in row.attempt_ids})
    return Page(
        title=title,
        headline_finding=findings.finding(title, "ceiling", told),
        key=key_figures(runs, rows, title=title, machine=where),
        heads=heads,
        findings=_findings(rows, reasons, of_builds),
        hero=hero,
        feel=feeling,
        sections=sections,
        why=reasons,
        failures=failed,
        n_failures_left_out=n_left_out,
        impossible=impossible,
        trust=trust.trust(runs, rows),
        time_lines=time_lines,
        table=table.table(rows),
        markdown=llama_markdown.markdown_table(rows, runs[0].info.llamasweep_version),
        row_data=row_data.row_data(rows),
        use=used,
        repeats=tuple(repeat.repeat(run) for run in runs),
        contents=_contents(
            (("ceiling", "Against the ceiling", hero), ("feel", "What it feels like", feeling)),
            sections,
            (
                ("why", "Why slow", reasons),
                ("failures", "What failed", failed),
                ("impossible", "Not tried", impossible),
                ("trust", "Trust", True),
                ("timelines", "Time lines", time_lines),
                ("rows", "All rows", True),
                ("use", "Use it", used),
            ),
        ),
        version=shown(runs[0].info.llamasweep_version, 40),
    )


def _sections(
    rows: Sequence[Row], runs: Sequence[RunData], forest: tuple[ChartSection, ...]
) -> tuple[ChartSection, ...]:
    """forest: takes the place of the plain section of builds, whose rule is a coarser one."""
    taken = {section.anchor for section in forest}
    return (
        *forest,
        *rates_section(rows),
        *axis_sections(rows),
        *(section for section in setting_sections(rows) if section.anchor not in taken),
        *resource_sections(rows, runs),
    )


def _findings(
    rows: Sequence[Row],
    reasons: Sequence[why.RunCards],
    of_builds: tuple[findings.Finding, ...],
) -> tuple[findings.Finding, ...]:
    """Warnings always have their place; what was found fills the rest, builds first."""
    last = (*findings.failures(rows), *why.sentences(reasons, rows))
    of_axes = axis_findings(rows)
    first = (*of_builds, *findings.shares(rows), *findings.turns(rows), *of_axes[:2])
    first = (*first, *findings.ladder(rows), *of_axes[2:])
    return (*first[: MAX_FINDINGS - len(last)], *last)


Entry = tuple[str, str, object]
"""Anchor, title, and what the section shows; without it the section is not in the page."""


def _contents(
    first: Sequence[Entry], sections: Sequence[ChartSection], last: Sequence[Entry]
) -> tuple[tuple[str, str], ...]:
    return (
        *((anchor, title) for anchor, title, shows in first if shows),
        *((section.anchor, section.title) for section in sections),
        *((anchor, title) for anchor, title, shows in last if shows),
        ("repeat", "Repeat it"),
    )
