"""Repetitions of one cell -> median, mean, spread, and how many leading ones are not level yet. Pure arithmetic."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

DiscardRule = Literal["auto"] | int

MAD_TO_SIGMA = 1.4826
"""1 / Φ⁻¹(3/4): makes the MAD of a normal distribution estimate its standard deviation."""

AUTO_N_SIGMAS = 3.0
AUTO_MIN_REPETITIONS = 4
AUTO_MIN_REST = 3
"""Fewer values have no spread worth the name, so the rule always leaves three to compare with."""

FLAT_TOLERANCE_FRACTION = 0.01
"""Stands in for the spread where more than half of the later values are equal and their MAD is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateSummary:
    """Figures over kept repetitions, tokens per second; None where there are none to compute it from.

    sample_std_tps divides by n - 1 and is None below two; mad_tps is the median absolute deviation from the median,
    not scaled.
    """

    n_samples: int
    median_tps: float | None
    mean_tps: float | None
    sample_std_tps: float | None
    mad_tps: float | None
    min_tps: float | None
    max_tps: float | None


def summarise_rates(samples_tps: Sequence[float]) -> RateSummary:
    """Summary of the rates of single repetitions, each n_tokens / its own duration.

    The mean is the arithmetic mean of rates, as llama-bench's avg_ts is; it is not all tokens / all time.
    """
    if not samples_tps:
        return RateSummary(
            n_samples=0,
            median_tps=None,
            mean_tps=None,
            sample_std_tps=None,
            mad_tps=None,
            min_tps=None,
            max_tps=None,
        )
    return RateSummary(
        n_samples=len(samples_tps),
        median_tps=statistics.median(samples_tps),
        mean_tps=statistics.fmean(samples_tps),
        sample_std_tps=statistics.stdev(samples_tps) if len(samples_tps) > 1 else None,
        mad_tps=median_absolute_deviation(samples_tps),
        min_tps=min(samples_tps),
        max_tps=max(samples_tps),
    )


def median_absolute_deviation(values: Sequence[float]) -> float:
    """median(|x - median(x)|), not scaled. Raises statistics.StatisticsError of nothing."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)


def leading_discards(values: Sequence[float], rule: DiscardRule) -> int:
    """How many leading repetitions to leave out of the figures.

    rule: a number drops that many, but always leaves one. "auto" drops the leading repetition while it lies more than
    three scaled MADs from the median of those after it, to either side; at most half of them, never so that fewer than
    three are left to compare with, hence none of fewer than four. Where the later ones have a MAD of 0 (a coarse
    clock), that spread tells nothing and 1 % of their median takes its place. Raises ValueError for a negative number.
    """
    if rule != "auto":
        if rule < 0:
            raise ValueError(f"cannot discard {rule} repetitions")
        return min(rule, max(len(values) - 1, 0))
    if len(values) < AUTO_MIN_REPETITIONS:
        return 0
    n_most = min(len(values) // 2, len(values) - AUTO_MIN_REST)
    n_dropped = 0
    while n_dropped < n_most and _is_off_level(values[n_dropped], values[n_dropped + 1 :]):
        n_dropped += 1
    return n_dropped


def _is_off_level(value: float, rest: Sequence[float]) -> bool:
    level = statistics.median(rest)
    spread = AUTO_N_SIGMAS * MAD_TO_SIGMA * median_absolute_deviation(rest)
    return abs(value - level) > (spread or abs(level) * FLAT_TOLERANCE_FRACTION)
