"""A history that is only compared where the machine stayed the same: split where its fingerprint changes.

Knows what each point was measured with, as names and values; what goes into a fingerprint is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from llamasweep.stats.change_points import ChangePoint, change_points
from llamasweep.stats.rounds import Rate, is_usable

Fingerprint = Mapping[str, str | None]
"""Name of a fact (driver, kernel, model content, a setting) -> its value; None or left out where not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Points that may be compared with each other.

    start, end: indices into the whole series, end not included; gaps belong to the stretch before them. differs: names
    of the facts that changed at start, in order; empty for the first stretch. changes: with indices into the whole series.
    """

    start: int
    end: int
    differs: tuple[str, ...]
    changes: tuple[ChangePoint, ...]


def changes_of_series(
    values_tps: Sequence[Rate], fingerprints: Sequence[Fingerprint]
) -> list[Stretch]:
    """The stretches of a series and the changes within each.

    A fact that is not known at a point counts as unchanged; it is compared with the last point that knew it. Gaps have
    no say. Raises ValueError where the lengths differ.
    """
    if len(values_tps) != len(fingerprints):
        raise ValueError(f"{len(values_tps)} values and {len(fingerprints)} fingerprints")
    starts: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    known: dict[str, str] = {}
    for index, (value, fingerprint) in enumerate(zip(values_tps, fingerprints, strict=True)):
        if not is_usable(value):
            continue
        facts = {name: fact for name, fact in fingerprint.items() if fact is not None}
        differs = tuple(sorted(n for n, fact in facts.items() if known.get(n, fact) != fact))
        if differs:
            starts.append((index, differs))
        known.update(facts)
    ends = [start for start, _ in starts[1:]] + [len(values_tps)]
    return [
        Stretch(start=start, end=end, differs=differs, changes=_moved(values_tps, start, end))
        for (start, differs), end in zip(starts, ends, strict=True)
    ]


def _moved(values_tps: Sequence[Rate], start: int, end: int) -> tuple[ChangePoint, ...]:
    return tuple(
        replace(
            change,
            index=change.index + start,
            last_index=change.last_index + start,
            before_index=None if change.before_index is None else change.before_index + start,
        )
        for change in change_points(values_tps[start:end])
    )
