"""Sides compared -> which changes may be called changes: corrected for many cells, or confirmed on fresh rounds.

A sweep that stopped each cell when it was clear (`rounds: auto`) keeps its first rounds below `FIRST_ROUNDS`; what lies at or
above it is fresh and confirms. Knows rows; where they are kept is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from llamasweep.results.records import FAILED_STATUSES, Attempt
from llamasweep.stats.cells import NOTHING_RAN, CellComparison, SidesCompared, compare_sides
from llamasweep.stats.confirm import Candidate, Confirmation, confirm, confirmation_rounds, is_clear
from llamasweep.stats.differences import Difference
from llamasweep.stats.many import holm
from llamasweep.stats.verdicts import Comparison, Direction, Verdict
from llamasweep.sweep.spec import AUTO_FIRST_ROUNDS

FIRST_ROUNDS = AUTO_FIRST_ROUNDS
"""Rounds from this index on confirm a change and have no part in finding it."""

SURE_FAILURES = frozenset({"unknown_architecture", "needs_flash_attn", "head_size", "bad_argument"})
"""Errors with which a build refuses the question itself: another try cannot end otherwise."""

FloorOf = Callable[[Attempt], float]
"""The practical floor of a row's cell as a fraction."""

_CHANGES: dict[Verdict, Direction] = {"faster": "faster", "slower": "slower"}


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedCell:
    """A cell as it may be told.

    cell: its verdict is the corrected one, its comparison the one to quote, its rows those that this was made of.
    is_official: whether the change is sure enough to raise an alarm. note: why the first verdict does not hold, or how
    much was measured; None where there is nothing to say.
    """

    cell: CellComparison
    is_official: bool
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """All cells, what matters first, and what else differs between the sides."""

    cells: tuple[JudgedCell, ...]
    differences: tuple[Difference, ...]

    def of(self, *verdicts: Verdict) -> tuple[JudgedCell, ...]:
        """Cells with one of these verdicts."""
        return tuple(judged for judged in self.cells if judged.cell.verdict in verdicts)

    @property
    def alarms(self) -> tuple[JudgedCell, ...]:
        """Cells that are officially slower or newly failing."""
        return tuple(judged for judged in self.of("slower", "newly_failing") if judged.is_official)


def judge(
    a: Sequence[Attempt],
    b: Sequence[Attempt],
    *,
    is_auto: bool = False,
    is_drawn: bool = True,
    floor_of_row: FloorOf | None = None,
    alpha: float = 0.05,
    a_facts: Mapping[str, str | None] | None = None,
    b_facts: Mapping[str, str | None] | None = None,
) -> Judgement:
    """Compare two sides and keep what holds over all of their cells.

    is_auto: each cell was looked at after each round; changes are official once fresh rounds confirm them. Otherwise the
    number of rounds was fixed: changes are shown where Benjamini–Hochberg keeps them at alpha, official where Holm does.
    is_drawn: as for `compare_sides`.
    """
    first_a, first_b = (_first(a), _first(b)) if is_auto else (a, b)
    sides = compare_sides(
        first_a,
        first_b,
        floor_of_row=floor_of_row,
        max_rounds=FIRST_ROUNDS if is_auto else None,
        is_drawn=is_drawn,
        alpha=alpha,
        a_facts=a_facts,
        b_facts=b_facts,
    )
    judged = _confirmed(sides, a, b, alpha) if is_auto else _corrected(sides, alpha)
    places = {cell.cell_id: place for place, cell in enumerate(sides.cells)}
    order = sorted(judged, key=lambda one: (_rank(one), places[one.cell.cell_id]))
    return Judgement(cells=tuple(order), differences=sides.differences)


