"""Flags in words: what each doubt means and what to do about it. One that a finding tells with its numbers is not told again."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from llamasweep.report.names import shown
from llamasweep.results.finding_kinds import Kind

_BUSY: frozenset[Kind] = frozenset({"busy_neighbour", "barrier_collapse"})
_TOLD_BY: dict[str, frozenset[Kind]] = {
    "wide_spread": frozenset({"wide_spread"}),
    "noisy": frozenset({"wide_spread"}),
    "busy_neighbour": _BUSY,
    "contaminated": _BUSY,
    "throttled": frozenset({"throttled"}),
    "paged_from_disk": frozenset({"paged_from_disk"}),
    "first_sample_slow": frozenset({"first_repetition_slow"}),
    "above_ceiling": frozenset({"above_ceiling"}),
    "far_below_ceiling": frozenset({"far_below_ceiling"}),
}
"""Flag -> kinds of findings that say the same. A flag is written on less evidence, so it may stand without a finding."""

_FLAGS: dict[str, tuple[str, str]] = {
    "applied_differs": (
        "applied ≠ asked",
        "The engine ran with another value than the sweep asked for. Read the row by the applied value; "
        "the differences are listed below.",
    ),
    "clamped": (
        "clamped",
        "The engine cut a value down to what it can use, such as a batch above the context. "
        "The differences are listed below.",
    ),
    "wide_spread": (
        "noisy",
        "The repetitions lie far apart. Close other programs, fix the clock if you can, and measure these "
        "cells again with more repetitions.",
    ),
    "busy_neighbour": (
        "others busy",
        "Something else used the processor meanwhile. Measure these cells again on a quiet machine.",
    ),
    "throttled": (
        "throttled",
        "The device lowered its clock because of heat or its power limit. These are speeds of a hot machine; "
        "for a cool one set a cooldown.",
    ),
    "paged_from_disk": (
        "read from disk",
        "The engine read weights from disk while it was timed, most often because they do not fit in RAM. "
        "Take a smaller quantisation, or see what else fills the memory.",
    ),
    "first_sample_slow": (
        "slow start",
        "The first repetition is slower than the rest although the engine had warmed up. The sweep's "
        "discard setting says how such a start is treated.",
    ),
    "unpinned": (
        "not pinned",
        "The cores that the sweep asked for could not be had, so threads were free to move. Correct cpu_mask, or read "
        "these rows as unpinned.",
    ),
    "above_ceiling": (
        "above the ceiling",
        "Faster than the exact ceiling allows, so one of its assumptions is wrong; they are listed below. Most often the "
        "bandwidth is: it was measured too low, or the weights stay in a cache and need none.",
    ),
    "far_below_ceiling": (
        "far below the ceiling",
        "Less than 15 % of the exact ceiling. Is this the device that you think? Look for layers left on the processor, "
        "a build without its backend, or a busy machine.",
    ),
    "contaminated_memory": (
        "memory not free",
        "Device memory was not free again before the engine started, so other work may have been on the device. Close "
        "what uses it and measure these cells again.",
    ),
    "round_failed": (
        "a round failed",
        "At least one round of this cell failed; the figures are of the rounds that succeeded.",
    ),
}
_FLAGS["noisy"] = _FLAGS["wide_spread"]
_FLAGS["contaminated"] = _FLAGS["busy_neighbour"]


def untold(flags: Iterable[str], kinds: Collection[Kind]) -> tuple[str, ...]:
    """Flags of a row that none of the findings about it tells."""
    return tuple(flag for flag in flags if _TOLD_BY.get(flag, frozenset()).isdisjoint(kinds))


def flag_word(flag: str) -> str:
    """Two or three words for the table; a flag that is not known here by its own name."""
    return _FLAGS[flag][0] if flag in _FLAGS else shown(flag.replace("_", " "), 60)


def flag_meaning(flag: str) -> str:
    """What was seen and what to do."""
    if flag in _FLAGS:
        return _FLAGS[flag][1]
    return "A doubt that the runner noted for these rows; the notes of the run may say more."
