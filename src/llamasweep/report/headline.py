"""The title of the page: what was measured on what, how fast, and how far from what the hardware allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.comparison import median, shallowest
from llamasweep.report.rows import Row
from llamasweep.report.strips import representative
from llamasweep.results.records import FAILED_STATUSES

BROKEN_ABOVE = 1.02
"""A share above this means that an assumption of the ceiling is wrong, not that the machine is good."""


def headline(rows: Sequence[Row], where: str) -> str:
    """What was measured on what, with its speed and its share of the exact ceiling."""
    measured = [row for row in rows if row.rates is not None]
    if not measured:
        return f"Nothing could be measured on {where}: {outcome_words(rows) or 'no cell was tried'}"
    tg = shallowest(representative(measured, "tg"))
    pp = shallowest(representative(measured, "pp"))
    best_tg = max(tg, key=median, default=None)
    best_pp = max(pp, key=median, default=None)
    best = best_tg or best_pp or max(measured, key=median)
    parts: list[str] = []
    if best_tg is not None:
        parts.append(f"writes {figures.number(median(best_tg))} tokens a second{share(best_tg)}")
    same_subject = [row for row in pp if row.subject == best.subject]
    reader = max(same_subject, key=median, default=None if best_tg else best_pp)
    if reader is not None:
        unit = "" if parts else " tokens a second"
        parts.append(f"reads {figures.number(median(reader))}{unit}{share(reader)}")
    if not parts:
        parts.append(f"does {figures.number(median(best))} tokens a second in {best.test}")
    speeds = (", and " if "," in parts[0] else " and ").join(parts)
    subjects = {row.subject for row in measured}
    if len(subjects) > 1:
        return f"On {where}, {best.subject} is the fastest of {len(subjects)}: it {speeds}"
    return f"{best.subject} on {where} {speeds}"


def share(row: Row) -> str:
    """`, 81 % of what the memory allows`; nothing above the ceiling: then the findings say what is wrong with it."""
    fraction = row.fraction.value
    if fraction is None or fraction > BROKEN_ABOVE:
        return ""
    return f", {figures.percent(fraction)} of {allowed_words(row)}"


def allowed_words(row: Row) -> str:
    """What the row's ceiling is made of."""
    if row.attempt.ceiling_is_reference:
        return "the reference peak"
    return {"memory": "what the memory allows", "compute": "what the compute allows"}.get(
        row.attempt.ceiling_bound or "", "the exact ceiling"
    )


def outcome_words(rows: Sequence[Row]) -> str:
    """`3 cells failed, 2 not possible here`, '' where all went well."""
    counts = Counter(row.status for row in rows)
    failed = sum(n for status, n in counts.items() if status in FAILED_STATUSES)
    parts = [f"{figures.counted(failed, 'cell')} failed"] if failed else []
    if counts["unsupported"]:
        parts.append(f"{figures.counted(counts['unsupported'], 'cell')} not possible here")
    if counts["skipped"]:
        parts.append(f"{figures.counted(counts['skipped'], 'cell')} skipped")
    return ", ".join(parts)
