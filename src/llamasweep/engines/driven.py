"""Servers as engines, measured by a process of our own that speaks as an engine does: the job it gets, the lines it says.

Rows go to stdout as JSON, progress and the one reason of a failure to stderr, where a server's own log goes too. So a server
is logged, timed out, resumed and ended like any other engine (docs/decisions/0013). Pure.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeGuard

from llamasweep.engines import llama_bench_applied, llama_bench_errors, llama_bench_output
from llamasweep.engines.base import Call, CallOptions, Failure, LogReading, Reach, Verified
from llamasweep.engines.llama_bench_output import LogFacts, LogReader, RowReader
from llamasweep.results.records import FAILED_STATUSES
from llamasweep.results.request_times import RequestTimes
from llamasweep.sweep.cell import Block, Cell, Group, Test
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, ModelSource

PROGRESS_NAME = "llamasweep: test"
"""How progress lines of a driver begin; the reader of llama-bench's log knows them."""
_FAILED = re.compile(r"^llamasweep: failed \((\w{1,20}), (\w{1,40}), (\w{1,10})\): (.{0,2000})$")
_REACHES: tuple[Reach, ...] = ("cell", "load", "call")
SERVER_DIED = "server_died"
"""Kind of failure behind which the server's own last words are looked at."""
_ENVIRONMENT = (("GGML_NO_BACKTRACE", "1"), ("LC_ALL", "C.UTF-8"))
_MAX_COUNT = 2**63 - 1

