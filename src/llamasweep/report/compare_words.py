"""A comparison of two sides in words: the sentence at the top, what else differs, a line per cell. Values in, text out.

Knows no terminal and no file; the same words stand on the command line, in markdown, in JUnit and in the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from llamasweep.report import figures
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.results.records import Attempt
from llamasweep.stats.differences import Difference
from llamasweep.stats.judged import JudgedCell, Judgement
from llamasweep.stats.verdicts import Comparison, Verdict

KIND_WORDS = {"tg": "decode", "pp": "prefill", "pg": "prefill and decode"}
VERDICT_WORDS: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "same": "same",
    "undecided": "undecided",
    "newly_failing": "newly failing",
    "fixed": "fixed",
    "failing_on_both": "failing on both",
    "only_in_a": "only in A",
    "only_in_b": "only in B",
    "not_comparable": "not comparable",
}
REASON_WORDS = {
    "other_model_content": "the model has another content",
    "other_applied_settings": "the engine applied other settings",
    "other_machine": "another machine",
    "throttled": "the machine was throttled",
    "contaminated": "something else used the machine",
    "above_its_ceiling": "a rate above its ceiling",
    "calibration_moved": "the measured bandwidth has moved",
    "several_programs": "one side's rows are of a program that was rebuilt between them; measure again with --fresh",
    "gone_or_replaced": "a program or model was gone or replaced when its turn came",
}
_MOST_SETTINGS = 6
_HEADS = ("test", "A", "B", "change", "verdict", "rounds")


@dataclass(frozen=True, kw_only=True, slots=True)
class CellLine:
    """One cell in words. a, b: rates, or why there is none. change: with its interval, "" where there is none.

    rounds: how many, "" where nothing was compared. why: a reason or a note, None where there is none.
    """

    what: str
    a: str
    b: str
    change: str
    verdict: str
    rounds: str
    why: str | None


def percent_change(ratio: float) -> str:
    """A ratio as a change: `+6.1 %`, `−0.3 %`, `0.0 %`; two decimals where the change is below a tenth of a percent."""
    text = f"{(ratio - 1) * 100:+.1f}"
    if float(text) == 0:
        text = "0.0"
    return f"{text.replace('-', '−')}{figures.THIN}%"


def interval_words(comparison: Comparison) -> str:
    """`[−1.0, +2.0]` in percent; why there is none otherwise."""
    if comparison.low is None or comparison.high is None:
        return "[no interval: too few rounds]"
    low, high = (
        percent_change(r).rpartition(figures.THIN)[0] for r in (comparison.low, comparison.high)
    )
    return f"[{low}, {high}]"


def change_words(comparison: Comparison | None) -> str:
    """The change with its interval, "" where nothing was compared."""
    if comparison is None or comparison.ratio is None:
        return ""
    return f"{percent_change(comparison.ratio)} {interval_words(comparison)}"


def cell_words(row: Attempt) -> str:
    """A cell as people say it: model, test, depth, settings."""
    asked = [
        f"{axis_word(name)} {value_word(value)}"
        for name, value in sorted(row.requested.items())
        if value is not None and name != "n_depth"
    ]
    if len(asked) > _MOST_SETTINGS:
        asked = [*asked[:_MOST_SETTINGS], f"and {len(asked) - _MOST_SETTINGS} more settings"]
    depth = f" at depth {figures.count(row.n_depth)}" if row.n_depth else ""
    return " · ".join([shown(row.model_label, 60), f"{row.test_label}{depth}", *asked])


def cell_lines(judgement: Judgement) -> tuple[CellLine, ...]:
    """A line per cell, what matters first."""
    return tuple(_line(judged) for judged in judgement.cells)


def _line(judged: JudgedCell) -> CellLine:
    cell = judged.cell
    comparison = cell.comparison
    return CellLine(
        what=cell_words((cell.a_rows or cell.b_rows)[0]),
        a=_side_words(cell.a_rows),
        b=_side_words(cell.b_rows),
        change=change_words(comparison),
        verdict=VERDICT_WORDS[cell.verdict],
        rounds="" if comparison is None else str(comparison.n_rounds),
        why=why_words(judged),
    )


def why_words(judged: JudgedCell) -> str | None:
    """Why a cell is not comparable, failed, or is not as sure as it looks; None where there is nothing to say."""
    cell = judged.cell
    if cell.reasons:
        said = [shown(cell.why, 200)] if "gone_or_replaced" in cell.reasons and cell.why else []
        return "; ".join([*(REASON_WORDS[reason] for reason in cell.reasons), *said])
    notes = [] if cell.comparison is None else list(cell.comparison.notes)
    if cell.comparison is None and cell.why is not None:
        notes = [shown(cell.why, 200)]
    return "; ".join([*([judged.note] if judged.note else []), *notes]) or None


def _side_words(rows: Sequence[Attempt]) -> str:
    rates = [row.median_tps for row in rows if row.status == "ok" and row.median_tps is not None]
    if rates:
        return figures.rate(median(rates))
    if not rows:
        return "not asked"
    return rows[-1].status.replace("_", " ")


def table_heads(*, what: str = _HEADS[0]) -> tuple[str, ...]:
    """Heads of the table of cells."""
    return (what, *_HEADS[1:])


def line_cells(line: CellLine) -> tuple[str, ...]:
    """A line as cells under `table_heads`; an empty one as a dash."""
    return tuple(
        text or "–" for text in (line.what, line.a, line.b, line.change, line.verdict, line.rounds)
    )


def reason_lines(lines: Sequence[CellLine]) -> tuple[str, ...]:
    """Why cells are not comparable, failed or are not as sure: a line per reason; several cells of one reason as their number."""
    of_reason: dict[tuple[str, str], list[CellLine]] = {}
    for line in lines:
        if line.why:
            of_reason.setdefault((line.verdict, line.why), []).append(line)
    return tuple(
        f"{found[0].what}: {verdict}, {why}"
        if len(found) == 1
        else f"{figures.counted(len(found), 'cell')} {verdict}: {why}"
        for (verdict, why), found in of_reason.items()
    )


def difference_lines(found: Sequence[Difference]) -> tuple[str, ...]:
    """What else differs, a line each; changed defaults say that they are."""
    return tuple(
        f"{axis_word(one.name).replace('_', ' ')}: {shown(one.a, 100)} | {shown(one.b, 100)}"
        + (" (a default that changed)" if one.is_default else "")
        for one in found
    )


def headline(judgement: Judgement, a_name: str, b_name: str) -> str:
    """One sentence: what stayed the same, what is faster, what is slower, and what is not known."""
    parts = [_same_part(judgement, kind) for kind in ("tg", "pp", "pg")]
    parts += [_changed_part(judgement, verdict) for verdict in ("faster", "slower")]
    parts.append(_none_slower_part(judgement))
    counts = Counter(one.cell.verdict for one in judgement.cells)
    order: tuple[Verdict, ...] = (
        "newly_failing", "undecided", "not_comparable", "fixed", "failing_on_both", "only_in_a", "only_in_b",
    )  # fmt: skip
    parts += [
        f"{figures.counted(counts[verdict], 'cell')} {VERDICT_WORDS[verdict]}"
        for verdict in order
        if counts[verdict]
    ]
    said = "; ".join(part for part in parts if part) or "no cell that both sides have"
    return f"{shown(b_name, 60)} against {shown(a_name, 60)}: {said}."


def _none_slower_part(judgement: Judgement) -> str:
    """Said only where a cell is clear: what is undecided or was not compared is not known to be no slower."""
    if judgement.of("slower") or not judgement.of("same", "faster"):
        return ""
    return "nothing slower for sure" if judgement.of("undecided") else "nothing slower"


def _same_part(judgement: Judgement, kind: str) -> str:
    of_kind = [one for one in judgement.cells if one.cell.comparison and _kind(one) == kind]
    same = [one for one in of_kind if one.cell.verdict == "same"]
    floors = {one.cell.comparison.floor_fraction for one in same if one.cell.comparison}
    if not same:
        return ""
    within = floor_words(max(floors))
    return f"{KIND_WORDS[kind]} the same within {within} in {len(same)} of {figures.counted(len(of_kind), 'cell')}"


def floor_words(floor_fraction: float) -> str:
    """A floor as a percentage with one decimal at most."""
    return f"{floor_fraction * 100:.1f}".removesuffix(".0") + f"{figures.THIN}%"


def _changed_part(judgement: Judgement, verdict: Verdict) -> str:
    changed = [one for one in judgement.of(verdict) if one.cell.comparison]
    if not changed:
        return ""
    first = changed[0]
    comparison = first.cell.comparison
    if comparison is None or comparison.ratio is None:
        return ""
    by = percent_change(max(comparison.ratio, 2 - comparison.ratio)).lstrip("+")
    row = (first.cell.a_rows or first.cell.b_rows)[0]
    one = f"{KIND_WORDS[_kind(first)]} of {shown(row.model_label, 60)} {by} {verdict} {interval_words(comparison)}"
    if len(changed) == 1:
        return one
    return f"{figures.counted(len(changed), 'cell')} {verdict}, most of all {one}"


def _kind(judged: JudgedCell) -> str:
    return (judged.cell.a_rows or judged.cell.b_rows)[0].test_kind
