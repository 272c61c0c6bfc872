"""From a group's log to attempts and samples: the one way, after a normal end and after a kill alike.

Rows pair with cells by index; the cell that a failing process was at gets the failure with its reason; what comes
after it is left for another process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from llamasweep.engines.base import Engine, Failure, LogReading
from llamasweep.engines.known import engine_named
from llamasweep.results.measured_rows import BUSY_FROM
from llamasweep.results.rates import MAD_TO_SIGMA, leading_discards, summarise_rates
from llamasweep.results.records import Attempt, Phase, Sample, TelemetryFigures
from llamasweep.results.repetition_checks import FIRST_SLOW, WIDE
from llamasweep.results.request_load import request_load
from llamasweep.results.summary import fold
from llamasweep.results.timeline import Timeline, make_timeline
from llamasweep.run import phases as phase_cut
from llamasweep.run.ceiling_columns import ceiling_columns
from llamasweep.run.failures import TAIL_LINES, find_failure, missing_row
from llamasweep.run.group_log import GroupRecord
from llamasweep.run.secrets import hide_home
from llamasweep.sweep.cell import Cell, Test
from llamasweep.sweep.subjects import ModelSource

_TAIL_CHARS = 4000
_UNTIMED_FRACTION = 0.05
"""More time than this between repetitions (depth, prompts of a generation), and energy per token says little of the tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembled:
    """What a group's log amounts to.

    attempts: rows that came, then the failed cell if there was one. samples: of the rows. failure: None after a clean
    end, a kill of the runner or a stop. n_cells: asked for. next_index: first cell that has no attempt.
    """

    attempts: tuple[Attempt, ...]
    samples: tuple[Sample, ...]
    failure: Failure | None
    n_cells: int
    next_index: int


def assemble(record: GroupRecord) -> Assembled:
    """Rows, samples and the failure, if any, of one group."""
    cells = record.description["cells"]
    engine = engine_named(record.description["common"]["engine"])
    log = engine.log_reader()
    for line in record.stderr_lines:
        log.feed(line)
    rows = _paired(record, engine)
    samples_ns = {i: row["samples_ns"] for i, row in rows.items()}
    start_ns = int(record.description["start_ns"])
    told = {i: engine.repetition_starts_ns(row) for i, row in rows.items()}
    starts_ns = {index: times for index, times in told.items() if times is not None}
    spans = phase_cut.cut(
        record.events, record.end.get("start_ns", start_ns), samples_ns, starts_ns
    )
    row_times = {t.event.cell_index: t.time_ns for t in record.events if t.event.kind == "row"}
    arrivals = {index: row_times.get(n) for n, index in enumerate(rows)}
    starts = {t.event.cell_index: t.time_ns for t in record.events if t.event.step == "starting"}
    timeline = make_timeline(record.readings)
    attempts: list[Attempt] = []
    samples: list[Sample] = []
    for index, row in rows.items():
        context = _RowContext(
            record=record,
            engine=engine,
            index=index,
            row=row,
            log=log,
            spans=spans,
            started_ns=starts.get(index),
            arrived_ns=arrivals.get(index),
            timeline=timeline,
        )
        attempt, kept = _measured(context)
        attempts.append(attempt)
        samples += kept
    next_index = max(rows, default=-1) + 1
    for index in sorted(set(range(next_index)) - set(rows)):
        attempts += _failed(record, range(index, index + 1), missing_row(record), starts)
    failure = find_failure(record, next_index, len(cells))
    if failure is not None and next_index < len(cells):
        last = len(cells) if failure.reach in {"load", "call"} else next_index + 1
        attempts += _failed(record, range(next_index, last), failure, starts)
        next_index = last
    return Assembled(
        attempts=tuple(attempts),
        samples=tuple(samples),
        failure=failure,
        n_cells=len(cells),
        next_index=next_index,
    )


def _paired(record: GroupRecord, engine: Engine) -> dict[int, dict[str, Any]]:
    """Cell index -> its row."""
    reader = engine.row_reader()
    events = (reader.feed(line) for line in record.stdout_lines)
    rows = [e.row for e in events if e is not None and e.row is not None]
    cells = [read_cell(cell, record.description) for cell in record.description["cells"]]
    return dict(zip(engine.pair_rows(cells, rows), rows, strict=False))


@dataclass(frozen=True, kw_only=True, slots=True)
class _RowContext:
    record: GroupRecord
    engine: Engine
    index: int
    row: Mapping[str, Any]
    log: LogReading
    spans: Sequence[Phase]
    started_ns: int | None
    arrived_ns: int | None
    timeline: Timeline


