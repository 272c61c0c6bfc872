"""What a finding is: a kind from a closed list, the numbers it rests on, the likely cause and the next step.

Knows how evidence is written for people. Knows neither rows nor machines; what is found, and when, is in `checks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from llamasweep.results.finding_kinds import KINDS, Kind, Severity
from llamasweep.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_tps

_LONGEST_TEXT = 200

_UNITS: dict[str, Callable[[float], str]] = {
    "_bytes_per_s": format_bytes_per_s,
    "_flop_per_s": format_flop_per_s,
    "_bytes": lambda value: format_bytes(round(value)),
    "_fraction": lambda value: f"{value * 100:.3g} %" if value < 9.995 else f"{value * 100:,.0f} %",
    "_tps": format_tps,
    "_ms": lambda value: f"{value:.3g} ms",
    "_mhz": lambda value: f"{value:.0f} MHz",
    "_mts": lambda value: f"{value:.0f} MT/s",
    "_c": lambda value: f"{value:.0f} °C",
    "_w": lambda value: f"{value:.3g} W",
}
"""End of an evidence's name -> how its number is written. Longer ends stand first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One thing that was seen. name: with its unit, or `n_…` for a count; no unit where the value is a text."""

    name: str
    value: int | float | str

    @property
    def unit(self) -> str | None:
        """The end of the name that is its unit, such as `_tps`; None for counts and texts."""
        return next((end for end in _UNITS if self.name.endswith(end)), None)

    @property
    def text(self) -> str:
        """For people: `share of the ceiling 43 %`. A text comes from records: escape it where it is shown."""
        unit = self.unit
        words = self.name.removesuffix(unit or "").removeprefix("n_").replace("_", " ")
        if isinstance(self.value, str):
            return f"{words} {self.value[:_LONGEST_TEXT]}"
        if unit is None:
            return f"{words} {self.value:,.0f}"
        return f"{words} {_UNITS[unit](self.value)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What was found about one attempt or several.

    severity: "alarm" where a figure cannot be as it should, "warning" where something can be changed, "note" where it
    explains a figure that is no fault. cause, next_step: sentences. attempt_ids: in the order of the run.
    """

    kind: Kind
    severity: Severity
    evidence: tuple[Evidence, ...]
    cause: str
    next_step: str
    attempt_ids: tuple[str, ...]

    @property
    def title(self) -> str:
        """The kind in a few words."""
        return KINDS[self.kind].title

    @property
    def seen(self) -> str:
        """The evidence in one line."""
        return ", ".join(item.text for item in self.evidence)

    @property
    def text(self) -> str:
        """All of it in a few sentences: what was seen, the likely cause, the next step."""
        return f"{self.title}: {self.seen}. {self.cause} {self.next_step}"


def make_finding(
    kind: Kind,
    evidence: Mapping[str, int | float | str | None],
    attempt_ids: Sequence[str],
    *,
    severity: Severity | None = None,
    cause: str | None = None,
    next_step: str | None = None,
) -> Finding:
    """A finding with the words of its kind where it has none of its own. Evidence that is None or not finite is left out.

    Raises ValueError without evidence or attempts: nothing is said without either.
    """
    known = tuple(Evidence(name=k, value=v) for k, v in evidence.items() if _is_known(v))
    if not known or not attempt_ids:
        raise ValueError(f"{kind}: a finding needs evidence and an attempt")
    words = KINDS[kind]
    return Finding(
        kind=kind,
        severity=severity or words.severity,
        evidence=known,
        cause=cause or words.cause,
        next_step=next_step or words.next_step,
        attempt_ids=tuple(attempt_ids),
    )


def _is_known(value: int | float | str | None) -> TypeGuard[int | float | str]:
    return isinstance(value, str) or (value is not None and math.isfinite(value))


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that differ only in their attempts as one, in the order of severity, then of the kinds, then as found."""
    ids: dict[tuple[object, ...], list[str]] = {}
    first: dict[tuple[object, ...], Finding] = {}
    for found in findings:
        key = (found.kind, found.severity, found.evidence, found.cause, found.next_step)
        first.setdefault(key, found)
        ids.setdefault(key, []).extend(found.attempt_ids)
    ranks = {kind: rank for rank, kind in enumerate(KINDS)}
    severities = {"alarm": 0, "warning": 1, "note": 2}
    joined = [
        Finding(
            kind=found.kind,
            severity=found.severity,
            evidence=found.evidence,
            cause=found.cause,
            next_step=found.next_step,
            attempt_ids=tuple(dict.fromkeys(ids[key])),
        )
        for key, found in first.items()
    ]
    return tuple(sorted(joined, key=lambda f: (severities[f.severity], ranks[f.kind])))


def by_attempt(findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
    """attempt_id -> what was found about it, in the order given."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        for attempt_id in finding.attempt_ids:
            found.setdefault(attempt_id, []).append(finding)
    return {attempt_id: tuple(items) for attempt_id, items in found.items()}


def by_kind(findings: Iterable[Finding]) -> dict[Kind, tuple[Finding, ...]]:
    """kind -> its findings, kinds in the order of their first one: for a page that says each thing once."""
    found: dict[Kind, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.kind, []).append(finding)
    return {kind: tuple(items) for kind, items in found.items()}
