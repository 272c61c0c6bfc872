"""What a run tells whoever watches it; the command line draws it, this room only says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from llamasweep.engines.base import EngineEvent
from llamasweep.results.records import Attempt, Reading
from llamasweep.stats.verdicts import Comparison
from llamasweep.sweep.cell import Cell, Group

CellState = Literal["open", "slower", "faster", "same", "undecided", "failing", "confirming"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellStand:
    """Where a cell of `rounds: auto` stands; for looking at, no verdict of it is official.

    row: one of its rows, for its name. comparison: with its interval so far; over the fresh rounds alone in the state
    "confirming". n_wanted: fresh rounds that confirm it, None before they begin.
    """

    row: Attempt
    state: CellState
    comparison: Comparison
    n_wanted: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How far a run is.

    n_done, n_failed, n_unsupported: cells with a row, of n_cells. eta_s: predicted seconds for what is left, None before the
    first prediction. n_groups_left: engine processes to come. cells: of `rounds: auto` in the order of the plan, () where
    the number of rounds is fixed.
    """

    n_cells: int
    n_done: int
    n_failed: int
    n_unsupported: int
    n_groups_left: int
    eta_s: float | None
    cells: tuple[CellStand, ...] = ()


class Progress(Protocol):
    """A watcher. Every method may be called often and must be quick."""

    def note(self, sentence: str) -> None:
        """Something worth knowing that concerns no single cell."""

    def round_begins(self, lines: Sequence[str]) -> None:
        """Sentences on where the cells of `rounds: auto` stand before a round, () where there is nothing to say."""

    def cells_refused(self, attempts: Sequence[Attempt], standing: Standing) -> None:
        """Rows of cells that no engine was asked for; all have the same reason."""

    def group_started(self, group: Group, cells: Sequence[Cell], standing: Standing) -> None:
        """An engine process begins."""

    def engine_said(
        self, event: EngineEvent, cell: Cell | None, readings: Sequence[Reading]
    ) -> None:
        """A progress line or a row; readings since the last one."""

    def row_arrived(self, cell: Cell, tps: float, standing: Standing) -> None:
        """A result is safe on the disk. tps: median of all its repetitions."""

    def cell_ended(self, attempt: Attempt, standing: Standing) -> None:
        """The row is made, with its flags; a failed cell is told here alone."""

    def waiting(self, reason: str, seconds: float) -> None:
        """Nothing is measured for at most so long."""


class Silent:
    """Nobody watches."""

    def note(self, sentence: str) -> None:
        pass

    def round_begins(self, lines: Sequence[str]) -> None:
        pass

    def cells_refused(self, attempts: Sequence[Attempt], standing: Standing) -> None:
        pass

    def group_started(self, group: Group, cells: Sequence[Cell], standing: Standing) -> None:
        pass

    def engine_said(
        self, event: EngineEvent, cell: Cell | None, readings: Sequence[Reading]
    ) -> None:
        pass

    def row_arrived(self, cell: Cell, tps: float, standing: Standing) -> None:
        pass

    def cell_ended(self, attempt: Attempt, standing: Standing) -> None:
        pass

    def waiting(self, reason: str, seconds: float) -> None:
        pass
