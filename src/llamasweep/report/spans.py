"""When an engine process did what: load, warm-up and depth, tests, throttling, as spans of seconds since its start. Pure.

Made of what the records tell: start of the process, time until its first test, start of each cell and of each repetition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from llamasweep.report import figures
from llamasweep.report.names import shown
from llamasweep.results.records import FAILED_STATUSES, Attempt, Sample
from llamasweep.results.timeline import Series, Timeline

MAX_SPANS = 200
"""Of one kind: a gap shorter than this part of the process is narrower than it can be drawn."""
IS_THROTTLED_FROM = 0.5
KINDS = ("failed", "throttled", "load", "prepare", "pp", "tg", "pg")
WORDS = {"prepare": "warm-up"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A stretch of one kind (KINDS). words: what it was, for tooltips."""

    kind: str
    start_s: float
    end_s: float
    words: str


def phase_spans(
    attempts: Sequence[Attempt], samples: Mapping[str, Sequence[Sample]], start_ns: int
) -> list[Span]:
    """Load, warm-up with depth, the repetitions of each test, and failed cells; nothing where the engine told no times."""
    loads = [attempt.load_s for attempt in attempts if attempt.load_s is not None]
    spans = [Span(kind="load", start_s=0.0, end_s=max(loads), words="load")] if loads else []
    for attempt in attempts:
        timed = [
            (unix_ns(sample.started_at), sample.duration_ns)
            for sample in samples.get(attempt.attempt_id, ())
            if sample.started_at is not None
        ]
        spans += _failed(attempt, start_ns)
        if not timed:
            continue
        first_ns = min(start for start, _ in timed)
        last_ns = max(start + duration for start, duration in timed)
        begun_ns = unix_ns(attempt.started_at) if attempt.started_at else first_ns
        begun_s = max((begun_ns - start_ns) / 1e9, max(loads, default=0.0))
        first_s, last_s = (first_ns - start_ns) / 1e9, (last_ns - start_ns) / 1e9
        name = _test_words(attempt)
        if begun_s < first_s:
            words = f"before {name}: warm-up" + (" and depth" if attempt.n_depth else "")
            spans.append(Span(kind="prepare", start_s=begun_s, end_s=first_s, words=words))
        n = figures.counted(len(timed), "repetition")
        spans.append(
            Span(kind=attempt.test_kind, start_s=first_s, end_s=last_s, words=f"{name}, {n}")
        )
    return spans


def throttled_spans(timeline: Timeline) -> list[Span]:
    """From each reading that told of a thermal or power limit to the next reading of its device.

    timeline: its times counted from the start of the process.
    """
    spans = []
    for (_, device, metric), series in sorted(timeline.series.items()):
        if metric == "is_throttled":
            name = f"{shown(device, 24)} throttled"
            spans += [
                Span(kind="throttled", start_s=start, end_s=end, words=name)
                for start, end in _throttled(series)
            ]
    return spans


def throttled_share(timeline: Timeline) -> float | None:
    """Share of a device's readings with a limit, of the worst device; None where nothing reads it."""
    shares = [
        sum(value >= IS_THROTTLED_FROM for value in series.values) / len(series.values)
        for (_, _, metric), series in timeline.series.items()
        if metric == "is_throttled" and series.values
    ]
    return max(shares, default=None)


def drawable(spans: Iterable[Span], length_s: float) -> tuple[Span, ...]:
    """Spans of KINDS in order, within the process, those of a kind joined where no gap between them could be seen."""
    gap_s = length_s / MAX_SPANS
    joined: list[Span] = []
    known = [span for span in spans if span.kind in KINDS]
    for span in sorted(known, key=lambda s: (KINDS.index(s.kind), s.start_s, s.end_s)):
        start_s, end_s = max(0.0, span.start_s), min(length_s, span.end_s)
        if end_s < start_s:
            continue
        last = joined[-1] if joined else None
        if last is not None and last.kind == span.kind and start_s - last.end_s < gap_s:
            words = (
                last.words
                if last.words == span.words
                else f"several: {WORDS.get(span.kind, span.kind)}"
            )
            joined[-1] = Span(
                kind=span.kind,
                start_s=last.start_s,
                end_s=max(last.end_s, end_s),
                words=words,
            )
        else:
            joined.append(Span(kind=span.kind, start_s=start_s, end_s=end_s, words=span.words))
    return tuple(joined)


def unix_ns(moment: datetime) -> int:
    """A time with its zone as Unix nanoseconds."""
    return round(moment.timestamp() * 1e6) * 1000


def _failed(attempt: Attempt, start_ns: int) -> list[Span]:
    """A failed cell from its start to its end."""
    start, end = attempt.started_at, attempt.finished_at
    if attempt.status not in FAILED_STATUSES or start is None or end is None:
        return []
    words = f"{_test_words(attempt)}: {attempt.status.replace('_', ' ')}"
    start_s, end_s = ((unix_ns(moment) - start_ns) / 1e9 for moment in (start, end))
    return [Span(kind="failed", start_s=start_s, end_s=end_s, words=words)]


def _test_words(attempt: Attempt) -> str:
    depth = f" at depth {figures.count(attempt.n_depth)}" if attempt.n_depth else ""
    return shown(attempt.test_label, 40) + depth


def _throttled(series: Series) -> list[tuple[float, float]]:
    times = series.times_ns
    ends = (*times[1:], times[-1]) if times else ()
    return [
        (time_ns / 1e9, end_ns / 1e9)
        for time_ns, end_ns, value in zip(times, ends, series.values, strict=True)
        if value >= IS_THROTTLED_FROM
    ]
