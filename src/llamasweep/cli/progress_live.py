"""Progress as a live view in a terminal: what runs, how far it is, what the machine does, and the last results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from llamasweep.cli.interval_lines import stand_table, summary_line
from llamasweep.cli.progress_lines import (
    cell_words,
    left_words,
    outcome_words,
    question_words,
    short,
)
from llamasweep.results.records import FAILED_STATUSES, Attempt, Reading
from llamasweep.units import counted, format_bytes, format_seconds, format_tps

if TYPE_CHECKING:
    from llamasweep.engines.base import EngineEvent
    from llamasweep.run.progress import Standing
    from llamasweep.sweep.cell import Cell, Group

_SHOWN_RESULTS = 8
_SHOWN_BESIDE_CELLS = 2
_OTHER_LINES = 8
"""Of the view, besides the cells of `rounds: auto`."""
_STEP_WORDS = {
    "starting": "loading",
    "warmup_prompt": "warming up (prompt)",
    "warmup_generation": "warming up (generation)",
    "depth": "filling the context",
    "prompt": "prompt",
    "generation": "generating",
}
_GAUGES = (
    ("rss_bytes", "engine RAM"),
    ("vram_used_bytes", "VRAM"),
    ("temperature_c", "temperature"),
    ("power_w", "power"),
)


class LiveProgress:
    """A context manager; draws on stderr, twice a second at most, because the engine wants the cores."""

    def __init__(self, name: str, console: Console) -> None:
        self._name = short(name)
        self._console = console
        self._standing: Standing | None = None
        self._standing_at_s = time.monotonic()
        self._now = "starting"
        self._where = ""
        self._gauges: dict[str, float] = {}
        self._results: deque[tuple[str, str, str]] = deque(maxlen=_SHOWN_RESULTS)
        self._live = Live(
            console=console, refresh_per_second=2, get_renderable=self._draw, transient=True
        )

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    # -- told by the run

    def note(self, sentence: str) -> None:
        self._console.print(Text(f"note: {short(sentence, 400)}", style="yellow"))

    def round_begins(self, lines: Sequence[str]) -> None:
        if (
            self._standing is None or not self._standing.cells
        ):  # otherwise the view shows where each cell stands
            for line in lines:
                self.note(line)

    def generating(self, label: str, n_done: int, n_all: int) -> None:
        self._now = f"generating {short(label)}: {format_bytes(n_done)} of {format_bytes(n_all)}"

    def group_started(self, group: Group, cells: Sequence[Cell], standing: Standing) -> None:
        self._stand(standing)
        self._where = f"{short(group.model.source.label)} on {short(group.build.label)}, {counted(len(cells), 'cell')}"
        self._now = "starting the engine"

    def engine_said(
        self, event: EngineEvent, cell: Cell | None, readings: Sequence[Reading]
    ) -> None:
        for reading in readings:
            if any(reading.metric == metric for metric, _ in _GAUGES):
                self._gauges[reading.metric] = reading.value
        if event.kind == "step" and cell is not None:
            step = _STEP_WORDS.get(event.step or "", event.step or "")
            number = f" {event.repetition_index + 1}" if event.repetition_index is not None else ""
            depth = f" @ d{cell.n_depth}" if cell.n_depth else ""
            self._now = f"{cell.test.label}{depth}: {step}{number}"

    def row_arrived(self, cell: Cell, tps: float, standing: Standing) -> None:
        self._stand(standing)
        self._results.append((question_words(cell), format_tps(tps), "green"))

    def cells_refused(self, attempts: Sequence[Attempt], standing: Standing) -> None:
        self._stand(standing)
        first = attempts[0]
        words = f"{counted(len(attempts), 'cell')} of {short(first.model_label)}: {outcome_words(first)}"
        self._console.print(Text(words, style="red" if first.status in FAILED_STATUSES else "dim"))

    def cell_ended(self, attempt: Attempt, standing: Standing) -> None:
        self._stand(standing)
        if attempt.status in FAILED_STATUSES:
            words = (
                f"{short(attempt.model_label)} · {cell_words(attempt)}: {outcome_words(attempt)}"
            )
            self._console.print(Text(words, style="red"))

    def waiting(self, reason: str, seconds: float) -> None:
        self._now = f"waiting up to {format_seconds(max(seconds, 0.0))}: {reason}"

    def _stand(self, standing: Standing) -> None:
        self._standing, self._standing_at_s = standing, time.monotonic()

    # -- drawn

    def _draw(self) -> RenderableType:
        where, now = Text(f"  {self._where}"), Text(f"  {self._now}", style="bold")
        return Lines(
            self._head(), self._bar(), where, now, self._gauge_line(), *self._cells(), self._table()
        )

    def _cells(self) -> list[RenderableType]:
        cells = self._standing.cells if self._standing is not None else ()
        if not cells:
            return []
        most = max(self._console.height - _OTHER_LINES - _SHOWN_BESIDE_CELLS, 3)
        return [Text(f"  {summary_line(cells)}"), stand_table(cells, most=most)]

    def _head(self) -> Text:
        standing = self._standing
        if standing is None:
            return Text(f"{self._name}: starting")
        left_s = (
            None
            if standing.eta_s is None
            else standing.eta_s - (time.monotonic() - self._standing_at_s)
        )
        left = left_words(left_s)
        eta = f" · {left}" if left else ""
        failed = f" · {standing.n_failed} failed" if standing.n_failed else ""
        return Text(
            f"{self._name}: {standing.n_done} of {counted(standing.n_cells, 'cell')}{failed}{eta}"
        )

    def _bar(self) -> RenderableType:
        standing = self._standing
        total = max(standing.n_cells, 1) if standing else 1
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(total=total, completed=standing.n_done if standing else 0, width=60)
        )
        return bar

    def _gauge_line(self) -> Text:
        parts = []
        for metric, name in _GAUGES:
            value = self._gauges.get(metric)
            if value is not None:
                shown = (
                    format_bytes(int(value))
                    if metric.endswith("_bytes")
                    else f"{value:.0f} {'°C' if metric.endswith('_c') else 'W'}"
                )
                parts.append(f"{name} {shown}")
        return Text("  " + " · ".join(parts), style="dim")

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        is_beside = self._standing is not None and bool(self._standing.cells)
        results = list(self._results)[-_SHOWN_BESIDE_CELLS if is_beside else -_SHOWN_RESULTS :]
        for words, outcome, style in results:
            table.add_row(Text("  " + words), Text(outcome, style=style))
        return table
