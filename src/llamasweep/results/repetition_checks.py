"""Checks of the repetitions of one row: a slow first one, a wide spread, a steady fall."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.measured_rows import MeasuredRows, figures
from llamasweep.results.rates import MAD_TO_SIGMA, median_absolute_deviation
from llamasweep.results.records import Attempt

FIRST_SLOW = 0.10
N_SIGMAS = 3.0
N_OTHERS_LEAST = 3
WIDE = 0.05
FALL_P_MOST = 0.01
FALL_LEAST = 0.05
N_FALL_LEAST = 5


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row."""
    for row in run.rows:
        rates = run.rates(row)
        yield from _first(row, rates)
        kept = run.kept_rates(row)
        yield from _spread(row, kept)
        yield from _fall(row, kept)


def _first(row: Attempt, rates: Sequence[float]) -> Iterator[Finding]:
    if len(rates) <= N_OTHERS_LEAST:
        return
    first, others = rates[0], rates[1:]
    level = statistics.median(others)
    gap = level - first
    spread = N_SIGMAS * MAD_TO_SIGMA * median_absolute_deviation(others)
    if gap > FIRST_SLOW * level and gap > spread:
        evidence = {
            "first_repetition_tps": first,
            "median_of_the_others_tps": level,
            "n_others": len(others),
            "in_the_median": _in_the_median(row.n_discarded),
        }
        yield make_finding("first_repetition_slow", evidence, [row.attempt_id])


def _in_the_median(n_discarded: int | None) -> str | None:
    """None where it is not told how many were left out."""
    if n_discarded is None:
        return None
    return "no, left out" if n_discarded > 0 else "yes"


def _spread(row: Attempt, kept: Sequence[float]) -> Iterator[Finding]:
    if len(kept) < N_OTHERS_LEAST:
        return
    middle = statistics.median(kept)
    scaled = MAD_TO_SIGMA * median_absolute_deviation(kept)
    if scaled > WIDE * middle:
        evidence = {
            "spread_fraction": scaled / middle,
            "slowest_repetition_tps": min(kept),
            "fastest_repetition_tps": max(kept),
            "n_repetitions": len(kept),
        }
        yield make_finding("wide_spread", evidence, [row.attempt_id])


def _fall(row: Attempt, kept: Sequence[float]) -> Iterator[Finding]:
    if len(kept) < N_FALL_LEAST:
        return
    third = max(1, len(kept) // 3)
    start, end = statistics.median(kept[:third]), statistics.median(kept[-third:])
    if end > (1 - FALL_LEAST) * start or falling_p(kept) > FALL_P_MOST:
        return
    told = figures(row)
    evidence = {
        "rate_at_the_start_tps": start,
        "rate_at_the_end_tps": end,
        "n_repetitions": len(kept),
        "cpu_temperature_peak_c": told.cpu_temperature_peak_c,
        "gpu_temperature_peak_c": told.gpu_temperature_peak_c,
        "cpu_clock_mhz": told.cpu_clock_mean_mhz,
        "gpu_clock_mhz": told.gpu_clock_mean_mhz,
    }
    yield make_finding("falling_rate", evidence, [row.attempt_id])


def falling_p(values: Sequence[float]) -> float:
    """Chance that values in random order fall as steadily as these; 1 for fewer than two.

    The exact one-sided Mann-Kendall test: with n values the number of rising pairs is distributed as the inversions of a
    random permutation, whose counts are the Mahonian numbers. Ties count as rising, which is the careful side.
    """
    n = len(values)
    n_rising = sum(values[j] >= values[i] for i in range(n) for j in range(i + 1, n))
    counts = [1]
    for size in range(2, n + 1):
        wider = [0] * (len(counts) + size - 1)
        for index, count in enumerate(counts):
            for step in range(size):
                wider[index + step] += count
        counts = wider
    return sum(counts[: n_rising + 1]) / sum(counts)
