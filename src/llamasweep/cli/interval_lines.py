"""Where the cells of `rounds: auto` stand, for the live view: a line per cell with its interval closing in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from llamasweep.cli.progress_lines import cell_words, short

if TYPE_CHECKING:
    from llamasweep.run.progress import CellStand, CellState
    from llamasweep.stats.verdicts import Comparison

HALF = 14
"""Characters of an interval's picture to either side of no change."""
FLOORS_SHOWN = 4.0
"""How many floors the picture reaches to either side; what lies beyond ends in an arrow."""
_STYLES: dict[CellState, str] = {
    "open": "yellow",
    "confirming": "magenta",
    "slower": "red",
    "faster": "green",
    "failing": "red",
    "undecided": "dim",
    "same": "dim",
}
_AT_WORK: dict[CellState, str] = {"open": "open", "confirming": "confirming a change"}


def summary_line(cells: Sequence[CellStand]) -> str:
    """`3 of 8 cells clear: 2 same, 1 slower; 5 open`."""
    counts = Counter(cell.state for cell in cells)
    at_work = {state: counts[state] for state in _AT_WORK if counts[state]}
    settled = [f"{n} {state}" for state, n in counts.most_common() if state not in _AT_WORK]
    text = f"{len(cells) - sum(at_work.values())} of {len(cells)} cells clear"
    text += f": {', '.join(settled)}" if settled else ""
    return "; ".join([text, *(f"{n} {_AT_WORK[state]}" for state, n in at_work.items())])


def stand_table(cells: Sequence[CellStand], *, most: int) -> Table:
    """At most `most` cells, those at work first, each in its place in the plan: name, change, picture, rounds and state."""
    table = Table.grid(padding=(0, 2))
    at_work = [cell for cell in cells if cell.state in _AT_WORK]
    settled = [cell for cell in cells if cell.state not in _AT_WORK]
    shown = [*at_work, *settled][:most]
    for cell in shown:
        style = _STYLES[cell.state]
        table.add_row(
            Text(f"  {short(cell.row.model_label, 30)} · {cell_words(cell.row)}"),
            Text(change_words(cell.comparison), style=style),
            Text(interval_picture(cell.comparison), style=style),
            Text(_state_words(cell), style=style),
        )
    if len(cells) > len(shown):
        table.add_row(Text(f"  and {len(cells) - len(shown)} more", style="dim"))
    return table


def _state_words(cell: CellStand) -> str:
    n = cell.comparison.n_rounds
    if cell.n_wanted is not None:
        return f"{n} of {cell.n_wanted} fresh rounds"
    return f"{n} {'round' if n == 1 else 'rounds'}, {cell.state}"


def change_words(comparison: Comparison) -> str:
    """`+1.2 % [-0.4, +2.8]`; what there is of it."""
    if comparison.ratio is None:
        return "no rate on both sides"
    change = f"{100 * (comparison.ratio - 1):+.1f} %"
    if comparison.low is None or comparison.high is None:
        return change
    low, high = (f"{100 * (limit - 1):+.1f}" for limit in (comparison.low, comparison.high))
    return f"{change} [{low}, {high}]"


def interval_picture(comparison: Comparison) -> str:
    """The interval as a line about no change (`|`) with the floor (`:`) to either side and the estimate (`o`).

    Arrows where it goes on. Plain characters, so that every terminal shows it.
    """
    scale = HALF / (FLOORS_SHOWN * comparison.floor_fraction)
    floor = round(comparison.floor_fraction * scale)
    cells = [" "] * (2 * HALF + 1)
    cells[HALF - floor] = cells[HALF + floor] = ":"
    cells[HALF] = "|"
    if comparison.low is not None and comparison.high is not None:
        first, last = (_place(limit, scale) for limit in (comparison.low, comparison.high))
        for place in range(max(first, 0), min(last, 2 * HALF) + 1):
            cells[place] = "-" if cells[place] == " " else cells[place]
        if first < 0:
            cells[0] = "<"
        if last > 2 * HALF:
            cells[-1] = ">"
    if comparison.ratio is not None:
        place = _place(comparison.ratio, scale)
        cells[min(max(place, 0), 2 * HALF)] = "<" if place < 0 else ">" if place > 2 * HALF else "o"
    return "".join(cells)


def _place(ratio: float, scale: float) -> int:
    return HALF + round((ratio - 1) * scale)
