"""Why a group's process gave fewer rows than cells: the runner's own verdict first, then the engine's words."""

from __future__ import annotations

from dataclasses import replace

from llamasweep.engines.base import Engine, Failure
from llamasweep.engines.known import engine_named
from llamasweep.run.group_log import GroupRecord

TAIL_LINES = 30
_SHOWN_BYTES = 120


def find_failure(record: GroupRecord, n_rows: int, n_cells: int) -> Failure | None:
    """None where nobody failed: all rows are there, the run was stopped, or the runner was killed."""
    reason = record.end.get("reason")
    if record.ending is None or reason == "stopped":
        return None
    message = str(record.end.get("message"))
    if reason == "timeout":
        return Failure(status="timeout", kind="hang", message=message)
    if reason == "garbage":
        return Failure(status="failed", kind="garbage_output", message=message)
    if n_rows >= n_cells:
        return None
    failure = _by_ending(record) or _too_few_rows(record, n_rows, n_cells)
    if n_rows > 0 and failure.reach == "load":  # fit_target loads the model anew for every test
        return replace(failure, reach="cell")
    return failure


def _by_ending(record: GroupRecord) -> Failure | None:
    assert record.ending is not None  # noqa: S101  (asked by the caller)
    return _engine(record).explain(
        exit_code=record.ending.exit_code,
        exit_signal=record.ending.exit_signal,
        stderr_lines=record.stderr_lines[-TAIL_LINES:],
        was_oom_killed=bool(record.end.get("was_oom_killed")),
    )


def missing_row(record: GroupRecord) -> Failure:
    """Of a cell whose row is missing although later ones came."""
    shown = _garbage(record)
    if shown is None:
        message = "the engine gave no result for it, but went on to the next"
        return Failure(status="failed", kind="row_missing", message=message)
    message = f"stdout holds no result for it but {shown!r}"
    return Failure(status="failed", kind="garbage_output", message=message)


def _too_few_rows(record: GroupRecord, n_rows: int, n_cells: int) -> Failure:
    shown = _garbage(record)
    if shown is not None:
        message = f"stdout holds no result but {shown!r}"
        return Failure(status="failed", kind="garbage_output", message=message)
    message = f"the engine ended well but gave {n_rows} of {n_cells} results"
    return Failure(status="failed", kind="too_few_rows", message=message)


def _garbage(record: GroupRecord) -> str | None:
    """The beginning of the last line on stdout that is no result; None where there is none."""
    lines = [*record.stdout_lines, record.stdout_rest]
    parse_row = _engine(record).parse_row
    last = next(
        (line for line in reversed(lines) if line.strip() and parse_row(line) is None), None
    )
    return None if last is None else last[:_SHOWN_BYTES].decode("utf-8", "replace")


def _engine(record: GroupRecord) -> Engine:
    return engine_named(record.description["common"]["engine"])
