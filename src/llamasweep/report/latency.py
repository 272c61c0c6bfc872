"""Latency as engines that stream measure it: time to the first token, per further token, and of the whole request.

Takes the columns `<measure>_<figure>_s` of the requests. Rows in, plain data out; a measure that no row has is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.rows import Row, axis_value, varying
from llamasweep.report.strips import setting_word

MEASURES: dict[str, str] = {
    "ttft": "time to the first token",
    "tpot": "time per token after the first",
    "e2e": "time of the whole request",
}
KIND_OF = {"ttft": "pp", "tpot": "tg", "e2e": "pg"}
"""The kind of test that asks for a measure: of equally long lines its own speaks in the title."""
AXES = ("turn", "concurrency", "n_depth", "n_prompt")
"""What latency is drawn along, the first of them that varies."""
MAX_LINES = 6
MAX_BARS = 24
MAX_TITLE_LINES = 3
LEAST_FOR_P95 = 20
"""Of fewer requests the 95th percentile lies between the two slowest, and says nothing about 95 % of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """One row. median_s: of its requests. p95_s: None where it was not measured. n_requests: None where not told."""

    row: Row
    x: float | None
    label: str
    median_s: float
    p95_s: float | None
    n_requests: int | None

    @property
    def has_few_requests(self) -> bool:
        """Whether its 95th percentile is only what lies between its two slowest; also where nobody told how many it had."""
        return self.n_requests is None or self.n_requests < LEAST_FOR_P95


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """One measure. axis: None where nothing varies and each line is a single timing. n_left_out: lines beyond the bound."""

    measure: str
    axis: str | None
    lines: tuple[tuple[Timing, ...], ...]
    n_left_out: int


Read = Callable[[Row, str, str], float | None]
"""(row, measure, figure) -> seconds, None where it was not measured."""


def seconds(row: Row, measure: str, figure: str) -> float | None:
    """A latency column of the row; None where it was not measured."""
    value: float | None = getattr(row.attempt.requests, f"{measure}_{figure}_s", None)
    return value if value is not None and value > 0 else None


def latencies(rows: Sequence[Row], read: Read = seconds) -> tuple[Latency, ...]:
    """Each measure that some row has, in the order of a request."""
    found = []
    for measure in MEASURES:
        timed = [
            (row, median_s, read(row, measure, "p95"))
            for row in rows
            if (median_s := read(row, measure, "median")) is not None
        ]
        if timed:
            found.append(_latency(measure, timed))
    return tuple(found)


def title(view: Latency) -> str:
    """What the measure does along its axis, or its range over all rows, without a full stop."""
    word = MEASURES[view.measure]
    word = word[0].upper() + word[1:]
    medians = [timing.median_s for line in view.lines for timing in line]
    if view.axis is None:
        return f"{word}: {figures.span(duration(min(medians)), duration(max(medians)))}"
    best = max(view.lines, key=lambda line: (len(line), line[0].row.kind == KIND_OF[view.measure]))
    first, last = best[0], best[-1]
    if view.axis == "turn" and 1 < len(view.lines) <= MAX_TITLE_LINES:
        ends = [line[-1] for line in view.lines if line[-1].x == last.x]
        words = ", ".join(f"{duration(end.median_s)} ({end.label})" for end in ends)
        return f"{word} at {_at(view.axis, last)}: {words}"
    return (
        f"{word}: {duration(first.median_s)} at {_at(view.axis, first)}, {duration(last.median_s)} at {_at(view.axis, last)}"
        + (f" ({best[0].label})" if len(view.lines) > 1 else "")
    )


def timing_words(timing: Timing, view: Latency) -> str:
    """The sentence of a mark."""
    text = f"{shown(timing.row.subject, 60)}, {timing.row.test}, {MEASURES[view.measure]}"
    if view.axis is not None:
        text += f" at {_at(view.axis, timing)}"
    text += f": median {duration(timing.median_s)}"
    n = timing.n_requests
    of = "" if n is None else f" of {figures.counted(n, 'request')}"
    if timing.p95_s is not None and timing.has_few_requests:
        return f"{text}, p95{of} {duration(timing.p95_s)}, between the two slowest"
    if timing.p95_s is not None:
        return f"{text}, 95{figures.THIN}%{of} within {duration(timing.p95_s)}"
    return text + (f" ({of.strip()})" if of else "")


def duration(value_s: float) -> str:
    """Milliseconds below a second, else seconds, in three digits."""
    if value_s < 1:
        return f"{figures.number(value_s * 1e3)}{figures.THIN}ms"
    return f"{figures.number(value_s)}{figures.THIN}s"


def _at(axis: str, timing: Timing) -> str:
    return f"{axis_word(axis)} {figures.count(int(timing.x or 0))}"


_Timed = tuple[Row, float, float | None]
"""(row, median, p95)."""


def _latency(measure: str, timed: Sequence[_Timed]) -> Latency:
    rows = [row for row, _, _ in timed]
    axis = next((axis for axis in AXES if len({_x(row, axis) for row in rows}) > 1), None)
    lines = _lines(timed, axis)
    if axis is not None:
        along = {key: line for key, line in lines.items() if len(line) > 1}
        axis, lines = (axis, along) if along else (None, _lines(timed, None))
    labels = _labels([line[0][0] for line in lines.values()], _others(rows, axis))
    made = [
        tuple(
            sorted(
                (
                    Timing(
                        row=row,
                        x=None if axis is None else _x(row, axis),
                        label=label,
                        median_s=median_s,
                        p95_s=p95_s,
                        n_requests=row.attempt.requests.n_requests
                        if row.attempt.requests
                        else None,
                    )
                    for row, median_s, p95_s in line
                ),
                key=lambda timing: timing.x or 0.0,
            )
        )
        for line, label in zip(lines.values(), labels, strict=True)
    ]
    made.sort(key=lambda line: line[0].median_s)
    bound = MAX_BARS if axis is None else MAX_LINES
    return Latency(
        measure=measure,
        axis=axis,
        lines=tuple(made[:bound]),
        n_left_out=max(0, len(made) - bound),
    )


def _lines(timed: Sequence[_Timed], axis: str | None) -> dict[tuple[object, ...], list[_Timed]]:
    """Rows that differ on the axis alone; without an axis each row for itself."""
    others = _others([row for row, _, _ in timed], axis)
    lines: dict[tuple[object, ...], list[_Timed]] = {}
    for one in timed:
        row = one[0]
        if axis is None or _x(row, axis) is not None:
            key = (row.subject, row.attempt.engine, row.test, *(axis_value(row, n) for n in others))
            lines.setdefault((*key, row.anchor) if axis is None else key, []).append(one)
    return lines


def _others(rows: Sequence[Row], axis: str | None) -> list[str]:
    return [name for name in varying(rows) if name != axis]


def _x(row: Row, axis: str) -> float | None:
    value = row.attempt.n_prompt if axis == "n_prompt" else row.settings.get(axis)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _labels(firsts: Sequence[Row], others: Sequence[str]) -> list[str]:
    """Only what differs: model, engine, test, settings."""
    columns = [
        [row.subject for row in firsts],
        [shown(row.attempt.engine, 24) for row in firsts],
        [row.test for row in firsts],
        *([setting_word(name, axis_value(row, name)) for row in firsts] for name in others),
    ]
    parts: list[list[str]] = [[] for _ in firsts]
    for column in columns:
        if len(set(column)) > 1:
            for part, word in zip(parts, column, strict=True):
                part.append(value_word(word))
    return [", ".join(part) or row.subject for part, row in zip(parts, firsts, strict=True)]
