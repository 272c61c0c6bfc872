"""Two sides (builds of one run, two runs, a baseline) -> one row per cell with its verdict, what matters first.

Matches rows by their question and by their round; refuses what must not be compared, with the reason. Knows records;
where they are kept and how a table is drawn is not known here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.results.measured_rows import MEASURED_HERE
from llamasweep.results.records import Attempt
from llamasweep.stats.compare import compare_paired, compare_unpaired
from llamasweep.stats.differences import Difference, applied_values, differences, ways_of_asking
from llamasweep.stats.floor import default_floor
from llamasweep.stats.many import benjamini_hochberg
from llamasweep.stats.sequential import StoppingRule, decide
from llamasweep.stats.verdicts import (
    Comparison,
    NotComparableReason,
    Standing,
    Verdict,
    standing,
    standing_verdict,
)

CALIBRATION_SHARE = 0.05
"""Measured bandwidths that differ by more mean that the machine, or its calibration, has changed."""

NOTHING_RAN = frozenset({"file_changed", "not_started", "model_missing"})
"""Errors of a program or model that was gone or replaced when its turn came: they say nothing about the build."""

_ORDER: dict[Verdict, int] = {
    "newly_failing": 0,
    "slower": 1,
    "not_comparable": 2,
    "undecided": 3,
    "only_in_a": 4,
    "failing_on_both": 5,
    "only_in_b": 6,
    "fixed": 7,
    "faster": 8,
    "same": 9,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CellComparison:
    """One cell on both sides.

    comparison: None where a side has no rate or the sides must not be compared. q_value: its p-value corrected for all
    cells by Benjamini and Hochberg, None where there is none: for showing, an alarm needs the confirmation.
    reasons: why they must not, empty otherwise. why: the engine's words for a side that failed or was not tried, None
    where none are recorded. a_rows, b_rows: the attempts behind it, in order of rounds.
    """

    cell_id: str
    verdict: Verdict
    comparison: Comparison | None
    q_value: float | None = None
    reasons: tuple[NotComparableReason, ...]
    why: str | None
    a_rows: tuple[Attempt, ...]
    b_rows: tuple[Attempt, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SidesCompared:
    """All cells of two sides, what matters first, and what else differs between the cells that both have."""

    cells: tuple[CellComparison, ...]
    differences: tuple[Difference, ...]

    def of(self, verdict: Verdict) -> tuple[CellComparison, ...]:
        """Cells with this verdict."""
        return tuple(cell for cell in self.cells if cell.verdict == verdict)


def floor_by_kind(test_kind: str) -> float:
    """The default floor of a kind of test."""
    return default_floor(test_kind).floor_fraction


def compare_sides(
    a: Sequence[Attempt],
    b: Sequence[Attempt],
    *,
    floor_of_row: Callable[[Attempt], float] | None = None,
    max_rounds: int | None = None,
    is_drawn: bool = True,
    alpha: float = 0.05,
    a_facts: Mapping[str, str | None] | None = None,
    b_facts: Mapping[str, str | None] | None = None,
) -> SidesCompared:
    """Compare all attempts of two sides.

    floor_of_row: the practical floor of a row's cell as a fraction; left out, the default of its kind of test.
    max_rounds: of a measurement that was looked at after each round and stopped when clear; then the verdicts are those
    of `decide`. None: the number of rounds was fixed. is_drawn: which side came first was drawn in each round, which is
    what pairing rests on; sides are paired by round where it was and they are of one run. A model with the same name and
    another content is one cell that is not comparable. Cells that neither side tried are left out.
    """
    a_cells, b_cells = _by_cell(a), _by_cell(b)
    renamed = _other_content(a_cells, b_cells)
    cells = []
    for key in dict.fromkeys([*a_cells, *b_cells]):
        if key in renamed.values() and key not in a_cells:
            continue
        sides = a_cells.get(key, ()), b_cells.get(renamed.get(key, key), ())
        if all(_standing(rows) == "absent" for rows in sides):
            continue
        row = (sides[0] or sides[1])[0]
        rule = StoppingRule(
            floor_fraction=floor_by_kind(row.test_kind)
            if floor_of_row is None
            else floor_of_row(row),
            alpha=alpha,
            max_rounds=max_rounds or StoppingRule().max_rounds,
        )
        how: _How = "unpaired" if not is_drawn else "paired" if max_rounds is None else "sequential"
        cells.append(_cell(key, sides, rule, how))
    mine, theirs = _measured_on_both(cells)
    return SidesCompared(
        cells=tuple(sorted(_with_q_values(cells), key=_importance)),
        differences=differences(mine, theirs, a_facts, b_facts),
    )


def _measured_on_both(cells: Sequence[CellComparison]) -> tuple[list[Attempt], list[Attempt]]:
    """Rows of both sides from cells that both measured: what only one side measured says nothing of the other."""
    found: tuple[list[Attempt], list[Attempt]] = ([], [])
    for cell in cells:
        sides = [[r for r in rows if r.status == "ok"] for rows in (cell.a_rows, cell.b_rows)]
        if all(sides):
            found[0].extend(sides[0])
            found[1].extend(sides[1])
    return found


def _with_q_values(cells: Sequence[CellComparison]) -> list[CellComparison]:
    p_values = {
        index: cell.comparison.p_value
        for index, cell in enumerate(cells)
        if cell.comparison is not None and cell.comparison.p_value is not None
    }
    q_values = dict(zip(p_values, benjamini_hochberg(list(p_values.values())), strict=True))
    return [replace(cell, q_value=q_values.get(index)) for index, cell in enumerate(cells)]


def _by_cell(rows: Sequence[Attempt]) -> dict[str, tuple[Attempt, ...]]:
    cells: dict[str, list[Attempt]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r.round_index, r.attempt_index)):
        cells[row.cell_id].append(row)
    return {key: tuple(found) for key, found in cells.items()}


def _question(row: Attempt) -> tuple[object, ...]:
    """What a cell asks, apart from the content of the model."""
    asked = tuple(sorted((n, str(v)) for n, v in row.requested.items() if v is not None))
    return (row.engine, row.model_label, row.test_label, row.n_depth, asked)


def _other_content(
    a: Mapping[str, tuple[Attempt, ...]], b: Mapping[str, tuple[Attempt, ...]]
) -> dict[str, str]:
    """Cell of a -> cell of b that asks the same of a model with another content."""
    theirs = {_question(rows[0]): key for key, rows in b.items() if key not in a}
    return {
        key: theirs[question]
        for key, rows in a.items()
        if key not in b and (question := _question(rows[0])) in theirs
    }


def _standing(rows: Sequence[Attempt]) -> Standing:
    """Attempts that the engine could not be asked for, or that were left out, are absent."""
    tried = [row for row in rows if row.status not in ("unsupported", "skipped")]
    ran = [row for row in tried if row.error_kind not in NOTHING_RAN]
    if tried and not ran:
        return "lost"
    return standing([row.status == "ok" and row.median_tps is not None for row in ran])


_How = Literal["sequential", "paired", "unpaired"]


def _cell(
    key: str,
    sides: tuple[tuple[Attempt, ...], tuple[Attempt, ...]],
    rule: StoppingRule,
    how: _How,
) -> CellComparison:
    a, b = sides
    stand_a, stand_b = _standing(a), _standing(b)
    comparison: Comparison | None = None
    reasons: tuple[NotComparableReason, ...] = ()
    verdict = standing_verdict(stand_a, stand_b)
    if verdict is None:
        a_ok, b_ok = [[row for row in side if row.status == "ok"] for side in sides]
        reasons = not_comparable(a_ok, b_ok)
        comparison = None if reasons else _noted(_compared(a, b, rule, how), (a_ok, b_ok))
        verdict = "not_comparable" if comparison is None else comparison.verdict
    elif verdict == "not_comparable":
        reasons = ("gone_or_replaced",)
    is_lost = "gone_or_replaced" in reasons
    told = [row for row in (*b, *a) if not is_lost or row.error_kind in NOTHING_RAN]
    said = (row.error_message for row in told if row.error_message)
    return CellComparison(
        cell_id=key,
        verdict=verdict,
        comparison=comparison,
        reasons=reasons,
        why=next(said, None),
        a_rows=a,
        b_rows=b,
    )


def not_comparable(a: Sequence[Attempt], b: Sequence[Attempt]) -> tuple[NotComparableReason, ...]:
    """Why measured rows of one cell must not be compared; () where they may. What one side does not know is no reason."""
    found: list[NotComparableReason] = []
    if _differ(a, b, "model_hash"):
        found.append("other_model_content")
    asked = sorted({n for row in (*a, *b) for n, v in row.requested.items() if v is not None})
    is_other_way = _both_differ(ways_of_asking(a), ways_of_asking(b))
    if is_other_way or any(_both_differ(applied_values(a, n), applied_values(b, n)) for n in asked):
        found.append("other_applied_settings")
    if _differ(a, b, "machine_fingerprint"):
        found.append("other_machine")
    flags = {flag for row in (*a, *b) for flag in row.flags}
    if "throttled" in flags:
        found.append("throttled")
    if "contaminated_memory" in flags:
        found.append("contaminated")
    if any(len({row.build_hash for row in side} - {None}) > 1 for side in (a, b)):
        found.append("several_programs")
    if any(_is_above_ceiling(side) for side in (a, b)):
        found.append("above_its_ceiling")
    if _has_calibration_moved(a, b):
        found.append("calibration_moved")
    return tuple(found)


def _differ(a: Sequence[Attempt], b: Sequence[Attempt], name: str) -> bool:
    sides = [{getattr(row, name) for row in side} - {None} for side in (a, b)]
    return bool(sides[0] and sides[1] and sides[0] != sides[1])


def _both_differ(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    return bool(mine and theirs and mine != theirs)


def _ceiling_fractions(rows: Sequence[Attempt]) -> list[float]:
    """Shares of a ceiling that is a bound, one a round."""
    return [
        row.ceiling_fraction
        for row in rows
        if row.ceiling_fraction is not None and not row.ceiling_is_reference
    ]


def _is_above_ceiling(rows: Sequence[Attempt]) -> bool:
    """Whether the median of a side's rounds lies above.

    One round may: the ceiling rests on a measured bandwidth, and a clock that is high for a second passes it without an
    assumption being wrong. The estimate is a median, too, which such a round hardly moves; it is told in a note.
    """
    fractions = _ceiling_fractions(rows)
    return bool(fractions) and median(fractions) > BROKEN_ABOVE


def _noted(comparison: Comparison, sides: Sequence[Sequence[Attempt]]) -> Comparison:
    """The comparison with a note on rounds that lie above their ceiling and are no reason to refuse it."""
    above = [sum(f > BROKEN_ABOVE for f in _ceiling_fractions(rows)) for rows in sides]
    told = [
        f"{n} of {len(rows)} rounds of {name} above the ceiling"
        for n, rows, name in zip(above, sides, "ab", strict=True)
        if n
    ]
    return replace(comparison, notes=(*comparison.notes, *told)) if told else comparison


def _has_calibration_moved(a: Sequence[Attempt], b: Sequence[Attempt]) -> bool:
    sides = [
        {
            row.ceiling_bandwidth_bytes_per_s
            for row in side
            if row.ceiling_bandwidth_bytes_per_s is not None
            and (row.ceiling_bandwidth_source or "").startswith(MEASURED_HERE)
        }
        for side in (a, b)
    ]
    if not sides[0] or not sides[1]:
        return False
    values = sides[0] | sides[1]
    return max(values) > (1 + CALIBRATION_SHARE) * min(values)


def _compared(
    a: Sequence[Attempt], b: Sequence[Attempt], rule: StoppingRule, how: _How
) -> Comparison:
    floor_fraction, alpha = rule.floor_fraction, rule.alpha
    if how == "unpaired" or not ({row.run_id for row in a} & {row.run_id for row in b}):
        return compare_unpaired(
            [row.median_tps for row in a],
            [row.median_tps for row in b],
            floor_fraction=floor_fraction,
            alpha=alpha,
        )
    mine, theirs = _by_round(a), _by_round(b)
    rounds = sorted(mine.keys() | theirs.keys())
    a_tps, b_tps = [mine.get(r) for r in rounds], [theirs.get(r) for r in rounds]
    if how == "sequential":
        return decide(a_tps, b_tps, rule).comparison
    return compare_paired(a_tps, b_tps, floor_fraction=floor_fraction, alpha=alpha)


def _by_round(rows: Sequence[Attempt]) -> dict[tuple[str, int], float]:
    """Median rate of each round; of several tries in one round the last that has a rate."""
    return {
        (row.run_id, row.round_index): row.median_tps
        for row in rows
        if row.status == "ok" and row.median_tps is not None
    }


def _importance(cell: CellComparison) -> tuple[int, float, str]:
    """What matters most first; of changes the larger first."""
    ratio = None if cell.comparison is None else cell.comparison.ratio
    size = 0.0 if ratio is None else (ratio if cell.verdict == "slower" else -ratio)
    return (_ORDER[cell.verdict], size, cell.cell_id)