def fresh_rounds_wanted(sides: SidesCompared, alpha: float = 0.05) -> dict[str, int]:
    """cell_id -> fresh rounds that the cells whose first rounds show a change need."""
    changed = [cell for cell in sides.cells if cell.verdict in _CHANGES and cell.comparison]
    return {
        cell.cell_id: confirmation_rounds(
            len(changed), is_clear=is_clear(cell.comparison), alpha=alpha
        )
        for cell in changed
        if cell.comparison is not None
    }


def paired_rates(
    a: Sequence[Attempt], b: Sequence[Attempt], cell_id: str
) -> tuple[list[float | None], list[float | None]]:
    """Rates of one cell by round on both sides, None for a side that has none; rounds of either side count."""
    mine, theirs = _rates(a, cell_id), _rates(b, cell_id)
    rounds = sorted(mine.keys() | theirs.keys())
    return [mine.get(r) for r in rounds], [theirs.get(r) for r in rounds]


def _first(rows: Sequence[Attempt]) -> list[Attempt]:
    return [row for row in rows if row.round_index < FIRST_ROUNDS]


def _fresh(rows: Sequence[Attempt]) -> list[Attempt]:
    return [row for row in rows if row.round_index >= FIRST_ROUNDS]


def _rates(rows: Sequence[Attempt], cell_id: str) -> dict[tuple[str, int], float | None]:
    found: dict[tuple[str, int], float | None] = {}
    for row in sorted(rows, key=lambda r: r.attempt_index):
        if row.cell_id == cell_id:
            rate = row.median_tps if row.status == "ok" else None
            key = (row.run_id, row.round_index)
            found[key] = rate if rate is not None else found.get(key)
    return found


def _rank(judged: JudgedCell) -> int:
    """Cells that were changes and no longer are stand with the undecided."""
    order: tuple[Verdict, ...] = (
        "newly_failing", "slower", "not_comparable", "undecided", "only_in_a", "failing_on_both", "only_in_b",
        "fixed", "faster", "same",
    )  # fmt: skip
    return order.index(judged.cell.verdict)


def _confirmed(
    sides: SidesCompared, a: Sequence[Attempt], b: Sequence[Attempt], alpha: float
) -> list[JudgedCell]:
    wanted = fresh_rounds_wanted(sides, alpha)
    fresh_a, fresh_b = _fresh(a), _fresh(b)
    candidates: dict[str, Candidate] = {}
    measured: dict[str, int] = {}
    for cell in sides.cells:
        if cell.cell_id in wanted and cell.comparison is not None:
            a_tps, b_tps = paired_rates(fresh_a, fresh_b, cell.cell_id)
            n = wanted[cell.cell_id]
            measured[cell.cell_id] = len(a_tps)
            is_whole = len(a_tps) >= n
            candidates[cell.cell_id] = Candidate(
                direction=_CHANGES[cell.verdict],
                a_tps=a_tps[:n] if is_whole else [],
                b_tps=b_tps[:n] if is_whole else [],
                floor_fraction=cell.comparison.floor_fraction,
            )
    found = confirm(candidates, alpha=alpha)
    judged = []
    for cell in sides.cells:
        if cell.cell_id not in found:
            judged.append(_without_change(cell))
            continue
        n_measured, n_wanted = measured[cell.cell_id], wanted[cell.cell_id]
        is_whole = n_measured >= n_wanted
        told = _with_rows_of(cell, fresh_a, fresh_b, n_wanted) if is_whole else cell
        judged.append(_with_fresh(told, found[cell.cell_id], n_measured, n_wanted))
    return judged


def _with_rows_of(
    cell: CellComparison, a: Sequence[Attempt], b: Sequence[Attempt], n_rounds: int
) -> CellComparison:
    """The cell with the rows of its first rounds of these, so that rates told beside a change are those it was made of."""
    of_a, of_b = ([row for row in rows if row.cell_id == cell.cell_id] for rows in (a, b))
    rounds = set(sorted({(row.run_id, row.round_index) for row in (*of_a, *of_b)})[:n_rounds])
    a_rows, b_rows = (
        tuple(row for row in rows if (row.run_id, row.round_index) in rounds)
        for rows in (of_a, of_b)
    )
    return replace(cell, a_rows=a_rows, b_rows=b_rows)


