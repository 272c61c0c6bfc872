"""A table that fits the terminal: as wide as needed in a file, folded on a screen, stacked on a narrow one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from llamasweep.cli.terminal import printable

_UNBOUNDED = 10_000
_LEAST_COLUMN = 11
"""Characters per column, on average, below which folded cells cannot be read any more."""


def fitted_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """Rows under their heads, hostile characters escaped. width: None means the screen's, or any width in a file."""
    if width is None:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNBOUNDED
    cells = [[printable(cell) for cell in row] for row in rows]
    if width < _LEAST_COLUMN * len(heads):
        return _stacked(heads, cells)
    return _folded(heads, cells, right, width)


def _stacked(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widest = max(map(len, heads))
    return "\n\n".join(
        "\n".join(f"{head.ljust(widest)}  {cell}" for head, cell in zip(heads, row, strict=True))
        for row in rows
    )


def _folded(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], width: int
) -> str:
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(Text(head), justify="right" if head in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
