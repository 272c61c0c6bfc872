"""A comparison for other programs: markdown for a pull request, JUnit for a CI server, plain JSON values. Values in, text out."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

from llamasweep.report import figures
from llamasweep.report.compare_words import (
    CellLine,
    cell_lines,
    cell_words,
    difference_lines,
    headline,
    line_cells,
    reason_lines,
    table_heads,
    why_words,
)
from llamasweep.report.markdown_text import markdown_text
from llamasweep.report.names import shown
from llamasweep.results.records import Attempt
from llamasweep.stats.judged import JudgedCell, Judgement

MOST_MARKDOWN_CELLS = 5
MOST_MARKDOWN_DIFFERENCES = 3
MOST_MARKDOWN_REASONS = 5
_MOST_XML_CHARACTERS = 1_000


def markdown_summary(judgement: Judgement, a_name: str, b_name: str, note: str | None) -> str:
    """Some ten lines: what else differs, the sentence, and the cells that matter most; all that are not the same first."""
    parts = []
    told = difference_lines(judgement.differences)
    if told:
        lines = [f"- {markdown_text(line)}" for line in told[:MOST_MARKDOWN_DIFFERENCES]]
        if len(told) > MOST_MARKDOWN_DIFFERENCES:
            lines.append(
                f"- {figures.counted(len(told) - MOST_MARKDOWN_DIFFERENCES, 'more difference')}"
            )
        parts.append("What else differs (A | B):\n\n" + "\n".join(lines))
    parts.append(f"**{markdown_text(headline(judgement, a_name, b_name))}**")
    lines_of_cells = cell_lines(judgement)
    if lines_of_cells:
        parts.append(_markdown_table(lines_of_cells))
    parts += _markdown_reasons(reason_lines(lines_of_cells))
    if note:
        parts.append(markdown_text(note))
    return "\n\n".join(parts) + "\n"


def _markdown_reasons(reasons: Sequence[str]) -> list[str]:
    if not reasons:
        return []
    lines = [f"- {markdown_text(text)}" for text in reasons[:MOST_MARKDOWN_REASONS]]
    if len(reasons) > MOST_MARKDOWN_REASONS:
        lines.append(f"- {figures.counted(len(reasons) - MOST_MARKDOWN_REASONS, 'more reason')}")
    return ["\n".join(lines)]


def _markdown_table(lines: Sequence[CellLine]) -> str:
    heads = table_heads()
    rows = [
        "| " + " | ".join(markdown_text(cell) for cell in line_cells(line)) + " |"
        for line in lines[:MOST_MARKDOWN_CELLS]
    ]
    text = "\n".join(["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads), *rows])
    left_out = len(lines) - MOST_MARKDOWN_CELLS
    return (
        text
        if left_out <= 0
        else f"{text}\n\n{figures.counted(left_out, 'more cell')} below these in importance."
    )


def junit_xml(judgement: Judgement, a_name: str, b_name: str, *, is_strict: bool) -> str:
    """One test case per cell: a failure where it is officially slower or newly failing, skipped where nothing can be said.

    is_strict: what is undecided or not comparable is a failure as well.
    """
    alarms = {judged.cell.cell_id for judged in judgement.alarms}
    lines = zip(judgement.cells, cell_lines(judgement), strict=True)
    cases = [_case(judged, line, alarms, is_strict=is_strict) for judged, line in lines]
    suite = ET.Element(
        "testsuite",
        name=f"{_xml_text(b_name)} against {_xml_text(a_name)}",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors="0",
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
    )
    suite.extend(cases)
    ET.indent(suite)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"
    )


def _case(judged: JudgedCell, line: CellLine, alarms: set[str], *, is_strict: bool) -> ET.Element:
    case = ET.Element("testcase", classname="llamasweep.compare", name=_xml_text(line.what))
    message = " ".join(part for part in (line.verdict, line.change) if part)
    why = _xml_text(line.why or message)
    if judged.cell.cell_id in alarms or (is_strict and is_open(judged)):
        ET.SubElement(case, "failure", message=message).text = why
    elif judged.cell.verdict not in ("same", "faster", "fixed"):
        ET.SubElement(case, "skipped", message=why)
    ET.SubElement(case, "system-out").text = f"A {line.a}, B {line.b}, {message}"
    return case


def _xml_text(text: str) -> str:
    """Text from outside without characters that no XML file may hold: those are shown escaped."""
    return shown(text, _MOST_XML_CHARACTERS)


def is_open(judged: JudgedCell) -> bool:
    """Whether nothing sure can be said: undecided, not comparable, or not sure enough for an alarm."""
    verdict = judged.cell.verdict
    return verdict in ("undecided", "not_comparable") or (
        verdict in ("slower", "newly_failing") and not judged.is_official
    )


def plain_comparison(judgement: Judgement, a_name: str, b_name: str) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        "a": a_name,
        "b": b_name,
        "headline": headline(judgement, a_name, b_name).replace(figures.THIN, " "),
        "differences": [
            {"name": one.name, "a": one.a, "b": one.b, "is_default": one.is_default}
            for one in judgement.differences
        ],
        "cells": [_plain_cell(judged) for judged in judgement.cells],
    }


def _plain_cell(judged: JudgedCell) -> dict[str, Any]:
    cell = judged.cell
    row = (cell.a_rows or cell.b_rows)[0]
    comparison = cell.comparison
    why = why_words(judged)
    return {
        "cell_id": cell.cell_id,
        "what": cell_words(row).replace(figures.THIN, " "),
        "model": row.model_label,
        "test": row.test_label,
        "n_depth": row.n_depth,
        "settings": {n: v for n, v in row.requested.items() if v is not None},
        "verdict": cell.verdict,
        "is_official": judged.is_official,
        "a_tps": _rates(cell.a_rows),
        "b_tps": _rates(cell.b_rows),
        "ratio": None if comparison is None else comparison.ratio,
        "low": None if comparison is None else comparison.low,
        "high": None if comparison is None else comparison.high,
        "p_value": None if comparison is None else comparison.p_value,
        "n_rounds": None if comparison is None else comparison.n_rounds,
        "n_dropped": None if comparison is None else comparison.n_dropped,
        "floor_fraction": None if comparison is None else comparison.floor_fraction,
        "evidence": None if comparison is None else comparison.evidence,
        "reasons": list(cell.reasons),
        "why": None if why is None else why.replace(figures.THIN, " "),
    }


def _rates(rows: Sequence[Attempt]) -> list[float]:
    return [row.median_tps for row in rows if row.status == "ok" and row.median_tps is not None]
