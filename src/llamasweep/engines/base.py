"""What every engine does: say how it is called, and turn its output into events as it arrives. Starts nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from llamasweep.sweep.cell import Cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One engine process.

    argv: complete, never for a shell. env: variables to set on top of a clean environment. expected: the cells in
    the order in which their rows will arrive.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    expected: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineEvent:
    """Something the engine said.

    kind: "row" (a result line, `row` holds it), "step" (a progress line: a phase begins), "garbage" (a stdout line that
    is no result). cell_index: 0-based, None where it does not apply. step: starting, warmup_prompt,
    warmup_generation, depth, prompt or generation. repetition_index: 0-based for the last three. count: tests that
    the engine means to run, told with "starting".
    """

    kind: Literal["row", "step", "garbage"]
    cell_index: int | None = None
    step: str | None = None
    repetition_index: int | None = None
    is_cached: bool = False
    count: int | None = None
    text: str | None = None
    row: dict[str, Any] | None = field(default=None)
