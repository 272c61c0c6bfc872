"""Checks of threads and of what else used the processor."""

from __future__ import annotations

import math
from collections.abc import Iterator

from llamasweep.results.contenders import SAME_WITHIN
from llamasweep.results.finding_kinds import Kind, Severity
from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.measured_rows import (
    BUSY_FROM,
    MeasuredRows,
    fastest,
    figures,
    is_alarming,
    is_disturbed,
    is_faster,
    measured_once,
    median,
    ran_on_cpu,
    share,
    whole_in_force,
)
from llamasweep.results.records import Attempt

MORE_THREADS_RATIO = 1.1
COLLAPSE_BELOW = 0.5
HELD_UP_RATIO = 1.5
_HELD_UP = (
    "Threads hold each other up: so much is lost only where a thread often has no core to run on, "
    "because of other load, of a quota, or of cores of different speed."
)


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row; thread counts only where the CPU does the work."""
    for row in run.rows:
        if ran_on_cpu(row):
            yield from _threads(run, row)
        yield from _other_load(run, row)


def _threads(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    n_threads = whole_in_force(row, "n_threads")
    if n_threads is None:
        return
    n_cpus, n_cores, quota = (
        run.machine.n_cpus,
        run.machine.n_cores,
        run.machine.number("cpu_quota"),
    )
    allowed = min((n for n in (n_cpus, math.ceil(quota) if quota else None) if n), default=None)
    if allowed is not None and n_threads > allowed:
        evidence = {
            "n_threads": n_threads,
            "n_logical_processors": n_cpus,
            "cpu_quota": f"{quota:g}" if quota else None,
        }
        yield make_finding("more_threads_than_cpus", evidence, [row.attempt_id])
    elif n_cores is not None and n_threads > n_cores:
        yield from _beyond(run, row, "smt_siblings", n_cores, n_threads)
    elif row.test_kind == "tg":
        yield from _beyond(run, row, "threads_beyond_knee", run.machine.knee_threads, n_threads)
        yield from _too_few(run, row, n_threads)


def _too_few(run: MeasuredRows, row: Attempt, n_threads: int) -> Iterator[Finding]:
    """The run's own rows decide; the knee only where none has more threads, and only for an alarm."""
    with_more = [other for other in run.comparable(row, "n_threads") if _has_more(other, n_threads)]
    more, knee = fastest(with_more), run.machine.knee_threads
    evidence: dict[str, int | float | str | None] = {
        "n_threads": n_threads,
        "median_tps": median(row),
    }
    if more is not None:
        if not is_faster(more, row, MORE_THREADS_RATIO):
            return
        evidence |= {
            "n_more_threads": whole_in_force(more, "n_threads"),
            "with_more_threads_tps": median(more),
            **measured_once(more, row),
        }
    elif knee is not None and n_threads < knee and is_alarming(row):
        evidence["n_threads_at_the_knee"] = knee
    else:
        return
    severity: Severity | None = None if is_alarming(row) else "note"
    yield make_finding("too_few_threads", evidence, [row.attempt_id], severity=severity)


def _has_more(row: Attempt, n_threads: int) -> bool:
    theirs = whole_in_force(row, "n_threads")
    return theirs is not None and theirs > n_threads


def _has_fewer(row: Attempt, below: int) -> bool:
    theirs = whole_in_force(row, "n_threads")
    return theirs is not None and 0 < theirs < below


def _beyond(
    run: MeasuredRows, row: Attempt, kind: Kind, limit: int | None, n_threads: int
) -> Iterator[Finding]:
    """The run's own rows decide; only where it has none with fewer threads does the limit."""
    if is_disturbed(row):
        return
    is_smt = kind == "smt_siblings"
    fewer = _with_fewer(run, row, n_threads if limit is None or not is_smt else limit + 1)
    is_beyond = limit is not None and n_threads > limit
    loses = fewer is not None and is_faster(fewer, row, 1 + SAME_WITHIN)
    gains = fewer is not None and median(fewer) < (1 - SAME_WITHIN) * median(row)
    if not (loses or (is_beyond and not gains)):
        return
    evidence: dict[str, int | float | str | None] = {
        "n_threads": n_threads,
        "n_physical_cores" if is_smt else "n_threads_at_the_knee": limit,
        "median_tps": median(row),
        "n_fewer_threads": whole_in_force(fewer, "n_threads") if fewer else None,
        "with_fewer_threads_tps": median(fewer) if fewer else None,
        **(measured_once(fewer, row) if fewer else {}),
    }
    severity: Severity = "warning" if loses else "note"
    held_up = fewer is not None and is_faster(fewer, row, HELD_UP_RATIO)
    yield make_finding(
        kind, evidence, [row.attempt_id], severity=severity, cause=_HELD_UP if held_up else None
    )


def _with_fewer(run: MeasuredRows, row: Attempt, below: int) -> Attempt | None:
    """The fastest comparable row with fewer threads than that."""
    return fastest(o for o in run.comparable(row, "n_threads") if _has_fewer(o, below))


def _other_load(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    use = figures(row).cpu_use_other_fraction
    if use is None or use < BUSY_FROM:
        return
    n_cpus, n_threads = run.machine.count("n_cores_logical"), whole_in_force(row, "n_threads")
    evidence: dict[str, int | float | str | None] = {"cpu_use_of_others_fraction": use}
    if n_cpus is not None and n_threads is not None and ran_on_cpu(row):
        evidence |= {"n_threads": n_threads, "n_logical_processors": n_cpus}
        is_crowded = n_threads > 1 and use * n_cpus + n_threads > n_cpus
        collapse = _collapse(run, row) if is_crowded else {}
        if collapse:
            yield make_finding("barrier_collapse", {**evidence, **collapse}, [row.attempt_id])
            return
    yield make_finding("busy_neighbour", evidence, [row.attempt_id])


def _collapse(run: MeasuredRows, row: Attempt) -> dict[str, float]:
    """Signs that most of the speed was lost; {} where there is none."""
    found: dict[str, float] = {}
    fraction = share(row)
    if fraction is not None and fraction < COLLAPSE_BELOW:
        found["share_of_the_ceiling_fraction"] = fraction
    rates = run.kept_rates(row)
    if rates and min(rates) < COLLAPSE_BELOW * max(rates):
        found |= {"slowest_repetition_tps": min(rates), "fastest_repetition_tps": max(rates)}
    n_threads = whole_in_force(row, "n_threads")
    beside = () if n_threads is None else run.beside(row, "n_threads")
    fewer = fastest(o for o in beside if n_threads is not None and _has_fewer(o, n_threads))
    for name, other in (
        ("in_another_round", fastest(run.rounds(row))),
        ("with_fewer_threads", fewer),
    ):
        if other is not None and median(row) < COLLAPSE_BELOW * median(other):
            found |= {"median_tps": median(row), f"{name}_tps": median(other)}
    return found