def _with_fresh(
    cell: CellComparison, found: Confirmation, n_measured: int, n_wanted: int
) -> JudgedCell:
    first = _change_words(cell.comparison)
    if n_measured < n_wanted:
        note = (
            f"{first} in the first rounds; {n_measured} of {n_wanted} fresh rounds are measured, "
            "so it is not confirmed"
        )
        return JudgedCell(cell=replace(cell, verdict="undecided"), is_official=False, note=note)
    if not found.is_confirmed:
        note = f"{first} in the first rounds was not confirmed by {n_measured} fresh ones"
        return JudgedCell(
            cell=replace(cell, verdict="undecided", comparison=found.comparison),
            is_official=False,
            note=note,
        )
    return JudgedCell(
        cell=replace(cell, comparison=found.comparison),
        is_official=True,
        note=f"confirmed by {found.comparison.n_rounds} fresh rounds",
    )


def _without_change(cell: CellComparison) -> JudgedCell:
    """A cell that is neither slower nor faster; of these only one that fails anew for sure is an alarm."""
    if cell.verdict != "newly_failing":
        return JudgedCell(cell=cell, is_official=False)
    doubt = _failure_doubt(cell)
    return JudgedCell(cell=cell, is_official=doubt is None, note=doubt)


def _failure_doubt(cell: CellComparison) -> str | None:
    """Why a failure may be an accident, None where it is sure.

    A process may die of what has nothing to do with its build: memory that another one took, a full disk, a user's
    signal. So it takes two tries of B, each a process of its own (another round, or `--retry-failed`), or an error that
    depends on nothing but the question; and A must not have failed at times as well. Where nothing ran is no try.
    """
    failed, a_failed = (
        [r for r in rows if r.status in FAILED_STATUSES and r.error_kind not in NOTHING_RAN]
        for rows in (cell.b_rows, cell.a_rows)
    )
    n_a_failed = len(a_failed)
    if n_a_failed:
        return f"A failed in {n_a_failed} of {len(cell.a_rows)} tries as well, so it may be nothing new"
    if len(failed) > 1 or any(row.error_kind in SURE_FAILURES for row in failed):
        return None
    return "failed once only: a second try (another round, or --retry-failed) makes it sure"


def _change_words(comparison: Comparison | None) -> str:
    if comparison is None or comparison.ratio is None:
        return "a change"
    return f"{comparison.ratio - 1:+.1%}".replace("-", "−").replace("%", " %")


def _corrected(sides: SidesCompared, alpha: float) -> list[JudgedCell]:
    tested = {
        cell.cell_id: cell.comparison.p_value
        for cell in sides.cells
        if cell.comparison is not None and cell.comparison.p_value is not None
    }
    sure = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [_after_correction(cell, tested, sure, alpha) for cell in sides.cells]


def _after_correction(
    cell: CellComparison,
    tested: Mapping[str, float],
    sure: Mapping[str, float],
    alpha: float,
) -> JudgedCell:
    key = cell.cell_id
    if cell.verdict not in _CHANGES or key not in tested:
        return _without_change(cell)
    if cell.q_value is not None and cell.q_value > alpha:
        note = (
            f"{_change_words(cell.comparison)} with p = {tested[key]:.2g} alone, which is "
            f"{cell.q_value:.2g} among {len(tested)} cells: more rounds are needed"
        )
        return JudgedCell(cell=replace(cell, verdict="undecided"), is_official=False, note=note)
    is_sure = sure[key] <= alpha
    doubt = (
        None
        if is_sure
        else f"p = {sure[key]:.2g} after Holm's correction for {len(tested)} cells: too little to stop a gate"
    )
    return JudgedCell(cell=cell, is_official=is_sure, note=doubt)
