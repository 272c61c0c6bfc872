"""Why it is slow: from the rows of one run to findings. Nothing is said without evidence.

The checks themselves are in modules by topic; here they are run, and an alarm gets the causes that the others found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from llamasweep.results import (
    ceiling_checks,
    memory_checks,
    placement_checks,
    power_checks,
    repetition_checks,
    setting_checks,
    thread_checks,
)
from llamasweep.results.decode_alarm import DecodeShortfall, decode_shortfall, is_decode_alarm
from llamasweep.results.finding_kinds import KINDS, Kind, Severity
from llamasweep.results.findings import Evidence, Finding, by_attempt, by_kind, make_finding, merged
from llamasweep.results.measured_rows import MeasuredRows, is_alarming
from llamasweep.results.records import Attempt, RunData

__all__ = [
    "KINDS",
    "DecodeShortfall",
    "Evidence",
    "Finding",
    "Kind",
    "Severity",
    "by_attempt",
    "by_kind",
    "check_run",
    "decode_shortfall",
    "explanations",
    "is_decode_alarm",
]

_CHECKS = (
    ceiling_checks.check,
    placement_checks.check,
    thread_checks.check,
    memory_checks.check,
    power_checks.check,
    setting_checks.check,
    repetition_checks.check,
)


def check_run(run: RunData) -> tuple[Finding, ...]:
    """All findings about one run, the gravest first; rows without a rate have none.

    Rows are compared with others of the same run only. Readings may be left out; then a GPU's throttling has no reason.
    """
    rows = MeasuredRows(run)
    found = [finding for check in _CHECKS for finding in check(rows)]
    causes = by_attempt(found)
    alarms = [_alarm(row, causes) for row in rows.rows if is_alarming(row)]
    return merged([*alarms, *found])


def explanations(findings: Sequence[Finding], attempt_id: str) -> tuple[Finding, ...]:
    """Those findings about an attempt that can be the reason for its slow decode, likeliest first."""
    about = by_attempt(findings).get(attempt_id, ())
    return tuple(_explaining(about))


def _explaining(about: Sequence[Finding]) -> Iterator[Finding]:
    for kind, words in KINDS.items():
        if words.explains:
            yield from (finding for finding in about if finding.kind == kind)


def _alarm(row: Attempt, causes: Mapping[str, Sequence[Finding]]) -> Finding:
    reasons = list(_explaining(causes.get(row.attempt_id, ())))
    evidence = ceiling_checks.shortfall_numbers(row)
    if not reasons:
        return make_finding("slow_decode", evidence, [row.attempt_id])
    titles = "; ".join(dict.fromkeys(finding.title for finding in reasons))
    return make_finding(
        "slow_decode",
        evidence,
        [row.attempt_id],
        cause=f"Likely: {titles}.",
        next_step=reasons[0].next_step,
    )
