"""What did not work: failed cells with all that is known of the reason, impossible ones grouped by theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report.names import shown, shown_block
from llamasweep.report.rows import NO_REASON, Row, axis_value, varying
from llamasweep.report.strips import setting_word
from llamasweep.results.records import FAILED_STATUSES

MAX_FAILURES = 60
MAX_ROWS_NAMED = 8
MAX_ROWS_LISTED = 200
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,\u202f]\d+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Cells that failed in the same way: one card.

    message: of the first; is_varied: the numbers in it differ among the cells. end: how the processes ended, in words.
    stderr, log_path: of the first of them that has any, None where none has; n_logs: how many logs there are in all.
    rows: anchors and names, the first MAX_ROWS_NAMED; more_rows: those after them, up to MAX_ROWS_LISTED.
    """

    title: str
    message: str
    is_varied: bool
    end: str
    stderr: str | None
    log_path: str | None
    n_logs: int
    rows: tuple[tuple[str, str], ...]
    more_rows: tuple[tuple[str, str], ...]
    n_rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Impossible:
    """Cells that were not tried, by reason."""

    title: str
    reason: str
    rows: tuple[tuple[str, str], ...]
    n_rows: int


STATUS_WORDS: dict[str, str] = {
    "ok": "measured",
    "failed": "failed",
    "timeout": "timed out",
    "out_of_memory": "out of memory",
    "unsupported": "not possible here",
    "skipped": "skipped",
}


def failures(rows: Sequence[Row]) -> tuple[tuple[Failure, ...], int]:
    """Cards of failed cells, one per kind and message without its numbers; and how many cells are beyond the bound."""
    axes = varying(rows)
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.status in FAILED_STATUSES:
            attempt = row.attempt
            cause = _NUMBER.sub("#", attempt.error_message or "")
            groups.setdefault((row.status, attempt.error_kind, cause), []).append(row)
    cards = [_failure(group, axes) for group in groups.values()]
    return tuple(cards[:MAX_FAILURES]), sum(card.n_rows for card in cards[MAX_FAILURES:])


def impossible(rows: Sequence[Row]) -> tuple[Impossible, ...]:
    """Unsupported and skipped cells by status and reason, most first."""
    axes = varying(rows)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status in ("unsupported", "skipped"):
            reason = row.attempt.error_message or NO_REASON
            groups.setdefault((row.status, reason), []).append(row)
    found = [
        Impossible(
            title=_title(status, None),
            reason=shown(reason, 400),
            rows=_named(group, axes),
            n_rows=len(group),
        )
        for (status, reason), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda item: -item.n_rows))


def row_name(row: Row, axes: Sequence[str]) -> str:
    """A row in words: model, quantisation, test and what varies."""
    words = [shown(row.subject, 60), row.test]
    words += [
        setting_word(axis, axis_value(row, axis))
        for axis in axes
        if axis_value(row, axis) is not None
    ]
    return ", ".join(words)


def _failure(group: Sequence[Row], axes: Sequence[str]) -> Failure:
    told = [row for row in group if row.attempt.stderr_tail] or list(group)
    attempt = told[0].attempt
    logs = dict.fromkeys(row.attempt.log_path for row in group if row.attempt.log_path)
    log_path = attempt.log_path or next(iter(logs), None)
    named = tuple((row.anchor, row_name(row, axes)) for row in group[:MAX_ROWS_LISTED])
    return Failure(
        title=_title(attempt.status, attempt.error_kind),
        message=shown(attempt.error_message or f"no message: {NO_REASON}", 600),
        is_varied=len({row.attempt.error_message for row in group}) > 1,
        end="; ".join(tuple(dict.fromkeys(_end(row) for row in group))[:3]),
        stderr=shown_block(attempt.stderr_tail) if attempt.stderr_tail else None,
        log_path=shown(log_path, 160) if log_path else None,
        n_logs=len(logs),
        rows=named[:MAX_ROWS_NAMED],
        more_rows=named[MAX_ROWS_NAMED:],
        n_rows=len(group),
    )


def _title(status: str, kind: str | None) -> str:
    words = STATUS_WORDS.get(status, status)
    if kind and kind.replace("_", " ") != words:
        words += f": {shown(kind.replace('_', ' '), 60)}"
    return words[0].upper() + words[1:]


def _end(row: Row) -> str:
    attempt = row.attempt
    if attempt.exit_signal:
        return f"ended by {shown(attempt.exit_signal, 30)}"
    if attempt.exit_code is not None:
        return f"exit code {attempt.exit_code}"
    if attempt.started_at is None and attempt.stderr_tail is None:
        return "no exit code: the engine was not started for it"
    return "no exit code: the process was ended by the runner or the row came before its end"


def _named(group: Sequence[Row], axes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((row.anchor, row_name(row, axes)) for row in group[:MAX_ROWS_NAMED])
