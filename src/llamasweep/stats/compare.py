"""Two sides of one cell -> how b stands to a, with its size and interval. Paired by rounds, or unpaired and weaker.

Knows nothing of builds, cells and files. The number of rounds is taken as given: who looks after each round and stops
when it is clear needs `sequential`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llamasweep.stats import rank_sum, sign_flip, walsh
from llamasweep.stats.rounds import Rate, logs_of, paired_logs
from llamasweep.stats.verdicts import Comparison, Evidence, SpeedVerdict

TOLERANCE = 1e-9
"""A log ratio this near to the floor is not beyond it: rounding must not decide."""


def floor_log(floor_fraction: float) -> float:
    """ln(1 + floor): the same distance for faster and slower, so that swapped sides mirror.

    A floor of 3 % is thus passed at ×1.03 and at ÷1.03 (-2.91 %). Raises ValueError unless 0 ≤ floor < 1.
    """
    if not 0 <= floor_fraction < 1:
        raise ValueError(f"a floor of {floor_fraction} is not a fraction of 0 to 1")
    return math.log1p(floor_fraction)


def check_alpha(alpha: float) -> None:
    """Raises ValueError unless 0 < alpha < 0.5."""
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha of {alpha} is not between 0 and 0.5")


def compare_paired(
    a_tps: Sequence[Rate],
    b_tps: Sequence[Rate],
    *,
    floor_fraction: float = 0.03,
    alpha: float = 0.05,
) -> Comparison:
    """b against a, measured by turns: one rate per round and side, the median of the round's process.

    faster or slower: the two-sided sign-flip test of ln(b / a) rejects at alpha and the estimate is beyond the floor.
    same: two one-sided sign-flip tests reject, each at alpha, that the change is the floor or more (Schuirmann, 1987).
    Otherwise undecided; never "same" because a difference is not significant. Rounds with a missing, zero, negative or
    infinite value are dropped with a note. Raises ValueError for unequal numbers of rounds, a floor or an alpha that
    is none.
    """
    check_alpha(alpha)
    d, notes = paired_logs(a_tps, b_tps)
    return _compared(
        p_of_shift=lambda delta: sign_flip.greater(d + delta),
        p_of_drop=lambda delta: sign_flip.greater(delta - d),
        p_value=sign_flip.two_sided(d) if len(d) else None,
        shift=walsh.shift(d) if len(d) else None,
        limits=walsh.interval(d, alpha),
        counts=(len(d), len(a_tps) - len(d)),
        judged=("paired", floor_fraction, alpha, notes),
    )


def compare_unpaired(
    a_tps: Sequence[Rate],
    b_tps: Sequence[Rate],
    *,
    floor_fraction: float = 0.03,
    alpha: float = 0.05,
) -> Comparison:
    """b against a, measured at different times: one rate per process, any number of each.

    As `compare_paired`, with the exact Mann–Whitney test and the Hodges–Lehmann shift of two samples. Weaker evidence:
    whatever changed on the machine in between counts as a difference of the builds.
    """
    check_alpha(alpha)
    a, a_notes = logs_of(a_tps, "a")
    b, b_notes = logs_of(b_tps, "b")
    both = bool(len(a) and len(b))
    return _compared(
        p_of_shift=lambda delta: rank_sum.greater(a - delta, b),
        p_of_drop=lambda delta: rank_sum.greater(b, a + delta),
        p_value=rank_sum.two_sided(a, b) if both else None,
        shift=rank_sum.shift(a, b) if both else None,
        limits=rank_sum.interval(a, b, alpha),
        counts=(min(len(a), len(b)), len(a_tps) + len(b_tps) - len(a) - len(b)),
        judged=("unpaired", floor_fraction, alpha, a_notes + b_notes),
    )


def _compared(
    *,
    p_of_shift: Callable[[float], float],
    p_of_drop: Callable[[float], float],
    p_value: float | None,
    shift: float | None,
    limits: tuple[float, float] | None,
    counts: tuple[int, int],
    judged: tuple[Evidence, float, float, tuple[str, ...]],
) -> Comparison:
    """p_of_shift, p_of_drop: p of the one-sided tests that the change is ≤ -delta, or ≥ +delta. counts: used, dropped."""
    evidence, floor_fraction, alpha, notes = judged
    floor = floor_log(floor_fraction)
    verdict: SpeedVerdict = "undecided"
    if shift is not None and p_value is not None:
        if p_value <= alpha and abs(shift) > floor + TOLERANCE:
            verdict = "faster" if shift > 0 else "slower"
        elif max(p_of_shift(floor), p_of_drop(floor)) <= alpha:
            verdict = "same"
    if shift is not None and limits is None:
        notes = (*notes, f"too few values for an interval of {1 - alpha:.0%}")
    low, high = (None, None) if limits is None else as_ratios(limits)
    return Comparison(
        verdict=verdict,
        ratio=None if shift is None else math.exp(shift),
        low=low,
        high=high,
        p_value=p_value,
        n_rounds=counts[0],
        n_dropped=counts[1],
        floor_fraction=floor_fraction,
        alpha=alpha,
        evidence=evidence,
        notes=notes,
    )


def as_ratios(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits of a log ratio as limits of the ratio."""
    return math.exp(limits[0]), math.exp(limits[1])
