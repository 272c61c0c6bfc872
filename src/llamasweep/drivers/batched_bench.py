"""Cells of llama-batched-bench -> one process each -> rows: repetitions, the cell that it leaves out, and how it ended.

The program prints one measurement for each number in `-npl`; the same number n times makes n repetitions in one process, and one
more in front warms up. Its last lines may be lost when it ends, with exit code 0 (upstream #22142; 2 of 60 calls of b11434 here):
what is missing is measured again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from llamasweep.drivers.failing import ProgramError
from llamasweep.engines.batched_bench_output import BatchedRow, parse_batched_row
from llamasweep.engines.driven import SERVER_DIED, DriverRow, Job, Step, progress_line
from llamasweep.engines.llama_batched_bench import OWN_WORDS, cell_words, lengths_of, streams_of
from llamasweep.engines.llama_bench_output import LogReader
from llamasweep.run.process import Ending, EngineProcess, Line, StreamEnd, clean_environment
from llamasweep.sweep.cell import Cell

Say = Callable[[str], None]
MAX_PROCESSES = 3
"""For one cell, where lines are lost."""
SHARED = "prompt_shared"
"""Flag: `-pps` let all streams begin with one prompt, which was read once."""


@dataclass(slots=True)
class _Heard:
    """What one process printed. rows: with the Unix time at which each came. log: what it said of its context."""

    rows: list[tuple[BatchedRow, int]] = field(default_factory=list)
    log: LogReader = field(default_factory=LogReader)


def measure_batched(job: Job, *, print_row: Say, print_line: Say) -> None:
    """Every cell of the job in order. Raises ProgramError where one cannot be measured; rows before it are out."""
    own = sorted(OWN_WORDS & set(job.server_argv[5:]))
    if own:
        message = f"extra_args hold {', '.join(own)}, which the sweep's tests and axes say"
        raise ProgramError(message, kind="bad_argument", reach="call")
    cells = job.cells()
    for index, cell in enumerate(cells):

        def tell(step: Step, repetition: int | None = None, index: int = index) -> None:
            place = None if repetition is None else (repetition, job.n_reps)
            print_line(progress_line(index, len(cells), step, place))

        tell("starting")
        print_row(_row(index, cell, _timed(job, cell, tell, print_line)).line())


def _timed(
    job: Job, cell: Cell, tell: Callable[..., None], print_line: Say
) -> list[tuple[BatchedRow, int]]:
    """All repetitions. Raises ProgramError where they are not to be had."""
    timed: list[tuple[BatchedRow, int]] = []
    for _ in range(MAX_PROCESSES):
        heard, ending = _run(job, cell, len(timed), tell, print_line)
        timed += _checked(job, cell, heard, ending)
        if len(timed) == job.n_reps:
            return timed
    message = f"llama-batched-bench gave {len(timed)} of {job.n_reps} repetitions"
    raise ProgramError(message, kind="too_few_rows")


def _run(
    job: Job, cell: Cell, n_there: int, tell: Callable[..., None], print_line: Say
) -> tuple[_Heard, Ending]:
    """One process to its end. Its own words go on to our stderr, where the runner reads them. n_there: repetitions before it."""
    program, *rest = job.server_argv
    n_runs = job.n_reps - n_there + int(job.warmup)
    heard, n_open = _Heard(), 2

    def tell_next() -> None:
        repetition = n_there + len(heard.rows) - int(job.warmup)
        if repetition < n_there:
            tell("warmup prompt")
        elif repetition < job.n_reps:
            tell("prompt", repetition)

    environment = clean_environment(tuple(os.environ.items()))  # clean already, with the sweep's
    argv = (program, *cell_words(cell, n_runs), *rest)
    process = EngineProcess(argv, env=environment, cwd=Path.cwd())
    try:
        tell_next()
        while n_open:
            item = process.inbox.get()
            if isinstance(item, StreamEnd):
                n_open -= 1
            elif isinstance(item, Line) and item.stream == "stderr":
                text = item.data.decode("utf-8", "replace")
                heard.log.feed(text)
                print_line(text)
            elif isinstance(item, Line) and (row := parse_batched_row(item.data.strip())):
                heard.rows.append((row, item.time_ns))
                tell_next()
        return heard, process.wait(None)
    finally:
        process.stop()


def _checked(job: Job, cell: Cell, heard: _Heard, ending: Ending) -> list[tuple[BatchedRow, int]]:
    """The timed repetitions of a process, fewer than it was asked for where it lost some.

    Raises ProgramError where the process failed, measured something else, or left the cell out.
    """
    if ending.exit_code != 0:
        how = ending.exit_signal or f"exit code {ending.exit_code}"
        raise ProgramError(f"llama-batched-bench ended with {how}", kind=SERVER_DIED)
    asked = (*lengths_of(cell), streams_of(cell))
    n_ctx = heard.log.load.n_ctx
    if not heard.rows and (n_ctx is None or n_ctx < _n_needed(asked)):
        raise ProgramError(_left_out(asked, n_ctx), kind="cell_skipped")
    for row, _ in heard.rows:
        found = (row.n_prompt, row.n_gen, row.n_streams)
        if found != asked:
            message = f"it measured {_words(found)} instead of {_words(asked)}"
            raise ProgramError(message, kind="row_mismatch")
    timed = heard.rows[int(job.warmup) :]
    if any(row.duration_ns(cell.test.kind) <= 0 for row, _ in timed):
        raise ProgramError("no time passed by the program's own clock", kind="no_time")
    return timed


def _n_needed(asked: tuple[int, int, int]) -> int:
    """Tokens of context, by the program's own rule; with `-pps` it may need less."""
    return asked[2] * (asked[0] + asked[1])


def _words(lengths: tuple[int, int, int]) -> str:
    return f"{lengths[2]} x (pp{lengths[0]} + tg{lengths[1]})"


def _left_out(asked: tuple[int, int, int], n_ctx: int | None) -> str:
    """The program passes over a cell that needs more context than there is, and says nothing."""
    there = "" if n_ctx is None else f", and there were {n_ctx}"
    return (
        f"llama-batched-bench left {_words(asked)} out without a word: it needs {_n_needed(asked)} tokens "
        f"of context{there}"
    )


def _row(index: int, cell: Cell, timed: list[tuple[BatchedRow, int]]) -> DriverRow:
    """The program tells how long each part took, and a line comes when all is over: so began what it began."""
    kind = cell.test.kind
    starts = []
    for row, came_ns in timed:
        of_whole = row.duration_ns("pg")
        starts.append(came_ns - (row.duration_ns("tg") if kind == "tg" else of_whole))
    first = timed[0][0]
    applied = {"concurrency": first.n_streams}
    if first.n_threads is not None:
        applied["n_threads"] = first.n_threads
    is_shared = kind != "tg" and first.is_prompt_shared and first.n_streams > 1
    return DriverRow(
        cell_index=index,
        test=cell.test,
        samples_ns=tuple(row.duration_ns(kind) for row, _ in timed),
        started_ns=tuple(starts),
        n_tokens=tuple(row.n_tokens(kind) for row, _ in timed),
        columns={},
        applied=applied,
        flags=(SHARED,) if is_shared else (),
    )
