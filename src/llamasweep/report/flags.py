"""Flags in words: what each doubt means and what to do about it. One that a finding tells with its numbers is not told again."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from llamasweep.report.names import shown
from llamasweep.results.finding_kinds import Kind
from llamasweep.results.flag_words import FLAGS

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


def untold(flags: Iterable[str], kinds: Collection[Kind]) -> tuple[str, ...]:
    """Flags of a row that none of the findings about it tells."""
    return tuple(flag for flag in flags if _TOLD_BY.get(flag, frozenset()).isdisjoint(kinds))


def flag_word(flag: str) -> str:
    """Two or three words for the table; a flag that is not known here by its own name."""
    return FLAGS[flag].word if flag in FLAGS else shown(flag.replace("_", " "), 60)


def flag_meaning(flag: str) -> str:
    """What was seen and what to do."""
    if flag in FLAGS:
        return FLAGS[flag].meaning
    return "A doubt that the runner noted for these rows; the notes of the run may say more."
