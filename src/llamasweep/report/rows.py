"""Rows: every question of a run with its answer, rounds pooled and retries folded. Records in, plain data out.

A row is one cell on one build in one run. Nothing is formatted here and nothing is filled in: a figure that is absent
keeps the reason why.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llamasweep.report import names
from llamasweep.report.names import AXIS_ORDER, model_family
from llamasweep.report.row_marks import Mark, marks_of
from llamasweep.results.findings import Finding
from llamasweep.results.records import FAILED_STATUSES, Attempt, RunData, Sample
from llamasweep.results.request_load import DEFAULTS as LOAD_DEFAULTS
from llamasweep.results.rounds import (
    Rates,
    by_attempt,
    by_question,
    latest_per_round,
    middle_round,
    pooled_rates,
)

__all__ = [
    "NO_REASON",
    "Measured",
    "Rates",
    "Row",
    "axis_value",
    "constant",
    "rows_of",
    "varying",
]

NO_REASON = "no reason was recorded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A figure, or None and why."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One cell on one build in one run.

    anchor: id in the page. settings: canonical name -> requested value, n_depth always there, and the load where rows of
    the same engine differ in it. rates: None unless
    measured. ceiling, fraction: the exact ceiling in t/s and the median's share of it; pencil_… the same of bandwidth /
    model size. attempt: the round whose rate is in the middle, for what is not pooled (settings, ceilings, latencies: so that
    these are of one round); the latest try where none succeeded. attempt_ids: of the tries that the figures are made of.
    findings: about those tries, as far as `why` added them. marks: of them and of the flags.
    """

    anchor: str
    run_id: str
    machine: str
    family: str
    quant: str
    build: str
    settings: dict[str, object]
    status: str
    rates: Rates | None
    ceiling: Measured
    fraction: Measured
    pencil_ceiling: Measured
    pencil_fraction: Measured
    ram_bytes: Measured
    vram_bytes: Measured
    energy_j: Measured
    n_rounds: int
    n_rounds_failed: int
    flags: tuple[str, ...]
    attempt: Attempt
    attempt_ids: tuple[str, ...]
    marks: tuple[Mark, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def kind(self) -> str:
        """pp, tg or pg."""
        return self.attempt.test_kind

    @property
    def test(self) -> str:
        """The test as llama-bench shows it."""
        return self.attempt.test_label

    @property
    def subject(self) -> str:
        """Model and quantisation in words."""
        return f"{self.family} {self.quant}" if self.quant else self.family


def rows_of(runs: Sequence[RunData]) -> tuple[Row, ...]:
    """All rows of all runs in the order in which they were first tried."""
    attempts = [attempt for run in runs for attempt in run.attempts]
    families = _families(attempts)
    loads = _spoken_loads(attempts)
    rows: list[Row] = []
    for run in runs:
        samples = by_attempt(run.samples)
        for tries in by_question(run.attempts).values():
            rows.append(_row(f"row-{len(rows) + 1}", tries, samples, families, loads))
    return tuple(rows)


def _spoken_loads(attempts: Sequence[Attempt]) -> dict[str, dict[str, object]]:
    """Engine -> the load that its rows have where they name none, for the parameters that other rows of it do name."""
    return {
        engine: {
            name: value
            for name, value in LOAD_DEFAULTS.items()
            if any(a.engine == engine and a.requested.get(name) is not None for a in attempts)
        }
        for engine in {attempt.engine for attempt in attempts}
    }


def varying(rows: Iterable[Row]) -> tuple[str, ...]:
    """Axes with more than one value among the rows, outermost first; `build` and `run_id` may be among them."""
    seen: dict[str, set[object]] = {"run_id": set(), "build": set()}
    n_rows = 0
    present: dict[str, int] = {}
    for row in rows:
        n_rows += 1
        seen["run_id"].add(row.run_id)
        seen["build"].add(row.build)
        for name, value in row.settings.items():
            seen.setdefault(name, set()).add(value)
            present[name] = present.get(name, 0) + 1
    open_somewhere = {name for name, n in present.items() if n < n_rows}
    names = [name for name, values in seen.items() if len(values) > 1 or name in open_somewhere]
    return tuple(sorted(names, key=_axis_rank))


def constant(rows: Sequence[Row]) -> dict[str, object]:
    """Settings that every row has with the same value."""
    changing = set(varying(rows))
    first = rows[0].settings if rows else {}
    return {name: value for name, value in first.items() if name not in changing}


def axis_value(row: Row, axis: str) -> object:
    """The row's value on an axis; None where the sweep left it to the engine."""
    if axis in ("build", "run_id"):
        return getattr(row, axis)
    return row.settings.get(axis)


def _axis_rank(name: str) -> tuple[int, str]:
    return ({"run_id": -2, "build": -1}.get(name, AXIS_ORDER.get(name, len(AXIS_ORDER))), name)


def _row(
    anchor: str,
    tries: Sequence[Attempt],
    samples: dict[str, list[Sample]],
    families: dict[str, str],
    loads: dict[str, dict[str, object]],
) -> Row:
    latest = latest_per_round(tries)
    ok = [attempt for attempt in latest if attempt.status == "ok"]
    one = middle_round(ok) if ok else latest[-1]
    n_failed = sum(attempt.status in FAILED_STATUSES for attempt in latest)
    flags = [flag for attempt in (ok or latest) for flag in attempt.flags]
    if ok and n_failed:
        flags.append("round_failed")
    flags = list(dict.fromkeys(flags))
    rates = pooled_rates(ok, samples)
    ceiling = _ceiling(one, "ceiling_tps")
    pencil = _ceiling(one, "pencil_ceiling_tps")
    return Row(
        anchor=anchor,
        run_id=one.run_id,
        machine=one.machine_fingerprint or "",
        family=names.shown(families[one.model_label], 80),
        quant=names.shown(one.model_quant or "", 24),
        build=names.shown(one.build_label or "build not recorded", 60),
        settings=_settings(one, loads[one.engine]),
        status=one.status,
        rates=rates,
        ceiling=ceiling,
        fraction=_share(rates, ceiling),
        pencil_ceiling=pencil,
        pencil_fraction=_share(rates, pencil),
        ram_bytes=_telemetry(ok, one, "ram_peak_process_bytes"),
        vram_bytes=_telemetry(ok, one, "vram_peak_device_bytes"),
        energy_j=_telemetry(ok, one, "energy_per_token_j"),
        n_rounds=len(latest),
        n_rounds_failed=n_failed,
        flags=tuple(flags),
        attempt=one,
        attempt_ids=tuple(attempt.attempt_id for attempt in ok),
        marks=marks_of(flags, (), 1),
    )


def _settings(attempt: Attempt, load: dict[str, object]) -> dict[str, object]:
    """What was asked for, and the load that goes without saying."""
    settings = {"n_depth": attempt.n_depth, **load, **attempt.requested}
    if attempt.requested.get("prompt_cache") == "warm" and "turn" not in attempt.requested:
        settings.pop("turn", None)  # the same prompt twice is no turn of a conversation
    return settings


def _ceiling(attempt: Attempt, column: str) -> Measured:
    value = getattr(attempt, column)
    if value is not None:
        return Measured(value=float(value))
    reason = attempt.reasons.get(column)
    if reason is None and attempt.ceiling_bandwidth_bytes_per_s is None:
        is_old = attempt.pencil_ceiling_tps is not None
        reason = "the run kept none" if is_old else "the memory bandwidth is not known"
    return Measured(value=None, reason=reason or NO_REASON)


def _share(rates: Rates | None, ceiling: Measured) -> Measured:
    """Median / ceiling, over all rounds; absent for the reason of what it is made of."""
    if rates is None:
        return Measured(value=None, reason="not measured")
    if not ceiling.value:
        return Measured(value=None, reason=ceiling.reason or NO_REASON)
    return Measured(value=rates.median / ceiling.value)


def _telemetry(ok: Sequence[Attempt], shown: Attempt, column: str) -> Measured:
    """Largest peak over the rounds, or the median of an energy."""
    values = [
        float(value)
        for attempt in ok
        if attempt.telemetry is not None
        and (value := getattr(attempt.telemetry, column)) is not None
    ]
    if values:
        return Measured(
            value=max(values) if column.endswith("_bytes") else statistics.median(values)
        )
    reason = shown.reasons.get(column) or shown.reasons.get("telemetry")
    if reason is None and shown.telemetry is None:
        reason = "no telemetry was recorded for it"
    return Measured(value=None, reason=reason or NO_REASON)


def _families(attempts: Iterable[Attempt]) -> dict[str, str]:
    """Label -> family; labels whose family and quantisation would coincide keep the whole label."""
    quants = {attempt.model_label: attempt.model_quant for attempt in attempts}
    taken: dict[tuple[str, str | None], list[str]] = {}
    for label, quant in quants.items():
        taken.setdefault((model_family(label, quant), quant), []).append(label)
    return {
        label: family if len(labels) == 1 else label
        for (family, _), labels in taken.items()
        for label in labels
    }
