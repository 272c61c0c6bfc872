"""Text from outside on a terminal: what could move the cursor or hide something is shown escaped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TextIO


def printable(text: object) -> str:
    """The text with control, format and undecodable characters as backslash escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def printable_lines(text: str) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A plain table, columns as wide as their widest cell, the last one open."""
    cells = [list(heads), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


class SteadyStream:
    """A stream for progress: once the reader is gone or the terminal closed it says nothing more, and the run goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_broken = False

    def write(self, text: str) -> int:
        with self._steady():
            if not self._is_broken:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._steady():
            if not self._is_broken:
                self._stream.flush()

    @contextlib.contextmanager
    def _steady(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):  # ValueError: it was closed on this side
            self._is_broken = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
