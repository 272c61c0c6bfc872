"""llama-bench as an engine: from a group to a command line, and the rest of what `Engine` asks, each from its own module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llamasweep.engines import (
    llama_bench_applied,
    llama_bench_errors,
    llama_bench_flags,
    llama_bench_output,
)
from llamasweep.engines.base import Call, CallOptions, Failure, LogReading, Verified
from llamasweep.engines.llama_bench_flags import spell
from llamasweep.engines.llama_bench_output import LogReader, RowReader
from llamasweep.sweep.cell import Block, Cell, Group, Test
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.subjects import Build, Model

ENVIRONMENT = (
    ("GGML_NO_BACKTRACE", "1"),  # otherwise an abort lets gdb write to stdout
    ("LC_ALL", "C"),
)


class LlamaBench:
    """The engine. It has no state."""

    name = "llama-bench"

    def restrictions(self, block: Block, model: Model, build: Build) -> list[Restriction]:
        return llama_bench_flags.restrictions(block, model, build)

    def describe(self, group: Group, options: CallOptions) -> Call:
        return describe(group, options)

    def tell_what_cannot_be_said(self, group: Group, options: CallOptions) -> list[str]:
        return tell_what_cannot_be_said(group, options)

    def default_flash_attn(self, build: Build) -> str:
        return "auto" if llama_bench_flags.flash_attn_takes_words(build) else "off"

    def row_reader(self) -> RowReader:
        return RowReader()

    def log_reader(self) -> LogReader:
        return LogReader()

    def parse_row(self, line: bytes) -> dict[str, Any] | None:
        return llama_bench_output.parse_row(line)

    def pair_rows(self, cells: Sequence[Cell], rows: Sequence[Mapping[str, Any]]) -> list[int]:
        return llama_bench_applied.pair_rows(cells, rows)

    def repetition_tokens(self, row: Mapping[str, Any]) -> None:
        del row  # those of the test

    def repetition_starts_ns(self, row: Mapping[str, Any]) -> None:
        del row  # its progress lines tell

    def verify(
        self, cell: Cell, index: int, row: Mapping[str, Any], log: LogReading, *, cpu_only: bool
    ) -> Verified:
        assert isinstance(log, LogReader)  # noqa: S101  (made by log_reader)
        facts = log.facts(index)
        return llama_bench_applied.verify(cell, row, facts, log.load, cpu_only=cpu_only)

    def explain(
        self,
        *,
        exit_code: int | None,
        exit_signal: str | None,
        stderr_lines: Sequence[str],
        was_oom_killed: bool,
    ) -> Failure | None:
        return llama_bench_errors.explain(
            exit_code=exit_code,
            exit_signal=exit_signal,
            stderr_lines=stderr_lines,
            was_oom_killed=was_oom_killed,
        )


def describe(group: Group, options: CallOptions) -> Call:
    """The command line that measures this group, and the cells in the order of their rows."""
    build, block = group.build, group.block
    argv = [*build.argv_prefix, "-m", options.model_path, "-o", "jsonl", "-r", str(options.n_reps)]
    argv += [flag for flag in ("-v", "--progress") if build.knows(flag)]
    if not options.warmup and build.knows("--no-warmup"):
        argv.append("--no-warmup")
    for name, values in block.axes:
        argv += spell(build, name, values)
    argv += _test_words(block.tests)
    argv += options.extra_args
    return Call(argv=tuple(argv), env=(*ENVIRONMENT, *options.env), expected=tuple(block.cells()))


def _test_words(tests: Iterable[Test]) -> list[str]:
    """-p and -n are always said, since their defaults would add tests."""
    tests = tuple(tests)
    prompts = [str(t.n_prompt) for t in tests if t.kind == "pp"]
    gens = [str(t.n_gen) for t in tests if t.kind == "tg"]
    words = ["-p", ",".join(prompts) or "0", "-n", ",".join(gens) or "0"]
    for test in tests:
        if test.kind == "pg":
            words += ["-pg", f"{test.n_prompt},{test.n_gen}"]
    return words


def tell_what_cannot_be_said(group: Group, options: CallOptions) -> list[str]:
    """Sentences for the run's notes on wishes that this build has no flag for."""
    notes = []
    if not options.warmup and not group.build.knows("--no-warmup"):
        notes.append(f"{group.build.label} has no --no-warmup; it warms up as it always does")
    if not group.build.knows("--progress"):
        notes.append(f"{group.build.label} has no --progress; phases cannot be told apart")
    return notes
