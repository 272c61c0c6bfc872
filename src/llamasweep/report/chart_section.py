"""A chart with its words, and several of them under one heading: what `views` puts in the page. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llamasweep.report import charts, figures
from llamasweep.report.rows import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A small chart: what it shows in a sentence, the specification, and how to read it."""

    title: str
    subtitle: str
    spec: dict[str, Any]
    caption: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChartSection:
    """Charts under one heading. anchor: id in the page. intro: one sentence, '' if none."""

    anchor: str
    title: str
    intro: str
    charts: tuple[Chart, ...]


def kind_words(kind: str) -> str:
    """`generation (tg)`."""
    return {"tg": "generation (tg)", "pp": "prompt reading (pp)"}.get(kind, kind)


def in_the_table(n_left_out: int, one: str, many: str | None = None) -> str:
    """What a chart leaves out, as a sentence behind its caption; '' for nothing. one: `more row`."""
    return f" {figures.counted(n_left_out, one, many)} in the table." if n_left_out else ""


def caption(rows: Sequence[Row], mark: str, *, has_dots: bool | None = None) -> str:
    """How to read marks of measured rows: what they are, of how many repetitions. has_dots: whether each is drawn."""
    counts = sorted({row.rates.n_kept for row in rows if row.rates is not None})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    text = f"{mark}: median of n = {n}."
    if counts[-1] > 1:
        text += " Line: fastest to slowest."
    if charts.has_dots(rows) if has_dots is None else has_dots:
        return text + " Dots: each repetition."
    return text + " Repetitions are not drawn one by one here; see samples.parquet."
