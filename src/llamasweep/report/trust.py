"""Can these numbers be trusted: flags, what was applied otherwise than asked, repetitions left out, notes, calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.flags import flag_meaning, flag_word, untold
from llamasweep.report.names import shown
from llamasweep.report.rows import NO_REASON, Row
from llamasweep.results.records import RunData

MAX_ITEMS = 40
MAX_ASSUMPTIONS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A flag that no finding tells: its word, what it means and what to do, and how many rows have it, with some anchors."""

    word: str
    meaning: str
    n_rows: int
    anchors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """Everything that speaks for or against the numbers.

    mark: one line for the head of the page. calibration: how each bandwidth figure was got. differences: sentence
    and number of rows. n_told_by_findings: rows with flags that findings tell with their numbers.
    """

    mark: str
    repetitions: str
    doubts: tuple[Doubt, ...]
    n_told_by_findings: int
    differences: tuple[tuple[str, int], ...]
    calibration: tuple[str, ...]
    notes: tuple[str, ...]
    synthetic: str | None
    sampler: str


def trust(runs: Sequence[RunData], rows: Sequence[Row]) -> Trust:
    """The section's data."""
    differences = Counter(text for row in rows for text in row.attempt.differences)
    return Trust(
        mark=_mark([row for row in rows if row.rates is not None]),
        repetitions=_repetitions(rows),
        doubts=_doubts(rows),
        n_told_by_findings=sum(len(_untold(row)) < len(row.flags) for row in rows),
        differences=tuple((shown(text, 200), n) for text, n in differences.most_common(MAX_ITEMS)),
        calibration=_calibration(rows),
        notes=tuple(shown(note, 400) for run in runs for note in run.info.notes)[:MAX_ITEMS],
        synthetic=_synthetic(rows),
        sampler=_sampler(runs),
    )


def _mark(measured: Sequence[Row]) -> str:
    """A measured row is in doubt by a flag of the run or an alarm about it."""
    if not measured:
        return "nothing was measured"
    n_doubtful = sum(is_doubtful(row) for row in measured)
    of = figures.counted(len(measured), "measured row")
    if not n_doubtful:
        return f"no doubts in {of}"
    return f"{figures.count(n_doubtful)} of {of} with a doubt"


def is_doubtful(row: Row) -> bool:
    """Whether the run flagged it or an alarm stands about it."""
    return bool(row.flags) or any(finding.severity == "alarm" for finding in row.findings)


def _repetitions(rows: Sequence[Row]) -> str:
    rates = [row.rates for row in rows if row.rates is not None]
    kept = sum(rate.n_kept for rate in rates)
    left_out = sum(rate.n_discarded for rate in rates)
    rounds = max((row.n_rounds for row in rows), default=1)
    text = f"{figures.counted(kept, 'repetition')} in {figures.counted(len(rates), 'measured row')}"
    if rounds > 1:
        text += f", over up to {rounds} rounds"
    if left_out:
        return (
            f"{text}; {figures.counted(left_out, 'leading repetition')} left out because the speed was not level "
            "yet. They are in samples.parquet, marked."
        )
    return text + "; none left out."


def _doubts(rows: Sequence[Row]) -> tuple[Doubt, ...]:
    by_flag: dict[str, list[str]] = {}
    for row in rows:
        for flag in _untold(row):
            by_flag.setdefault(flag, []).append(row.anchor)
    return tuple(
        Doubt(
            word=flag_word(flag),
            meaning=flag_meaning(flag),
            n_rows=len(anchors),
            anchors=tuple(anchors[:6]),
        )
        for flag, anchors in sorted(by_flag.items(), key=lambda item: -len(item[1]))
    )


def _untold(row: Row) -> tuple[str, ...]:
    return untold(row.flags, {finding.kind for finding in row.findings})


def _calibration(rows: Sequence[Row]) -> tuple[str, ...]:
    tg = [row.attempt for row in rows if row.kind == "tg" and row.rates is not None]
    found = Counter(
        (attempt.ceiling_bandwidth_bytes_per_s, attempt.ceiling_bandwidth_source)
        for attempt in tg
        if attempt.ceiling_bandwidth_bytes_per_s is not None
    )
    texts = [
        f"Memory bandwidth {figures.bandwidth(value)}, {shown(source or 'source not recorded', 120)} "
        f"({figures.counted(n, 'tg row')})."
        for (value, source), n in found.items()
        if value is not None
    ]
    missing = Counter(
        (row.kind, row.ceiling.reason or NO_REASON)
        for row in rows
        if row.rates is not None and row.ceiling.value is None
    )
    texts += [
        f"No exact ceiling for {figures.counted(n, f'{kind} row')}: {shown(reason, 300)}"
        for (kind, reason), n in missing.items()
    ]
    assumed = Counter(text for attempt in tg for text in attempt.ceiling_assumptions)
    texts += [f"Assumed: {shown(text, 300)}." for text, _ in assumed.most_common(MAX_ASSUMPTIONS)]
    return tuple(texts)


def _synthetic(rows: Sequence[Row]) -> str | None:
    made = sorted({row.family for row in rows if row.attempt.model_is_synthetic})
    if not made:
        return None
    names = ", ".join(shown(name, 60) for name in made[:8])
    more = f" and {len(made) - 8} more" if len(made) > 8 else ""
    return (
        f"Generated with random weights: {names}{more}. Speed does not depend on the values of weights; "
        "what such a model writes is noise."
    )


def _sampler(runs: Sequence[RunData]) -> str:
    """What the telemetry itself took: CPU seconds / wall seconds of all engine processes, as a share of one core."""
    cpu_s = wall_s = 0.0
    for run in runs:
        for group in run.info.groups:
            cpu, wall = group.get("sampler_cpu_s"), group.get("sampler_wall_s")
            if isinstance(cpu, int | float) and isinstance(wall, int | float):
                cpu_s, wall_s = cpu_s + cpu, wall_s + wall
    if not wall_s:
        return "The cost of the telemetry beside the engine was not measured: no sampler ran."
    share = cpu_s / wall_s * 100
    return (
        f"The telemetry beside the engine took {figures.number(share)}{figures.THIN}% of one core "
        f"({figures.duration(cpu_s)} in {figures.duration(wall_s)})."
    )