def _measured(c: _RowContext) -> tuple[Attempt, list[Sample]]:
    description = c.record.description
    cell = read_cell(description["cells"][c.index], description)
    base = _base(c.record, c.index)
    verified = c.engine.verify(cell, c.index, c.row, c.log, cpu_only=bool(description["cpu_only"]))
    mismatch = _other_tests(c) or verified.mismatch
    if mismatch is not None:
        failure = Failure(status="failed", kind="row_mismatch", message=mismatch)
        return replace(base, **_failure_fields(c.record, failure)), []
    durations_ns: list[int] = list(c.row["samples_ns"])
    of_the_test = cell.test.n_prompt + cell.test.n_gen
    n_tokens = verified.n_tokens or [of_the_test] * len(durations_ns)
    rates = [n * 1e9 / ns for n, ns in zip(n_tokens, durations_ns, strict=True)]
    n_discarded = leading_discards(rates, description["discard"])
    kept = rates[n_discarded:]
    summary = summarise_rates(kept)
    telemetry, reasons = _telemetry(c, sum(n_tokens[n_discarded:]), n_discarded)
    ceiling, ceiling_reasons, ceiling_flags = ceiling_columns(
        description["cells"][c.index].get("ceiling", {}), cell.test.kind, summary.median_tps
    )
    differences = [
        *verified.differences,
        *_repetitions(len(durations_ns), base.n_reps_requested),
    ]
    flags = [
        *(["applied_differs"] if len(differences) > len(verified.differences) else []),
        *verified.flags,
        *_rate_flags(rates, kept),
        *_telemetry_flags(telemetry),
        *ceiling_flags,
    ]
    attempt = replace(
        base,
        status="ok",
        **verified.columns,
        **_times(c),
        applied=dict(verified.applied),
        n_ctx_applied=verified.n_ctx,
        n_gpu_layers_offloaded=verified.n_layers_offloaded,
        n_samples=len(kept),
        n_discarded=n_discarded,
        median_tps=summary.median_tps,
        mean_tps=summary.mean_tps,
        sample_std_tps=summary.sample_std_tps,
        mad_tps=summary.mad_tps,
        min_tps=summary.min_tps,
        max_tps=summary.max_tps,
        stream_tps=_of_each(summary.median_tps, cell),
        flags=tuple(dict.fromkeys([*base.flags, *flags])),
        differences=tuple(differences),
        reasons={**reasons, **ceiling_reasons},
        telemetry=telemetry,
        **ceiling,
    )
    return attempt, _samples(c, attempt, n_tokens, n_discarded)


def _of_each(median_tps: float | None, cell: Cell) -> float | None:
    """What one of several streams gets; None of one stream."""
    n_streams = request_load(dict(cell.params)).n_streams
    return None if median_tps is None or n_streams < 2 else median_tps / n_streams


def _other_tests(c: _RowContext) -> str | None:
    """Why no row of this process can be trusted to answer the cell in its place; None where each can."""
    n_cells, n_tests = len(c.record.description["cells"]), c.log.count
    if n_tests is None or n_tests == n_cells:
        return None
    return f"the engine ran {n_tests} tests where {n_cells} were asked for; look at extra_args"


def _repetitions(n_measured: int, n_asked: int | None) -> list[str]:
    """`extra_args` may say another -r."""
    if n_asked is None or n_measured == n_asked:
        return []
    return [f"repetitions: asked {n_asked}, applied {n_measured}"]


def _samples(
    c: _RowContext, attempt: Attempt, n_tokens: Sequence[int], n_discarded: int
) -> list[Sample]:
    starts = {
        p.repetition_index: p.start_ns
        for p in c.spans
        if p.kind == "repetition" and p.cell_index == c.index
    }
    return [
        Sample(
            attempt_id=attempt.attempt_id,
            cell_id=attempt.cell_id,
            repetition_index=i,
            n_tokens=n_tokens[i],
            duration_ns=ns,
            tps=n_tokens[i] * 1e9 / ns,
            is_discarded=i < n_discarded,
            started_at=_utc(starts.get(i)),
        )
        for i, ns in enumerate(c.row["samples_ns"])
    ]


def _times(c: _RowContext) -> dict[str, Any]:
    load = next((p for p in c.spans if p.kind == "load"), None)
    load_s = None
    if load is not None and load.end_ns is not None:
        load_s = (load.end_ns - load.start_ns) / 1e9
    return {
        "started_at": _utc(c.started_ns),
        "finished_at": _utc(c.arrived_ns),
        "load_s": load_s,
        "depth_s": phase_cut.depth_s(c.spans, c.index),
    }


