"""Conversations whose process failed, and which of their turns that brings down too. Pure.

A turn is asked with all that was said before, so a later one cannot be measured without those before it. One more process is
worth its time, as the failure may have been a mishap; after a second one the later turns fail for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llamasweep.sweep.cell import Cell, Group

MOST_FAILED_PROCESSES = 2


@dataclass(slots=True)
class LostTurns:
    """Of one run: which conversations failed, and how often."""

    _n_failed: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def after_failure(self, group: Group, failed: Cell, rest: Sequence[Cell]) -> list[Cell]:
        """Those of the rest that need no process any more, as the cell that just failed was a turn before them."""
        turn = _turn_of(failed)
        if turn is None:
            return []
        talk = _talk_of(failed)
        key = (group.build.content_hash, group.build.label, group.model.identity, group.round_index)
        self._n_failed[key, talk] += 1
        if self._n_failed[key, talk] < MOST_FAILED_PROCESSES:
            return []
        return [cell for cell in rest if _talk_of(cell) == talk and (_turn_of(cell) or 0) > turn]


def _turn_of(cell: Cell) -> int | None:
    turn = cell.get("turn")
    return None if turn is None else int(turn)


def _talk_of(cell: Cell) -> Cell:
    """What the turns of one conversation have in common."""
    return replace(cell, params=tuple(p for p in cell.params if p[0] != "turn"))
