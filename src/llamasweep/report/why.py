"""Why it is slow: the findings of each run as cards, and on the rows that they are about. What is found is the work of `results`.

Words and numbers come from the findings; here they are grouped by kind, linked to rows, and bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from llamasweep.report import figures
from llamasweep.report.findings import Finding as Sentence
from llamasweep.report.findings import finding as sentence
from llamasweep.report.names import shown
from llamasweep.report.row_marks import SIGNS, card_anchor, kind_word, marks_of
from llamasweep.report.rows import Row, varying
from llamasweep.report.told import Told
from llamasweep.report.trouble import row_name
from llamasweep.results.checks import Finding, Kind, Severity, by_attempt, by_kind, check_run
from llamasweep.results.records import RunData

MAX_CAUSES = 4
MAX_SIGHTS_OPEN = 2
MAX_SIGHTS = 6
MAX_ROWS_NAMED = 4
"""Bounds of a card: at most 4 causes with 6 sights of 4 rows are linked; all others are counted."""


MAX_SENTENCES = 2
_TOLD_BY_PANELS: frozenset[Kind] = frozenset({"depth_loss"})
"""The sentence of the depth panel says it at the head of the page already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """What was seen, with its numbers, and in which rows: anchors and names of the first; n_rows: of all."""

    seen: str
    rows: tuple[tuple[str, str], ...]
    n_rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """One likely cause with its next step. more_sights: folded; n_left_out: sights beyond the bound.

    severity: where it differs from its card's, else None.
    """

    severity: Severity | None
    cause: str
    next_step: str
    sights: tuple[Sight, ...]
    more_sights: tuple[Sight, ...]
    n_left_out: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """All findings of a kind in a run. severity: of the gravest. word: what marks its rows. anchors: of all of them.

    n_left_out: causes not shown.
    """

    anchor: str
    kind: Kind
    severity: Severity
    sign: str
    title: str
    word: str
    n_rows: int
    anchors: tuple[str, ...]
    causes: tuple[Cause, ...]
    n_left_out: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCards:
    """A run's cards: alarms and warnings, then notes."""

    run_id: str
    cards: tuple[Card, ...]
    notes: tuple[Card, ...]


Found = Mapping[str, Sequence[Finding]]
"""run_id -> its findings, the gravest first."""


def found_in(runs: Sequence[RunData]) -> Found:
    """Each run is checked by itself: rows of different runs are not held against each other."""
    return {run.info.run_id: check_run(run) for run in runs}


def with_findings(rows: Iterable[Row], found: Found) -> tuple[Row, ...]:
    """The rows, each with the findings about the tries that its figures are made of, and with their marks."""
    about = {run_id: by_attempt(findings) for run_id, findings in found.items()}
    number_of = {run_id: number for number, run_id in enumerate(found, 1)}
    marked = []
    for row in rows:
        of_run = about[row.run_id]
        findings = tuple(f for one in row.attempt_ids for f in of_run.get(one, ()))
        marks = marks_of(row.flags, findings, number_of[row.run_id])
        marked.append(replace(row, findings=findings, marks=marks))
    return tuple(marked)


def cards(rows: Sequence[Row], found: Found) -> tuple[RunCards, ...]:
    """The section, run by run; a run of whose rows nothing was found is left out."""
    axes = varying(rows)
    runs = []
    for number, (run_id, findings) in enumerate(found.items(), 1):
        own = [row for row in rows if row.run_id == run_id]
        row_of = {attempt_id: row for row in own for attempt_id in row.attempt_ids}
        told = [f for f in findings if not row_of.keys().isdisjoint(f.attempt_ids)]
        names = {row.anchor: row_name(row, axes) for row in own if row.findings}
        all_cards = [
            _card(card_anchor(kind, number), of_kind, row_of, names)
            for kind, of_kind in by_kind(told).items()
        ]
        if all_cards:
            runs.append(
                RunCards(
                    run_id=shown(run_id),
                    cards=tuple(card for card in all_cards if card.severity != "note"),
                    notes=tuple(card for card in all_cards if card.severity == "note"),
                )
            )
    return tuple(runs)