def _telemetry(
    c: _RowContext, n_tokens: int, n_discarded: int
) -> tuple[TelemetryFigures | None, dict[str, str]]:
    if c.record.description["telemetry_interval_s"] is None:
        return None, {"telemetry": "telemetry was switched off in the sweep"}
    span = phase_cut.measured_span(c.spans, c.index, n_discarded)
    if span is None:
        return None, {"telemetry": "no progress lines tell when the test ran"}
    figures, reasons = fold(
        c.timeline,
        start_ns=span[0],
        end_ns=span[1],
        n_tokens=n_tokens,
        n_cores=c.record.description["n_cores"],
        interval_s=c.record.description["telemetry_interval_s"],
        absent={**c.record.description["absent"], **(c.record.end.get("absent") or {})},
        uses_gpu=False if c.record.description["cpu_only"] else None,
    )
    if phase_cut.untimed_fraction(c.spans, c.index, *span) > _UNTIMED_FRACTION:
        figures = replace(figures, energy_per_token_j=None)
        reasons["energy_per_token_j"] = (
            "a depth was filled or a prompt read between the repetitions"  # noqa: S105  (a column)
        )
    return figures, reasons


def _rate_flags(rates: Sequence[float], kept: Sequence[float]) -> list[str]:
    flags = []
    summary = summarise_rates(kept)
    if summary.mad_tps is not None and summary.median_tps and len(kept) >= 3:
        if MAD_TO_SIGMA * summary.mad_tps > WIDE * summary.median_tps:
            flags.append("wide_spread")
        if len(rates) == len(kept) and rates[0] < (1 - FIRST_SLOW) * summary.median_tps:
            flags.append("first_sample_slow")
    return flags


def _telemetry_flags(telemetry: TelemetryFigures | None) -> list[str]:
    if telemetry is None:
        return []
    flags = []
    if (
        telemetry.cpu_use_other_fraction is not None
        and telemetry.cpu_use_other_fraction > BUSY_FROM
    ):
        flags.append("busy_neighbour")
    if telemetry.throttled_fraction:
        flags.append("throttled")
    if telemetry.n_major_faults and telemetry.disk_read_bytes:
        flags.append("paged_from_disk")
    return flags


def _failed(
    record: GroupRecord, indices: Iterable[int], failure: Failure, starts: Mapping[int | None, int]
) -> list[Attempt]:
    """Rows for cells that share this failure."""
    return [
        replace(
            _base(record, i),
            **_failure_fields(record, failure),
            started_at=_utc(starts.get(i)),
            finished_at=_utc(record.end.get("end_ns")),
        )
        for i in indices
    ]


def _failure_fields(record: GroupRecord, failure: Failure) -> dict[str, Any]:
    home = os.path.expanduser("~")  # noqa: PTH111  (Path.home() raises where there is none)
    tail = hide_home("\n".join(record.stderr_lines[-TAIL_LINES:]), home)[-_TAIL_CHARS:]
    ending = record.ending
    return {
        "status": failure.status,
        "error_kind": failure.kind,
        "error_message": hide_home(failure.message, home),
        "exit_code": ending.exit_code if ending else None,
        "exit_signal": ending.exit_signal if ending else None,
        "stderr_tail": tail or None,
    }


def _base(record: GroupRecord, index: int) -> Attempt:
    """Identity of one attempt, as written down before the engine started."""
    description, cell = record.description, record.description["cells"][index]
    test = Test(n_prompt=cell["n_prompt"], n_gen=cell["n_gen"])
    return Attempt(
        **description["common"],
        attempt_id=f"{record.log_id}-{index:04d}",
        cell_id=cell["cell_id"],
        attempt_index=cell["attempt_index"],
        status="failed",
        log_path=f"logs/{record.log_id}.jsonl",
        test_kind=test.kind,
        test_label=test.label,
        n_prompt=test.n_prompt,
        n_gen=test.n_gen,
        n_depth=int(cell["requested"].get("n_depth", 0)),
        requested=dict(cell["requested"]),
        flags=tuple(description["flags"]),
    )


def read_cell(cell: Mapping[str, Any], description: Mapping[str, Any]) -> Cell:
    """The cell as written in the log."""
    return Cell(
        model=ModelSource(label=description["common"]["model_label"]),
        test=Test(n_prompt=cell["n_prompt"], n_gen=cell["n_gen"]),
        params=tuple(cell["requested"].items()),
        engine=description["common"]["engine"],
    )


def _utc(time_ns: int | None) -> datetime | None:
    return None if time_ns is None else datetime.fromtimestamp(time_ns / 1e9, tz=UTC)
