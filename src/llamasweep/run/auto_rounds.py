"""`rounds: auto`: which cells of two builds need another round, from the rows that are there alone, so that it resumes.

Cells leave as soon as they are clear; those with a change come back for fresh rounds that confirm it. What a round costs
and who measures it is not known here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from llamasweep.results.records import FAILED_STATUSES, Attempt
from llamasweep.run.progress import CellStand, CellState
from llamasweep.run.round_table import rate_of
from llamasweep.stats.compare import compare_paired
from llamasweep.stats.confirm import confirmation_rounds, is_clear
from llamasweep.stats.floor import LEAST_FLOOR_FRACTION
from llamasweep.stats.judged import FIRST_ROUNDS, FloorOf
from llamasweep.stats.sequential import Decision, StoppingRule, decide
from llamasweep.stats.verdicts import Comparison

MOST_TOLD = 4


class RoundChooser(Protocol):
    """Who decides, while a run goes on, which of its cells are measured in a round."""

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Take note of rows that are there now."""

    def wants(self, cell_id: str, round_index: int) -> bool:
        """Whether this cell is to be measured in this round, on every build."""

    def standing_lines(self, round_index: int) -> list[str]:
        """Sentences on where the cells stand before this round."""


@runtime_checkable
class StandTeller(Protocol):
    """A chooser that can tell where each cell stands at any time."""

    def stands(self) -> tuple[CellStand, ...]:
        """Cells that have a row, in the order in which they came."""


