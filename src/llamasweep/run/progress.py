"""What a run tells whoever watches it; the command line draws it, this room only says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from llamasweep.engines.base import EngineEvent
from llamasweep.results.records import Attempt, Reading
from llamasweep.sweep.cell import Cell, Group


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How far a run is.

    n_done, n_failed, n_unsupported: cells with a row, of n_cells. eta_s: predicted seconds for what is left, None before the
    first prediction. n_groups_left: engine processes to come.
    """

    n_cells: int
    n_done: int
    n_failed: int
    n_unsupported: int
    n_groups_left: int
    eta_s: float | None


class Progress(Protocol):
    """A watcher. Every method may be called often and must be quick."""

    def note(self, sentence: str) -> None:
        """Something worth knowing that concerns no single cell."""

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
