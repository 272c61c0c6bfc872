"""Two builds of one run as a forest: the change of each cell with its interval, the floor, and the pairs behind it.

Rows in, plain data out. The floors are those that the machine had when the run was made, else the defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.compare_words import (
    VERDICT_WORDS,
    cell_words,
    change_words,
    difference_lines,
    floor_words,
    headline,
    why_words,
)
from llamasweep.report.names import shown
from llamasweep.report.rows import Row
from llamasweep.results.records import Attempt, RunData
from llamasweep.stats.floor import default_floor, size_class
from llamasweep.stats.judged import JudgedCell, Judgement, judge, paired_rates
from llamasweep.stats.verdicts import Verdict

MAX_LINES = 24
MAX_PAIRS = 40
MAX_OTHERS = 4
LEAST_ROUNDS = 6
"""Below these no interval of 95 % is possible, and bars of both builds say as much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForestLine:
    """One cell. ratio, low, high, pairs: b ÷ a; floor_fraction: beyond it a change counts. rows: of the page.

    words: the change and verdict in words.
    """

    name: str
    kind: str
    verdict: Verdict
    is_official: bool
    ratio: float
    low: float
    high: float
    floor_fraction: float
    pairs: tuple[float, ...]
    rows: tuple[Row, ...]
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Forest:
    """Two builds of a run. sentence: what stayed, what changed. differs: what else is not the same, a line each.

    others: cells that have no interval, with the reason, a line each. n_left_out: lines and others beyond the bounds.
    """

    a: str
    b: str
    sentence: str
    differs: tuple[str, ...]
    lines: tuple[ForestLine, ...]
    others: tuple[str, ...]
    n_left_out: int


def forests(rows: Sequence[Row], runs: Sequence[RunData]) -> tuple[Forest, ...]:
    """One for each run that measured two builds in enough rounds."""
    found = (_forest(run, rows) for run in runs)
    return tuple(forest for forest in found if forest is not None)


def _forest(run: RunData, rows: Sequence[Row]) -> Forest | None:
    labels = tuple(dict.fromkeys(a.build_label for a in run.attempts if a.build_label))
    n_rounds = len({a.round_index for a in run.attempts})
    if len(labels) != 2 or n_rounds < LEAST_ROUNDS:
        return None
    ordered = _in_order_of_run(labels, run)
    a, b = ([row for row in run.attempts if row.build_label == label] for label in ordered)
    is_auto = run.info.sweep_resolved.get("rounds") == "auto"
    judgement = judge(
        a,
        b,
        is_auto=is_auto,
        is_drawn=is_auto or run.info.sweep_resolved.get("order") == "interleaved",
        floor_of_row=_floor_finder(run.info.machine.get("floors")),
    )
    lines = [line for one in judgement.cells if (line := _line(one, rows)) is not None]
    if not lines:
        return None
    others = _others(judgement)
    return Forest(
        a=ordered[0],
        b=ordered[1],
        sentence=headline(judgement, ordered[0], ordered[1]),
        differs=difference_lines(judgement.differences),
        lines=tuple(lines[:MAX_LINES]),
        others=tuple(others[:MAX_OTHERS]),
        n_left_out=max(0, len(lines) - MAX_LINES) + max(0, len(others) - MAX_OTHERS),
    )


def _in_order_of_run(labels: tuple[str, ...], run: RunData) -> list[str]:
    """As the run names them; by turns they come in an order that was drawn."""
    named = [build.get("label") for build in run.info.builds]
    return sorted(labels, key=lambda label: named.index(label) if label in named else len(named))


def _floor_finder(known: object) -> Callable[[Attempt], float]:
    floors = known if isinstance(known, Mapping) else {}

    def floor_of_row(row: Attempt) -> float:
        size = row.model_size_bytes
        value = floors.get(f"{row.test_kind}:{size_class(size)}") if size and size > 0 else None
        if isinstance(value, float) and 0 < value < 1:
            return value
        return default_floor(row.test_kind).floor_fraction

    return floor_of_row


def _line(judged: JudgedCell, rows: Sequence[Row]) -> ForestLine | None:
    cell = judged.cell
    found = cell.comparison
    if found is None or found.ratio is None or found.low is None or found.high is None:
        return None
    first = (cell.a_rows or cell.b_rows)[0]
    mine = [
        row for row in rows if row.run_id == first.run_id and row.attempt.cell_id == cell.cell_id
    ]
    return ForestLine(
        name=cell_words(first),
        kind=first.test_kind,
        verdict=cell.verdict,
        is_official=judged.is_official,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        floor_fraction=found.floor_fraction,
        pairs=_pairs(judged),
        rows=tuple(mine),
        words=f"{cell_words(first)}: {change_words(found)}, {VERDICT_WORDS[cell.verdict]} "
        f"(floor {floor_words(found.floor_fraction)}, {figures.counted(found.n_rounds, 'round')})",
    )


def _pairs(judged: JudgedCell) -> tuple[float, ...]:
    cell = judged.cell
    a_tps, b_tps = paired_rates(cell.a_rows, cell.b_rows, cell.cell_id)
    ratios = [b / a for a, b in zip(a_tps, b_tps, strict=True) if a and b and a > 0 and b > 0]
    return tuple(ratio for ratio in ratios if math.isfinite(ratio))[:MAX_PAIRS]


def _others(judgement: Judgement) -> list[str]:
    """Cells without an interval, in words; those where nothing can be said stand with their reason."""
    told = []
    for one in judgement.cells:
        found = one.cell.comparison
        if found is None or found.low is None:
            first = (one.cell.a_rows or one.cell.b_rows)[0]
            why = why_words(one)
            told.append(
                f"{cell_words(first)}: {VERDICT_WORDS[one.cell.verdict]}"
                + (f" ({shown(why, 160)})" if why else "")
            )
    return told