@dataclass(slots=True)
class AutoRounds:
    """Two builds measured until each cell is clear.

    a_label, b_label: of the builds. floor_of_row: the practical floor of a row's cell.
    """

    a_label: str
    b_label: str
    floor_of_row: FloorOf
    _rows: dict[str, dict[str, dict[int, Attempt]]] = field(default_factory=dict)
    _closed: dict[str, int] = field(default_factory=dict)
    _asked: dict[tuple[str, int], bool] = field(default_factory=dict)
    _fresh_wanted: dict[str, int] | None = None
    _stands: dict[str, CellStand] = field(default_factory=dict)
    """Made anew for a cell that got a row: a decision takes some 10 ms, and is asked for twice a second."""

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Take note of rows that are there now."""
        for row in attempts:
            self._stands.pop(row.cell_id, None)
            sides = self._rows.setdefault(row.cell_id, defaultdict(dict))
            before = sides[row.build_label or ""].get(row.round_index)
            if before is None or rate_of(row) is not None or rate_of(before) is None:
                sides[row.build_label or ""][row.round_index] = row

    def wants(self, cell_id: str, round_index: int) -> bool:
        """Whether this cell is to be measured in this round; the same answer for both builds, whenever it is asked.

        Only rounds before this one count, so that half a round that a kill left does not.
        """
        key = (cell_id, round_index)
        if key not in self._asked:
            self._asked[key] = self._wants(cell_id, round_index)
        return self._asked[key]

    def _wants(self, cell_id: str, round_index: int) -> bool:
        if round_index >= FIRST_ROUNDS:
            return round_index - FIRST_ROUNDS < self._fresh().get(cell_id, 0)
        if round_index == 0:
            return True
        if self._closed.get(cell_id, FIRST_ROUNDS) < round_index:
            return False
        is_open = self._is_open(cell_id, round_index)
        if not is_open:
            self._closed[cell_id] = round_index - 1
        return is_open

    def _is_open(self, cell_id: str, round_index: int) -> bool:
        sides = [self._side(cell_id, label, round_index) for label in (self.a_label, self.b_label)]
        if not all(map(_is_tried, sides)):
            return False
        return not self._decision(cell_id, round_index).is_final

    def _side(self, cell_id: str, label: str, before_round: int) -> dict[int, Attempt]:
        found = self._rows.get(cell_id, {}).get(label, {})
        return {r: row for r, row in found.items() if r < before_round}

    def _decision(self, cell_id: str, before_round: int) -> Decision:
        a, b = (self._side(cell_id, label, before_round) for label in (self.a_label, self.b_label))
        rounds = sorted(a.keys() & b.keys())
        rows = [*a.values(), *b.values()]
        floor = self.floor_of_row(_measured(rows) or rows[0]) if rows else LEAST_FLOOR_FRACTION
        rule = StoppingRule(floor_fraction=floor, max_rounds=FIRST_ROUNDS)
        return decide([rate_of(a[r]) for r in rounds], [rate_of(b[r]) for r in rounds], rule)

    def _fresh(self) -> Mapping[str, int]:
        """cell_id -> fresh rounds; settled when the first fresh round is asked for."""
        if self._fresh_wanted is None:
            found: dict[str, Comparison] = {}
            for cell_id in self._rows:
                decision = self._decision(cell_id, FIRST_ROUNDS)
                if decision.state in ("faster", "slower"):
                    found[cell_id] = decision.comparison
            self._fresh_wanted = {
                cell_id: confirmation_rounds(len(found), is_clear=is_clear(first))
                for cell_id, first in found.items()
            }
            self._stands.clear()
        return self._fresh_wanted

    def standing_lines(self, round_index: int) -> list[str]:
        """Sentences on where the cells stand before this round: how many are clear, and the widest intervals of the others."""
        if round_index == FIRST_ROUNDS:
            n = len(self._fresh())
            told_n = "one cell has" if n == 1 else f"{n} cells have"
            return (
                [f"{told_n} changed; fresh rounds confirm {'it' if n == 1 else 'them'}"]
                if n
                else []
            )
        if not 0 < round_index < FIRST_ROUNDS or not self._is_measured(round_index - 1):
            return []
        open_cells = [cell_id for cell_id in self._rows if self.wants(cell_id, round_index)]
        n_clear = len(self._rows) - len(open_cells)
        lines = [
            f"after round {round_index}: {n_clear} of {len(self._rows)} cells need no more rounds"
        ]
        told = [
            (cell_id, self._decision(cell_id, round_index).comparison) for cell_id in open_cells
        ]
        told.sort(key=lambda pair: -_width(pair[1]))
        lines += [f"{self._name(cell_id)}: {_interval(c)}" for cell_id, c in told[:MOST_TOLD]]
        if len(told) > MOST_TOLD:
            lines.append(f"and {len(told) - MOST_TOLD} more, with narrower intervals")
        return lines

    def _is_measured(self, round_index: int) -> bool:
        """Whether any cell was tried in this round: once all are clear, the rounds that are left are empty."""
        return any(
            round_index in rows for of_cell in self._rows.values() for rows in of_cell.values()
        )

    def stands(self) -> tuple[CellStand, ...]:
        """Where each cell stands with all of its whole rounds, in the order in which they came."""
        for cell_id in self._rows:
            if cell_id not in self._stands:
                self._stands[cell_id] = self._stand(cell_id)
        return tuple(self._stands[cell_id] for cell_id in self._rows)

    def _stand(self, cell_id: str) -> CellStand:
        decision = self._decision(cell_id, FIRST_ROUNDS)
        row = next(iter(next(rows for rows in self._rows[cell_id].values() if rows).values()))
        wanted = (self._fresh_wanted or {}).get(cell_id)
        if wanted is not None:
            fresh = compare_paired(
                *self._fresh_rates(cell_id), floor_fraction=decision.comparison.floor_fraction
            )
            return CellStand(row=row, state="confirming", comparison=fresh, n_wanted=wanted)
        return CellStand(row=row, state=self._state(decision), comparison=decision.comparison)

    def _state(self, decision: Decision) -> CellState:
        if decision.state == "continue":
            return "open"
        return "failing" if decision.comparison.ratio is None else decision.state

    def _fresh_rates(self, cell_id: str) -> tuple[list[float | None], list[float | None]]:
        a, b = (self._rows[cell_id].get(label, {}) for label in (self.a_label, self.b_label))
        rounds = sorted(r for r in a.keys() & b.keys() if r >= FIRST_ROUNDS)
        return [rate_of(a[r]) for r in rounds], [rate_of(b[r]) for r in rounds]

    def _name(self, cell_id: str) -> str:
        sides = self._rows[cell_id]
        row = next(iter(next(rows for rows in sides.values() if rows).values()))
        depth = f" @ d{row.n_depth}" if row.n_depth else ""
        return f"{row.model_label} {row.test_label}{depth}"


def _measured(rows: Sequence[Attempt]) -> Attempt | None:
    return next((row for row in rows if row.status == "ok"), None)


def _is_tried(rows: Mapping[int, Attempt]) -> bool:
    """Whether the engine was asked; one that cannot be (an option that a build lacks) has a row that says so."""
    return any(row.status == "ok" or row.status in FAILED_STATUSES for row in rows.values())


def _width(comparison: Comparison) -> float:
    if comparison.low is None or comparison.high is None:
        return float("inf")
    return comparison.high / comparison.low


def _interval(comparison: Comparison) -> str:
    if comparison.ratio is None:
        return "no rate on both sides yet"
    change = f"{comparison.ratio - 1:+.1%}"
    if comparison.low is None or comparison.high is None:
        return f"{change}, no interval yet"
    return f"{change} [{comparison.low - 1:+.1%}, {comparison.high - 1:+.1%}]"