def sentences(runs: Sequence[RunCards], rows: Sequence[Row]) -> tuple[Sentence, ...]:
    """The gravest for the head of the page: kind, number of rows, and the cause where all of them have the same."""
    of_kind: dict[Kind, list[Card]] = {}
    for severity in ("alarm", "warning"):
        for card in (card for run in runs for card in run.cards):
            if card.severity == severity and card.kind not in _TOLD_BY_PANELS:
                of_kind.setdefault(card.kind, []).append(card)
    said = [_sentence(same, rows) for same in list(of_kind.values())[:MAX_SENTENCES]]
    if len(of_kind) > len(said):
        said.append(Sentence(text="More warnings stand under Why slow.", link="why"))
    return tuple(said)


def _sentence(same: Sequence[Card], rows: Sequence[Row]) -> Sentence:
    told = Told()
    anchors = {anchor for card in same for anchor in card.anchors}
    about = [row for row in rows if row.anchor in anchors]
    causes = {cause.cause for card in same for cause in card.causes}
    why = f" {told.name(causes.pop())}" if len(causes) == 1 else ""
    n = told.number(figures.counted(len(about), "row"), len(about), "rows", about)
    of = told.number(figures.count(len(rows)), len(rows), "all rows")
    return sentence(f"{told.name(same[0].title)}: {n} of {of}.{why}", same[0].anchor, told)


def _card(
    anchor: str,
    of_kind: Sequence[Finding],
    row_of: Mapping[str, Row],
    names: Mapping[str, str],
) -> Card:
    first = of_kind[0]
    anchors = dict.fromkeys(a for finding in of_kind for a in _anchors(finding, row_of))
    alike: dict[tuple[Severity, str, str], list[Finding]] = {}
    for finding in of_kind:
        key = (finding.severity, finding.cause, finding.next_step)
        alike.setdefault(key, []).append(finding)
    causes = [
        _cause(key, group, None if key[0] == first.severity else key[0], row_of, names)
        for key, group in list(alike.items())[:MAX_CAUSES]
    ]
    return Card(
        anchor=anchor,
        kind=first.kind,
        severity=first.severity,
        sign=SIGNS[first.severity],
        title=first.title[0].upper() + first.title[1:],
        word=kind_word(first.kind),
        n_rows=len(anchors),
        anchors=tuple(anchors),
        causes=tuple(causes),
        n_left_out=max(0, len(alike) - MAX_CAUSES),
    )


def _cause(
    key: tuple[Severity, str, str],
    group: Sequence[Finding],
    severity: Severity | None,
    row_of: Mapping[str, Row],
    names: Mapping[str, str],
) -> Cause:
    sights = [_sight(finding, row_of, names) for finding in group[:MAX_SIGHTS]]
    return Cause(
        severity=severity,
        cause=shown(key[1], 400),
        next_step=shown(key[2], 400),
        sights=tuple(sights[:MAX_SIGHTS_OPEN]),
        more_sights=tuple(sights[MAX_SIGHTS_OPEN:]),
        n_left_out=max(0, len(group) - MAX_SIGHTS),
    )


def _sight(finding: Finding, row_of: Mapping[str, Row], names: Mapping[str, str]) -> Sight:
    anchors = _anchors(finding, row_of)
    return Sight(
        seen=shown(finding.seen, 600),
        rows=tuple((anchor, names[anchor]) for anchor in anchors[:MAX_ROWS_NAMED]),
        n_rows=len(anchors),
    )


def _anchors(finding: Finding, row_of: Mapping[str, Row]) -> list[str]:
    """Of the rows that it is about, each once; none for a try that another one replaced."""
    known = (row_of[one].anchor for one in finding.attempt_ids if one in row_of)
    return list(dict.fromkeys(known))
