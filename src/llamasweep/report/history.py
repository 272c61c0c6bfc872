"""Speeds over builds: one series per cell and machine over all results, with its change points. Records in, plain data out."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from llamasweep.report.compare_words import KIND_WORDS, cell_words, percent_change
from llamasweep.report.names import shown
from llamasweep.results.annotations import Annotation
from llamasweep.results.records import Attempt, RunData, RunInfo
from llamasweep.stats.change_points import ChangePoint
from llamasweep.stats.series import Stretch, changes_of_series

MAX_POINTS = 1_000
LEAST_BUILDS = 6
"""Three on either side of a step, in one stretch."""
FACTS = ("kernel", "governor")
_KIND_ORDER = {"tg": 0, "pp": 1, "pg": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One build in a series. median_tps: of the medians of its processes; None where it was tried and never measured.

    n_rounds: processes behind it. run_ids: runs that it is made of, the newest last. measured_on: day of the first of them,
    None where it is not known.
    """

    build: str
    number: int | None
    median_tps: float | None
    n_rounds: int
    run_ids: tuple[str, ...]
    measured_on: str | None
    facts: dict[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One cell on one machine along the builds. stretches: where it may be compared, and the changes within each.

    notes: people's own, each with the index of the point that it stands at.
    """

    cell_id: str
    machine: str
    name: str
    kind: str
    points: tuple[Point, ...]
    stretches: tuple[Stretch, ...]
    notes: tuple[tuple[int, Annotation], ...] = ()

    @property
    def changes(self) -> tuple[ChangePoint, ...]:
        """All changes, in order."""
        return tuple(change for stretch in self.stretches for change in stretch.changes)

    @property
    def is_too_short_for_a_step(self) -> bool:
        """Whether no stretch has enough measured builds."""
        return not any(
            sum(p.median_tps is not None for p in self.points[one.start : one.end]) >= LEAST_BUILDS
            for one in self.stretches
        )


def history(
    runs: Sequence[RunData],
    *,
    models: Sequence[str] = (),
    builds: Sequence[str] = (),
    notes: Sequence[Annotation] = (),
) -> tuple[Series, ...]:
    """The series of all runs that have at least two builds, those with changes first.

    models, builds: shell patterns on labels; without any, all. notes: people's own; one at a day stands at the first build
    that was first measured on that day or later, and in no series without one. Builds stand in the order of their numbers;
    those without one behind, in the order in which they were first measured.
    """
    known = {run.info.run_id: (run.info.started_at[:10], _facts(run.info)) for run in runs}
    rows: dict[_Key, list[Attempt]] = {}
    ways = _ways_of_builds(runs)
    for run in sorted(runs, key=lambda one: one.info.started_at):
        for row in run.attempts:
            if _fits(row.model_label, models) and _fits(row.build_label or "", builds):
                way = ways.get(row.build_hash or "", "")
                key = (row.machine_fingerprint or "", row.cell_id, way)
                rows.setdefault(key, []).append(row)
    made = [_series(key, of_cell, known, notes) for key, of_cell in rows.items()]
    return tuple(sorted((one for one in made if one is not None), key=_importance))


def _ways_of_builds(runs: Sequence[RunData]) -> dict[str, str]:
    """build_hash -> how it was asked, where a server can be asked in several ways; failed rows do not tell themselves."""
    return {
        row.build_hash: row.requests.request_mode
        for run in runs
        for row in run.attempts
        if row.build_hash and row.requests is not None and row.requests.request_mode
    }


def _fits(label: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(label, pattern) for pattern in patterns)


def _facts(info: RunInfo) -> dict[str, str | None]:
    """What else may move a speed, as the run recorded it."""
    known: dict[str, str | None] = {}
    for name in FACTS:
        value = info.machine.get(name)
        known[name] = None if value is None else str(value)
    gpus: Any = info.machine.get("gpus") or ()
    drivers = sorted(
        {str(gpu["driver"]) for gpu in gpus if isinstance(gpu, dict) and gpu.get("driver")}
    )
    known["gpu_driver"] = ", ".join(drivers) or None
    return known


_Key = tuple[str, str, str]
"""Machine, cell, and how a server was asked ("" where there is one way only): rates of two ways are not one series."""
_Known = Mapping[str, tuple[str, dict[str, str | None]]]
"""run_id -> day of its start, and what else may move a speed."""


def _series(
    key: _Key, rows: Sequence[Attempt], known: _Known, notes: Sequence[Annotation]
) -> Series | None:
    by_build: dict[str, list[Attempt]] = {}
    for row in rows:
        by_build.setdefault(row.build_hash or row.build_label or "", []).append(row)
    ordered = sorted(enumerate(by_build.values()), key=lambda pair: _place(pair[0], pair[1]))
    points = [point for _, of_build in ordered if (point := _point(of_build, known)) is not None][
        -MAX_POINTS:
    ]
    if sum(point.median_tps is not None for point in points) < 2:
        return None
    machine, cell_id, way = key
    return Series(
        cell_id=cell_id,
        machine=machine,
        name=" · ".join([cell_words(rows[0]), *([shown(way, 40)] if way else [])]),
        kind=rows[0].test_kind,
        points=tuple(points),
        stretches=tuple(
            changes_of_series([p.median_tps for p in points], [p.facts for p in points])
        ),
        notes=_noted(points, notes),
    )


def _noted(
    points: Sequence[Point], notes: Sequence[Annotation]
) -> tuple[tuple[int, Annotation], ...]:
    placed = [(index, note) for note in notes if (index := _index(points, note)) is not None]
    return tuple(sorted(placed, key=lambda pair: pair[0]))


def _index(points: Sequence[Point], note: Annotation) -> int | None:
    """The point that a note stands at; a name counts before a number, which variants of a build share."""
    if note.day is not None:
        days = [point.measured_on for point in points]
        fits = [i for i, day in enumerate(days) if day is not None and day >= note.day]
    else:
        fits = [i for i, point in enumerate(points) if note.at == point.build]
        fits += [i for i, p in enumerate(points) if note.is_of_build(p.build, p.number)]
    return fits[0] if fits else None


def _place(index: int, rows: Sequence[Attempt]) -> tuple[int, int, int]:
    number = _number(rows)
    return (0, number, index) if number is not None else (1, 0, index)


def _number(rows: Sequence[Attempt]) -> int | None:
    """As the binary tells, else as its label says: b11434."""
    told = next((row.build_number for row in rows if row.build_number is not None), None)
    if told is not None:
        return told
    labels = (re.fullmatch(r"b?([0-9]{3,7})", row.build_label or "") for row in rows)
    return next((int(found[1]) for found in labels if found), None)


def _point(rows: Sequence[Attempt], known: _Known) -> Point | None:
    """None where the build was never asked."""
    tried = [row for row in rows if row.status not in ("unsupported", "skipped")]
    if not tried:
        return None
    rates = [row.median_tps for row in tried if row.status == "ok" and row.median_tps is not None]
    newest = tried[-1]
    return Point(
        build=newest.build_label or "unknown",
        number=_number(tried),
        median_tps=statistics.median(rates) if rates else None,
        n_rounds=len(rates),
        run_ids=tuple(dict.fromkeys(row.run_id for row in tried)),
        measured_on=min((known[r.run_id][0] for r in tried if r.run_id in known), default=None),
        facts=known[newest.run_id][1] if newest.run_id in known else {},
    )


def _importance(series: Series) -> tuple[int, float, int, str]:
    """The largest fall first, then other changes, then series without any."""
    falls = [change.ratio for change in series.changes if change.ratio < 1]
    rank = 0 if falls else 1 if series.changes else 2
    return (rank, min(falls, default=1.0), _KIND_ORDER.get(series.kind, 9), series.name)


def change_line(series: Series, change: ChangePoint) -> str:
    """`step at b11434: −6.1 % [−7.0, −5.2], after b10488`."""
    at = shown(series.points[change.index].build, 40)
    after = None if change.before_index is None else series.points[change.before_index].build
    text = f"{change.kind} at {at}: {percent_change(change.ratio)}"
    if change.low is not None and change.high is not None:
        low, high = (percent_change(limit) for limit in (change.low, change.high))
        text += f" [{low}, {high}]"
    else:
        text += " [no interval: too few builds]"
    if change.kind != "step":
        text += f", to {shown(series.points[change.last_index].build, 40)}"
    return text + ("" if after is None else f", after {shown(after, 40)}")


def split_line(series: Series, stretch: Stretch) -> str:
    """What changed besides the build where a new stretch begins."""
    at = shown(series.points[stretch.start].build, 40)
    return f"not compared across {at}: other {', '.join(name.replace('_', ' ') for name in stretch.differs)}"


def note_line(at: str, note: Annotation) -> str:
    """`note at b11434: new memory`; at: the build, or the day with the build that it stands at."""
    return f"note at {shown(at, 60)}: {shown(note.text, 500)}"


def _place_words(series: Series, index: int, note: Annotation) -> str:
    build = series.points[index].build
    return build if note.day is None else f"{build} ({note.day})"


def series_lines(series: Series, *, has_notes: bool = True) -> tuple[str, ...]:
    """Changes, splits and, where has_notes, notes of a series in words, in order of builds."""
    told = [(change.index, change_line(series, change)) for change in series.changes]
    told += [(one.start, split_line(series, one)) for one in series.stretches if one.differs]
    if has_notes:
        told += [(i, note_line(_place_words(series, i, note), note)) for i, note in series.notes]
    return tuple(line for _, line in sorted(told))


def summary(found: Sequence[Series]) -> str:
    """One sentence over all series."""
    n_changed = sum(bool(one.changes) for one in found)
    worst = next((one for one in found if any(c.ratio < 1 for c in one.changes)), None)
    text = f"{n_changed} of {len(found)} series changed"
    if worst is None:
        n_short = sum(one.is_too_short_for_a_step for one in found)
        return f"{text}; {_none_slower_words(n_short, len(found))}."
    change = min(worst.changes, key=lambda one: one.ratio)
    kind = KIND_WORDS.get(worst.kind, worst.kind)
    return f"{text}; the largest fall is {kind} of {worst.name}, {change_line(worst, change)}."


def _none_slower_words(n_short: int, n_all: int) -> str:
    least = f"fewer than the {LEAST_BUILDS} builds that a step needs"
    if n_short == n_all:
        return f"each has {least}" if n_all > 1 else f"it has {least}"
    rest = f", but {n_short} have {least}" if n_short > 1 else f", but one has {least}"
    return "none became slower" + (rest if n_short else "")


def plain_history(found: Sequence[Series]) -> list[dict[str, Any]]:
    """Plain JSON values."""
    return [
        {
            "cell_id": one.cell_id,
            "machine_fingerprint": one.machine,
            "name": one.name.replace("\u202f", " "),
            "points": [
                {
                    "build": point.build,
                    "number": point.number,
                    "median_tps": point.median_tps,
                    "n_rounds": point.n_rounds,
                    "run_ids": list(point.run_ids),
                }
                for point in one.points
            ],
            "changes": [
                {
                    "kind": change.kind,
                    "build": one.points[change.index].build,
                    "after": None
                    if change.before_index is None
                    else one.points[change.before_index].build,
                    "last": one.points[change.last_index].build,
                    "ratio": change.ratio,
                    "low": change.low,
                    "high": change.high,
                }
                for change in one.changes
            ],
            "splits": [
                {"build": one.points[s.start].build, "differs": list(s.differs)}
                for s in one.stretches
                if s.differs
            ],
            "notes": [
                {"build": one.points[index].build, "at": note.at, "text": note.text}
                for index, note in one.notes
            ],
        }
        for one in found
    ]
