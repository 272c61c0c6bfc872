"""What every engine does: say how it is called, turn its output into events, and say what an answer means. Starts nothing.

`Engine` is the seam: the runner knows engines only by it, and `engines.known` knows them by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from llamasweep.results.records import Status
from llamasweep.sweep.cell import Block, Cell, Group
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.spec import ServerWish
from llamasweep.sweep.subjects import Build, Model

Reach = Literal["cell", "load", "call"]
"""What a failure concerns: this cell, everything with this model load, or the whole command line."""


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
class CallOptions:
    """What a call needs beyond the group.

    model_path: as it stands on the command line (an alias where the true name would break it). n_reps: timed
    repetitions. warmup: False asks for none. extra_args: appended as they are. env: from the sweep, on top of ours. server: how
    one is to be asked. import_folder: where a server that we start keeps models that were made for it.
    """

    model_path: str
    n_reps: int
    warmup: bool = True
    extra_args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    server: ServerWish = field(default_factory=ServerWish)
    import_folder: str = ""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """status and kind go to the row; message is the true reason; reach says which other cells share it."""

    status: Status
    kind: str
    message: str
    reach: Reach = "cell"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """Requested against applied, and what else a row and the log say of one cell.

    applied: canonical name -> value that the engine really used; what it only echoes is absent. differences:
    sentences. mismatch: the row answers another question than the cell (tests or depth differ); None if it is the
    right one. flags: short words. n_ctx: context that was made. n_layers_offloaded: to GPUs. None: not told.
    columns: further columns of the attempt that this engine alone knows, by name. n_tokens: of each repetition, None = those
    of the test.
    """

    applied: Mapping[str, Scalar]
    differences: tuple[str, ...]
    mismatch: str | None
    flags: tuple[str, ...]
    n_ctx: int | None = None
    n_layers_offloaded: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    n_tokens: Sequence[int] | None = None


class RowReading(Protocol):
    """stdout, line by line. n_rows: results so far."""

    n_rows: int

    def feed(self, line: bytes) -> EngineEvent | None:
        """An event for one line without its newline; None for an empty one."""


class LogReading(Protocol):
    """stderr, line by line: progress as events, and facts that it keeps. count: tests that the engine says it runs."""

    count: int | None

    def feed(self, line: str) -> EngineEvent | None:
        """An event if the line is a progress line."""


class Engine(Protocol):
    """One kind of program that measures. All methods are pure.

    A result row is a dict with n_prompt, n_gen and samples_ns, the timed repetitions in nanoseconds.
    """

    @property
    def name(self) -> str:
        """As sweeps and rows call it."""

    def restrictions(self, block: Block, model: Model, build: Build) -> list[Restriction]:
        """Which cells of a block cannot be measured, and why."""

    def describe(self, group: Group, options: CallOptions) -> Call:
        """The command line that measures a group, and the cells in the order of their rows."""

    def tell_what_cannot_be_said(self, group: Group, options: CallOptions) -> list[str]:
        """Sentences on wishes that this build has no flag for."""

    def default_flash_attn(self, build: Build) -> str:
        """What rules where a cell leaves flash attention open: auto or off."""

    def row_reader(self) -> RowReading:
        """A new reader of stdout."""

    def log_reader(self) -> LogReading:
        """A new reader of stderr."""

    def parse_row(self, line: bytes) -> dict[str, Any] | None:
        """The result that a line of stdout holds, None where it holds none."""

    def pair_rows(self, cells: Sequence[Cell], rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """The cell's index for each row."""

    def repetition_tokens(self, row: Mapping[str, Any]) -> Sequence[int] | None:
        """Tokens of each repetition of a row; None where they are those of the test."""

    def repetition_starts_ns(self, row: Mapping[str, Any]) -> Sequence[int] | None:
        """Unix times at which the repetitions of a row began; None where only progress lines tell."""

    def verify(
        self, cell: Cell, index: int, row: Mapping[str, Any], log: LogReading, *, cpu_only: bool
    ) -> Verified:
        """Compare what a row and the log say with what the cell asked. index: of the cell in its group.

        log: a reader made by `log_reader`, fed to the end. cpu_only: the build sees no GPU.
        """

    def explain(
        self,
        *,
        exit_code: int | None,
        exit_signal: str | None,
        stderr_lines: Sequence[str],
        was_oom_killed: bool,
    ) -> Failure | None:
        """The failure that an ending means; None for a clean exit. stderr_lines: the last ones, oldest first."""
