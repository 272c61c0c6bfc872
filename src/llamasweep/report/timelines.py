"""What the sensors told of each engine process while it ran: which processes are drawn, and each as plain data. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llamasweep.report import figures
from llamasweep.report.lanes import Lanes, lanes
from llamasweep.report.names import model_family, shown
from llamasweep.report.spans import Span, drawable, phase_spans, throttled_share, throttled_spans
from llamasweep.report.strips import setting_word
from llamasweep.results.records import FAILED_STATUSES, Attempt, Reading, RunData, Sample
from llamasweep.results.timeline import Series, Timeline, make_timeline
from llamasweep.sweep.parameters import Scalar

MAX_DRAWN = 12
MAX_POINTS = 40_000
"""Of all lines together, some 14 bytes of the page each: many devices mean fewer processes."""
_LONGEST_S = 366 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessLine:
    """One engine process over time. subject: model and what its group has of its own. place: `2 of 6`.

    throttled: share of a device's readings with a thermal or power limit, None where nothing reads it. n_readings: of
    all sensors, drawn or not.
    """

    subject: str
    place: str
    build: str
    length_s: float
    n_cells: int
    n_failed: int
    n_readings: int
    throttled: float | None
    spans: tuple[Span, ...]
    lanes: Lanes


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessLines:
    """drawn: in the order in which they ran. n_processes: all with readings. n_still: those in which nothing moved, as
    far as was looked."""

    drawn: tuple[ProcessLine, ...]
    n_processes: int
    n_still: int

    @property
    def n_left_out(self) -> int:
        return self.n_processes - self.n_still - len(self.drawn)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Process:
    run: RunData
    number: int
    start_ns: int
    end_ns: int
    attempts: tuple[Attempt, ...]
    readings: tuple[Reading, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Failed and throttled ones first, then the longest."""
        is_told = any(
            attempt.status in FAILED_STATUSES or _is_throttled(attempt) for attempt in self.attempts
        )
        return (-int(is_told), self.start_ns - self.end_ns)


def _is_throttled(attempt: Attempt) -> bool:
    fraction = None if attempt.telemetry is None else attempt.telemetry.throttled_fraction
    return fraction is not None and fraction > 0


def process_lines(runs: Sequence[RunData]) -> ProcessLines:
    """Time lines of the processes that tell most, bounded by MAX_DRAWN."""
    processes = [process for run in runs for process in _processes(run)]
    order = sorted(range(len(processes)), key=lambda i: (processes[i].rank, i))[:MAX_DRAWN]
    own = _own_settings(processes)
    drawn: dict[int, ProcessLine] = {}
    n_points = n_still = 0
    for i in order:
        line = _line(processes[i], own)
        n_points += sum(
            len(piece.values)
            for lane in line.lanes.lanes
            for one in lane.lines
            for piece in one.pieces
        )
        if drawn and n_points > MAX_POINTS:
            break
        if line.lanes.lanes:
            drawn[i] = line
        else:
            n_still += 1
    return ProcessLines(
        drawn=tuple(drawn[i] for i in sorted(drawn)),
        n_processes=len(processes),
        n_still=n_still,
    )


def _processes(run: RunData) -> list[_Process]:
    """Processes of a run with readings in their time."""
    readings = sorted(run.readings, key=lambda reading: reading.time_ns)
    times_ns = [reading.time_ns for reading in readings]
    by_log: dict[str, list[Attempt]] = {}
    for attempt in run.attempts:
        if attempt.log_path:
            by_log.setdefault(attempt.log_path, []).append(attempt)
    found = []
    for index, group in enumerate(run.info.groups):
        window = _window(group)
        if window is None:
            continue
        low, high = bisect_left(times_ns, window[0]), bisect_right(times_ns, window[1])
        if low < high:
            found.append(
                _Process(
                    run=run,
                    number=index + 1,
                    start_ns=window[0],
                    end_ns=window[1],
                    attempts=tuple(by_log.get(f"logs/{group.get('log_id')}.jsonl", ())),
                    readings=tuple(readings[low:high]),
                )
            )
    return found


def _window(group: Mapping[str, Any]) -> tuple[int, int] | None:
    start, end = group.get("start_ns"), group.get("end_ns")
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    if not 0 < end - start <= _LONGEST_S * 1e9:
        return None
    return start, end


def _line(process: _Process, own: Sequence[str]) -> ProcessLine:
    timeline = _since(make_timeline(process.readings), process.start_ns)
    length_s = (process.end_ns - process.start_ns) / 1e9
    spans = [
        *phase_spans(process.attempts, _samples(process), process.start_ns),
        *throttled_spans(timeline),
    ]
    builds = dict.fromkeys(a.build_label for a in process.attempts if a.build_label)
    return ProcessLine(
        subject=_subject(process.attempts, own),
        place=f"{process.number} of {figures.count(len(process.run.info.groups))}",
        build=", ".join(shown(label, 60) for label in builds),
        length_s=length_s,
        n_cells=len(process.attempts),
        n_failed=sum(a.status in FAILED_STATUSES for a in process.attempts),
        n_readings=len(process.readings),
        throttled=throttled_share(timeline),
        spans=drawable(spans, length_s),
        lanes=lanes(timeline),
    )


def _since(timeline: Timeline, start_ns: int) -> Timeline:
    """The timeline with its times counted from the start of the process."""
    return Timeline(
        series={
            key: Series(
                times_ns=tuple(time_ns - start_ns for time_ns in series.times_ns),
                values=series.values,
            )
            for key, series in timeline.series.items()
        },
        all_times_ns=tuple(time_ns - start_ns for time_ns in timeline.all_times_ns),
    )


def _samples(process: _Process) -> dict[str, list[Sample]]:
    wanted = {attempt.attempt_id for attempt in process.attempts}
    found: dict[str, list[Sample]] = {}
    for sample in process.run.samples:
        if sample.attempt_id in wanted:
            found.setdefault(sample.attempt_id, []).append(sample)
    return found


def _own_settings(processes: Sequence[_Process]) -> tuple[str, ...]:
    """Parameters that are the same within every process and differ between some."""
    values: dict[str, set[object]] = {}
    varied: set[str] = set()
    for process in processes:
        settings = [_settings(attempt) for attempt in process.attempts]
        for name in dict.fromkeys(name for one in settings for name in one):
            inside = {one.get(name) for one in settings}
            varied |= {name} if len(inside) > 1 else set()
            values.setdefault(name, set()).update(inside)
    return tuple(name for name, seen in values.items() if len(seen) > 1 and name not in varied)


def _settings(attempt: Attempt) -> dict[str, Scalar]:
    return {"n_depth": attempt.n_depth, **attempt.requested}


def _subject(attempts: Sequence[Attempt], own: Sequence[str]) -> str:
    models = dict.fromkeys(
        " ".join(
            word for word in (model_family(a.model_label, a.model_quant), a.model_quant) if word
        )
        for a in attempts
    )
    words = [shown(model, 60) for model in list(models)[:2]] or ["an engine process"]
    settings = _settings(attempts[0]) if attempts else {}
    words += [setting_word(name, settings[name]) for name in own if settings.get(name) is not None]
    return ", ".join(words)
