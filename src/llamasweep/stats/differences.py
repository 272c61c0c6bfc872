"""What else differs between two sides of a comparison, to be told before any word of faster or slower.

Knows rows and plain facts (compiler, driver, governor) that are handed in; a fact that one side does not know is no
difference.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llamasweep.results.records import Attempt

CLOCK_SHARE = 0.03
TEMPERATURE_C = 5.0
PLACES = ("build_backends", "engine", "cpu_name", "gpu_name", "machine_fingerprint")

_CONDITIONS: tuple[tuple[str, float | None, float | None], ...] = (
    ("cpu_clock_mean_mhz", CLOCK_SHARE, None),
    ("gpu_clock_mean_mhz", CLOCK_SHARE, None),
    ("gpu_memory_clock_mean_mhz", CLOCK_SHARE, None),
    ("cpu_temperature_peak_c", None, TEMPERATURE_C),
    ("gpu_temperature_peak_c", None, TEMPERATURE_C),
)
"""(figure, share or amount by which medians must differ to be told)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One thing that is not the same on both sides.

    name: a column, a parameter or a fact. a, b: what was found there, several values in order. is_default: whether it
    is a parameter that the sweep left to the engine, so that the builds' defaults differ.
    """

    name: str
    a: str
    b: str
    is_default: bool = False


def differences(
    a: Sequence[Attempt],
    b: Sequence[Attempt],
    a_facts: Mapping[str, str | None] | None = None,
    b_facts: Mapping[str, str | None] | None = None,
) -> tuple[Difference, ...]:
    """Changed defaults first, then what the sides ran on, then facts, then clocks and temperatures.

    a, b: rows of cells that both sides have. facts: of the build and the machine, by name.
    """
    found = [*_defaults(a, b), *_places(a, b), *_ways(a, b)]
    a_known, b_known = a_facts or {}, b_facts or {}
    for name, mine in a_known.items():
        theirs = b_known.get(name)
        if mine is not None and theirs is not None and mine != theirs:
            found.append(Difference(name=name, a=mine, b=theirs))
    return (*found, *_conditions(a, b))


def applied_values(rows: Iterable[Attempt], name: str) -> tuple[str, ...]:
    """Values of a parameter that the engine told it applied, sorted; those that were only echoed are left out."""
    told = {str(row.applied[name]) for row in rows if row.applied.get(name) is not None}
    return tuple(sorted(told))


def _defaults(a: Sequence[Attempt], b: Sequence[Attempt]) -> list[Difference]:
    names = sorted({name for row in (*a, *b) for name in row.applied})
    found = []
    for name in names:
        left = [row for row in a if row.requested.get(name) is None]
        right = [row for row in b if row.requested.get(name) is None]
        mine, theirs = applied_values(left, name), applied_values(right, name)
        if mine and theirs and mine != theirs:
            found.append(
                Difference(name=name, a=", ".join(mine), b=", ".join(theirs), is_default=True)
            )
    return found


def _places(a: Sequence[Attempt], b: Sequence[Attempt]) -> list[Difference]:
    found = []
    for name in PLACES:
        mine, theirs = _words(a, name), _words(b, name)
        if mine and theirs and mine != theirs:
            found.append(Difference(name=name, a=", ".join(mine), b=", ".join(theirs)))
    return found


def ways_of_asking(rows: Iterable[Attempt]) -> tuple[str, ...]:
    """How servers were asked that can be asked in several ways, sorted; () where no row tells."""
    asked = (None if row.requests is None else row.requests.request_mode for row in rows)
    return tuple(sorted({way for way in asked if way is not None}))


def _ways(a: Sequence[Attempt], b: Sequence[Attempt]) -> list[Difference]:
    mine, theirs = ways_of_asking(a), ways_of_asking(b)
    if mine and theirs and mine != theirs:
        return [Difference(name="request_mode", a="; ".join(mine), b="; ".join(theirs))]
    return []


def _words(rows: Sequence[Attempt], name: str) -> tuple[str, ...]:
    values = (getattr(row, name) for row in rows)
    return tuple(sorted({value for value in values if value is not None}))


def _conditions(a: Sequence[Attempt], b: Sequence[Attempt]) -> list[Difference]:
    found = []
    for name, share, amount in _CONDITIONS:
        mine, theirs = _median(a, name), _median(b, name)
        if mine is None or theirs is None:
            continue
        limit = amount if share is None else share * min(mine, theirs)
        if limit is not None and abs(mine - theirs) > limit:
            found.append(Difference(name=name, a=f"{mine:.0f}", b=f"{theirs:.0f}"))
    return found


def _median(rows: Sequence[Attempt], name: str) -> float | None:
    values = [getattr(row.telemetry, name) for row in rows if row.telemetry is not None]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
