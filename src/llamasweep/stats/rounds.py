"""Rates as they were measured -> log ratios that can be compared, with a note for each value that was left out.

Knows what a usable rate is. Nothing is filled in: a round without both values is dropped, and told.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from llamasweep.stats.arrays import Floats

Rate = float | int | None
"""Tokens per second of one process; None where it was not measured."""


def paired_logs(a_tps: Sequence[Rate], b_tps: Sequence[Rate]) -> tuple[Floats, tuple[str, ...]]:
    """ln(b / a) of each round that has both values, in order, and notes on the rounds that were dropped.

    Raises ValueError where the sides have different numbers of rounds: then nothing says which belong together.
    """
    if len(a_tps) != len(b_tps):
        raise ValueError(f"{len(a_tps)} rounds of a and {len(b_tps)} of b cannot be paired")
    logs: list[float] = []
    dropped: Counter[str] = Counter()
    for a, b in zip(a_tps, b_tps, strict=True):
        faults = [f"{side} {fault}" for side, v in (("a", a), ("b", b)) if (fault := _fault(v))]
        if faults or a is None or b is None:
            dropped[" and ".join(faults)] += 1
        else:
            logs.append(math.log(b) - math.log(a))
    return np.array(logs, dtype=np.float64), _notes(dropped, "round")


def logs_of(values_tps: Sequence[Rate], side: str) -> tuple[Floats, tuple[str, ...]]:
    """ln of the usable values of one side, in order, and notes on those that were dropped."""
    dropped: Counter[str] = Counter()
    logs: list[float] = []
    for value in values_tps:
        fault = _fault(value)
        if fault or value is None:
            dropped[f"{side} {fault}"] += 1
        else:
            logs.append(math.log(value))
    return np.array(logs, dtype=np.float64), _notes(dropped, "value")


def is_usable(value_tps: Rate) -> bool:
    """Whether a rate can be compared: it is there, finite and above 0."""
    return _fault(value_tps) == ""


def _fault(value: Rate) -> str:
    """Why a rate cannot be used, empty if it can."""
    if value is None or math.isnan(value):
        return "is missing"
    if math.isinf(value):
        return "is infinite"
    if value <= 0:
        return "is 0" if value == 0 else "is negative"
    return ""


def _notes(dropped: Counter[str], what: str) -> tuple[str, ...]:
    return tuple(
        f"{n} {what}{'s' if n > 1 else ''} dropped: {fault}" for fault, n in sorted(dropped.items())
    )
