"""Marks of a row: what was found about it and what is doubted, each with its sign, its word and the place that explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report.flags import flag_word, untold
from llamasweep.results.checks import Finding, Kind, Severity, by_kind

SIGNS: dict[Severity, str] = {"alarm": "▲", "warning": "⚑", "note": "○"}
"""The gravest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """sign: of its severity, '' for a flag that no finding tells. link: an id of the page."""

    sign: str
    word: str
    link: str

    @property
    def text(self) -> str:
        """Sign and word."""
        return f"{self.sign} {self.word}".lstrip()


def marks_of(
    flags: Sequence[str], findings: Sequence[Finding], run_number: int
) -> tuple[Mark, ...]:
    """Findings by kind, the gravest first, then the flags that none of them tells."""
    severities = list(SIGNS)
    ranked = sorted(findings, key=lambda finding: severities.index(finding.severity))
    gravest = {kind: of_kind[0] for kind, of_kind in by_kind(ranked).items()}
    return (
        *(
            Mark(sign=SIGNS[f.severity], word=kind_word(kind), link=card_anchor(kind, run_number))
            for kind, f in gravest.items()
        ),
        *(Mark(sign="", word=flag_word(flag), link="trust") for flag in untold(flags, gravest)),
    )


def card_anchor(kind: Kind, run_number: int) -> str:
    """Id of the card of a kind; runs are numbered from 1 in the order of the page."""
    return f"why-{run_number}-{kind}"


def kind_word(kind: Kind) -> str:
    """The kind in two or three words: its name as `docs/findings.md` lists it."""
    return kind.replace("_", " ")
