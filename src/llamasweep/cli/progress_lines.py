"""Progress as plain lines, for logs and pipes: one line a cell, nothing that moves."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from llamasweep.cli.terminal import SteadyStream, printable
from llamasweep.results.records import Attempt, Reading
from llamasweep.units import counted, format_seconds, format_tps

if TYPE_CHECKING:
    from llamasweep.engines.base import EngineEvent
    from llamasweep.run.progress import Standing
    from llamasweep.sweep.cell import Cell, Group

_MESSAGE_CHARS = 160


def short(text: str, limit: int = 80) -> str:
    """Text from outside, made harmless for a terminal and cut to `limit`."""
    safe = printable(text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def question_words(cell: Cell) -> str:
    """`pp512 @ d4096 · n_threads 2`, as short as the cell allows."""
    depth = f" @ d{cell.n_depth}" if cell.n_depth else ""
    return _words(cell.test.label + depth, dict(cell.params))


def cell_words(attempt: Attempt) -> str:
    """The same for a row."""
    depth = f" @ d{attempt.n_depth}" if attempt.n_depth else ""
    return _words(attempt.test_label + depth, attempt.requested)


def _words(test: str, params: Mapping[str, object]) -> str:
    return " · ".join(
        [test, *(f"{k} {short(str(v), 24)}" for k, v in params.items() if k != "n_depth")]
    )


def outcome_words(attempt: Attempt) -> str:
    """The rate with its spread, or the status with its reason."""
    if attempt.status == "ok" and attempt.median_tps is not None:
        spread = (
            f" ± {attempt.mad_tps / attempt.median_tps:.1%}" if attempt.mad_tps is not None else ""
        )
        return format_tps(attempt.median_tps) + spread
    reason = short(attempt.error_message or "no reason given", _MESSAGE_CHARS)
    return f"{attempt.status.replace('_', ' ')}: {reason}"


def _number(standing: Standing) -> str:
    return f"[{standing.n_done}/{standing.n_cells}]"


def left_words(eta_s: float | None) -> str:
    """`about 4 min 05 s left`; empty where it is not known or nothing is predicted to be left."""
    return f"about {format_seconds(eta_s)} left" if eta_s is not None and eta_s >= 0.001 else ""


class PlainProgress:
    """Writes to `stream`, stderr by default, so that --json on stdout stays clean."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = SteadyStream(stream or sys.stderr)
        self._last_wait: str | None = None

    def _say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def note(self, sentence: str) -> None:
        self._say(f"note: {short(sentence, 400)}")

    def round_begins(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.note(line)

    def group_started(self, group: Group, cells: Sequence[Cell], standing: Standing) -> None:
        self._last_wait = None
        left = left_words(standing.eta_s)
        eta = f", {left}" if left else ""
        self._say(
            f"-- {short(group.model.source.label)} on {short(group.build.label)}: "
            f"{counted(len(cells), 'cell')} in one process ({standing.n_done}/{standing.n_cells} done{eta})"
        )

    def engine_said(
        self, event: EngineEvent, cell: Cell | None, readings: Sequence[Reading]
    ) -> None:
        pass

    def row_arrived(self, cell: Cell, tps: float, standing: Standing) -> None:
        self._say(f"   {_number(standing)} {question_words(cell)}: {format_tps(tps)}")

    def cells_refused(self, attempts: Sequence[Attempt], standing: Standing) -> None:
        first = attempts[0]
        where = f"{short(first.model_label)} on {short(first.build_label or 'no build')}"
        self._say(
            f"   {_number(standing)} {counted(len(attempts), 'cell')} of {where}: {outcome_words(first)}"
        )

    def cell_ended(self, attempt: Attempt, standing: Standing) -> None:
        if attempt.status != "ok":
            self._say(f"   {_number(standing)} {cell_words(attempt)}: {outcome_words(attempt)}")

    def waiting(self, reason: str, seconds: float) -> None:
        if reason != self._last_wait:
            self._say(f"   waiting up to {format_seconds(max(seconds, 0.0))}: {reason}")
            self._last_wait = reason