Step = Literal["starting", "warmup prompt", "prompt", "generation"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a driver measures.

    engine: its name. server_argv: what to start, empty where a server is there already; it follows the job on the command line
    word by word, so that secrets in it are hidden and paths are shown like those of any call. base_url: of that one. model: as
    requests name it. key_variable: of the environment, that holds the key. axes, tests: as in a Block. n_reps: timed
    repetitions. warmup: ask once untimed. options: what one engine alone needs, plain JSON values.
    """

    engine: str
    server_argv: tuple[str, ...] = ()
    base_url: str | None = None
    model: str
    key_variable: str | None = None
    axes: tuple[tuple[str, tuple[Scalar, ...]], ...]
    tests: tuple[tuple[int, int], ...]
    n_reps: int
    warmup: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def words(self) -> tuple[str, ...]:
        """As a command line carries it."""
        said = {name: getattr(self, name) for name in self.__slots__ if name != "server_argv"}
        return (json.dumps(said), "--", *self.server_argv)

    def cells(self) -> tuple[Cell, ...]:
        """In the order in which their rows are expected."""
        tests = tuple(Test(n_prompt=p, n_gen=g) for p, g in self.tests)
        source = ModelSource(label=self.model)
        block = Block(model=source, axes=self.axes, tests=tests, engine=self.engine)
        return tuple(block.cells())


def read_job(words: Sequence[str]) -> Job:
    """The job that `Job.words` wrote. Raises ValueError for anything else."""
    try:
        text, separator, *server = words
        found = json.loads(text)
        if separator != "--":
            raise ValueError("no job: the server's words are missing")
        axes = tuple((str(name), tuple(values)) for name, values in found.pop("axes"))
        tests = tuple((int(p), int(g)) for p, g in found.pop("tests"))
        return Job(axes=axes, tests=tests, server_argv=tuple(server), **found)
    except (AttributeError, KeyError, TypeError) as problem:
        raise ValueError(f"no job: {problem}") from None


def job_call(group: Group, options: CallOptions, job: Job) -> Call:
    """The process that does a job."""
    argv = (sys.executable, "-I", "-m", "llamasweep.drivers", *job.words())
    cells = tuple(group.block.cells())
    return Call(argv=argv, env=(*_ENVIRONMENT, *options.env), expected=cells)


def program_call(engine: str, argv: tuple[str, ...], group: Group, options: CallOptions) -> Call:
    """The process that starts a program of llama.cpp by argv and measures the group with it. engine: its name."""
    job = Job(
        engine=engine,
        server_argv=argv,
        model="model",
        n_reps=options.n_reps,
        warmup=options.warmup,
        **axes_and_tests(group.block),
    )
    return job_call(group, options, job)


def axes_and_tests(block: Block) -> dict[str, Any]:
    """The fields of a job that a block gives."""
    return {"axes": block.axes, "tests": tuple((t.n_prompt, t.n_gen) for t in block.tests)}


# -- what a driver says


def progress_line(index: int, count: int, step: Step, repetition: tuple[int, int] | None) -> str:
    """index: 0-based cell of count. repetition: (0-based, of how many) where the step has one."""
    said = step if step == "starting" else f"{step} run"
    if repetition is not None:
        said += f" {repetition[0] + 1}/{repetition[1]}"
    return f"{PROGRESS_NAME} {index + 1}/{count}: {said}"


def failure_line(failure: Failure) -> str:
    """One line, whatever the message holds; it begins with a newline, since a server that died leaves a line open."""
    message = " ".join(failure.message.split())[:1000]
    return f"\nllamasweep: failed ({failure.status}, {failure.kind}, {failure.reach}): {message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverRow:
    """One measured cell.

    samples_ns: timed repetitions. started_ns: Unix time at which each began. n_tokens: of each, all streams together.
    columns: latency columns of the attempt. applied: what the server really used.
    """

    cell_index: int
    test: Test
    samples_ns: tuple[int, ...]
    started_ns: tuple[int, ...]
    n_tokens: tuple[int, ...]
    columns: Mapping[str, Any]
    applied: Mapping[str, Scalar]
    flags: tuple[str, ...] = ()

    def line(self) -> str:
        """As stdout carries it."""
        return json.dumps(
            {
                "cell": self.cell_index,
                "n_prompt": self.test.n_prompt,
                "n_gen": self.test.n_gen,
                "samples_ns": self.samples_ns,
                "started_ns": self.started_ns,
                "n_tokens": self.n_tokens,
                "columns": dict(self.columns),
                "flags": self.flags,
                **self.applied,
            }
        )


# -- how it is read back


class Driven:
    """What all such engines share; each says on its own how it is called and what it cannot do."""

    def default_flash_attn(self, build: Build) -> str:
        del build
        return "auto"

    def row_reader(self) -> RowReader:
        return RowReader()

    def log_reader(self) -> LogReader:
        return LogReader()

    def parse_row(self, line: bytes) -> dict[str, Any] | None:
        return llama_bench_output.parse_row(line)

    def tell_what_cannot_be_said(self, group: Group, options: CallOptions) -> list[str]:
        del group, options
        return []

    def pair_rows(self, cells: Sequence[Cell], rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Rows say themselves which cell they answer; one that does not ends the pairing."""
        indices: list[int] = []
        for row in rows:
            index = row.get("cell")
            if not _is_count(index) or not max(indices, default=-1) < index < len(cells):
                break
            indices.append(index)
        return indices

    def repetition_tokens(self, row: Mapping[str, Any]) -> tuple[int, ...] | None:
        return _whole_list(row, "n_tokens")

    def repetition_starts_ns(self, row: Mapping[str, Any]) -> tuple[int, ...] | None:
        return _whole_list(row, "started_ns")

    def log_facts(self, log: LogReader, index: int) -> LogFacts:
        """What the log says of a cell's context: a server is set up once, before its first cell."""
        del index
        return log.load

    def verify(
        self, cell: Cell, index: int, row: Mapping[str, Any], log: LogReading, *, cpu_only: bool
    ) -> Verified:
        assert isinstance(log, LogReader)  # noqa: S101  (made by log_reader)
        facts = self.log_facts(log, index)
        found = llama_bench_applied.verify(cell, row, facts, log.load, cpu_only=cpu_only)
        return replace(
            found,
            flags=(*found.flags, *_texts(row.get("flags"))),
            columns={"requests": _request_times(row.get("columns"))},
            n_tokens=self.repetition_tokens(row),
        )

    def explain(
        self,
        *,
        exit_code: int | None,
        exit_signal: str | None,
        stderr_lines: Sequence[str],
        was_oom_killed: bool,
    ) -> Failure | None:
        """The driver's own word first; where it was killed, its ending and the server's last lines."""
        told = _told_failure(stderr_lines) if exit_code != 0 else None
        if told is not None and told.kind != SERVER_DIED:
            return told
        by_server = llama_bench_errors.explain(
            exit_code=exit_code,
            exit_signal=exit_signal,
            stderr_lines=[line for line in stderr_lines if not _FAILED.match(line)],
            was_oom_killed=was_oom_killed,
        )
        if told is None or by_server is None:
            return by_server
        if by_server.kind == "exit_code":
            return replace(told, reach=by_server.reach) if told.reach == "cell" else told
        return by_server if told.reach == "cell" else replace(by_server, reach=told.reach)


def _told_failure(stderr_lines: Sequence[str]) -> Failure | None:
    """The driver's last word, None where it had none."""
    told = next((m for m in map(_FAILED.match, reversed(stderr_lines)) if m), None)
    status = next((s for s in FAILED_STATUSES if told is not None and s == told[1]), None)
    if told is None or status is None:
        return None
    reach: Reach = next((r for r in _REACHES if r == told[3]), "cell")
    return Failure(status=status, kind=told[2], message=told[4], reach=reach)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT


def _whole_list(row: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    """A positive count for each repetition; None where that is not there."""
    told = row.get(name)
    if not isinstance(told, list) or len(told) != len(row["samples_ns"]):
        return None
    return tuple(told) if all(_is_count(value) and value > 0 for value in told) else None


def _texts(found: object) -> tuple[str, ...]:
    return tuple(word for word in found if isinstance(word, str)) if isinstance(found, list) else ()


def _request_times(found: object) -> RequestTimes:
    """Only what is a column of it: numbers, and short texts where the column is text."""
    items = found.items() if isinstance(found, dict) else ()
    told: dict[str, Any] = {
        name: value for name, value in items if _fits(_COLUMN_TYPES.get(name, ""), value)
    }
    return RequestTimes(**told)


_COLUMN_TYPES = {field.name: str(field.type) for field in fields(RequestTimes)}
_LONGEST_TEXT = 200


def _fits(kind: str, value: object) -> bool:
    if isinstance(value, str):
        return kind.startswith("str") and len(value) <= _LONGEST_TEXT
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and kind.startswith(("int", "float"))
