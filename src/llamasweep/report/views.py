"""The whole page as plain data: what stands where and in which words. Pure; `render` only lays it out.

A section without data is None or empty and so absent from the page. New sections of a fuller report join here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from llamasweep.report import (
    feel,
    figures,
    findings,
    headline,
    llama_markdown,
    repeat,
    row_data,
    strips,
    table,
    trouble,
    trust,
    why,
)
from llamasweep.report.chart_section import ChartSection
from llamasweep.report.names import shown
from llamasweep.report.resource_sections import resource_sections
from llamasweep.report.rows import Row, rows_of
from llamasweep.report.setting_sections import setting_sections
from llamasweep.report.speed_sections import axis_findings, axis_sections, rates_section
from llamasweep.report.timeline_section import timeline_sections
from llamasweep.results.records import RunData

MAX_FACTS = 60
MAX_FINDINGS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHead:
    """One run in a few lines. facts: everything known of the machine, flattened."""

    run_id: str
    where: str
    line: str
    outcome: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """All that the template shows."""

    title: str
    heads: tuple[RunHead, ...]
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
        _head(run, [row for row in rows if row.run_id == run.info.run_id]) for run in runs
    )
    places = tuple(dict.fromkeys(head.where for head in heads))
    where = places[0] if len(places) == 1 else figures.counted(len(places), "machine")
    sections = (
        *rates_section(rows),
        *axis_sections(rows),
        *setting_sections(rows),
        *resource_sections(rows, runs),
    )
    failed, n_left_out = trouble.failures(rows)
    impossible = trouble.impossible(rows)
    reasons = why.cards(rows, found)
    hero = strips.hero(rows)
    feeling = feel.feel(rows)
    time_lines = timeline_sections(runs)
    return Page(
        title=headline.headline(rows, where),
        heads=heads,
        findings=_findings(rows, reasons),
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
            ),
        ),
        version=shown(runs[0].info.llamasweep_version, 40),
    )


def _findings(rows: Sequence[Row], reasons: Sequence[why.RunCards]) -> tuple[findings.Finding, ...]:
    """Warnings always have their place; what was found fills the rest."""
    last = (*findings.failures(rows), *why.sentences(reasons, len(rows)))
    first = (*findings.findings(rows), *axis_findings(rows))
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
        ("rows", "All rows"),
        ("repeat", "Repeat it"),
    )


def _head(run: RunData, rows: Sequence[Row]) -> RunHead:
    measured = sum(row.rates is not None for row in rows)
    outcome = f"{figures.counted(measured, 'cell')} measured"
    rest = headline.outcome_words(rows)
    planned = run.info.n_cells_planned
    if rest:
        outcome += f", {rest}"
    if planned > len(rows):
        outcome += (
            f", {figures.count(planned - len(rows))} of {figures.count(planned)} not done yet"
        )
    return RunHead(
        run_id=shown(run.info.run_id),
        where=_where(run),
        line=_line(run),
        outcome=outcome,
        facts=tuple(_flat(run.info.machine))[:MAX_FACTS],
    )


def _where(run: RunData) -> str:
    """The device as the engine names it: the GPU for a build with one, else the processor."""
    for attempt in run.attempts:
        backends = (attempt.build_backends or "").upper()
        if attempt.gpu_name and backends not in ("", "CPU", "BLAS"):
            return _device(attempt.gpu_name)
        if attempt.cpu_name:
            return _device(attempt.cpu_name)
    cpu = run.info.machine.get("cpu_name")
    return _device(cpu) if isinstance(cpu, str) and cpu else "a machine that told no name"


def _device(name: str) -> str:
    """The maker's name without its trade marks."""
    return shown(re.sub(r"\((?:R|TM)\)", "", name), 60)


def _line(run: RunData) -> str:
    builds = dict.fromkeys(
        shown(attempt.build_label, 60) for attempt in run.attempts if attempt.build_label
    )
    parts = [f"sweep {shown(run.info.sweep_name, 80)}"]
    if builds:
        parts.append(("build " if len(builds) == 1 else "builds ") + ", ".join(builds))
    start, end = _time(run.info.started_at), _time(run.info.finished_at)
    if start is not None:
        parts.append(f"{start:%Y-%m-%d %H:%M} UTC")
    if start is not None and end is not None:
        parts.append(figures.duration(max(0.0, (end - start).total_seconds())))
    elif end is None:
        parts.append("not finished")
    return " · ".join(parts)


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _flat(facts: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested facts as `cpu.n_cores`; absent ones are said to be absent."""
    flat: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{before}{shown(str(key), 60)}"
        if isinstance(value, Mapping):
            flat += _flat(value, name + ".")
        elif isinstance(value, list | tuple):
            flat.append((name, shown(", ".join(str(item) for item in value), 200) or "none"))
        else:
            flat.append((name, "not known" if value is None else shown(str(value), 200)))
    return flat
