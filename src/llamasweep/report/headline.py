"""The title of the page: what was measured on what, how fast, and how far from what the hardware allows."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.comparison import median, shallowest
from llamasweep.report.rows import Row
from llamasweep.report.strips import representative
from llamasweep.report.told import Told
from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.results.records import FAILED_STATUSES

__all__ = ["BROKEN_ABOVE", "allowed_words", "headline", "outcome_words", "share"]


def headline(rows: Sequence[Row], where: str, told: Told | None = None) -> str:
    """What was measured on what, with its speed and its share of the exact ceiling; its numbers are noted in `told`."""
    told = told if told is not None else Told()
    told.name(where)
    measured = [row for row in rows if row.rates is not None]
    if not measured:
        outcome = outcome_words(rows, told) or "no cell was tried"
        return f"Nothing could be measured on {where}: {outcome}"
    tg = shallowest(representative(measured, "tg"))
    pp = shallowest(representative(measured, "pp"))
    best_tg = max(tg, key=median, default=None)
    best_pp = max(pp, key=median, default=None)
    best = best_tg or best_pp or max(measured, key=median)
    subject = told.name(best.subject)
    parts: list[str] = []
    if best_tg is not None:
        parts.append(f"writes {_rate(best_tg, told)} tokens a second{share(best_tg, told)}")
    same_subject = [row for row in pp if row.subject == best.subject]
    reader = max(same_subject, key=median, default=None if best_tg else best_pp)
    if reader is not None:
        unit = "" if parts else " tokens a second"
        parts.append(f"reads {_rate(reader, told)}{unit}{share(reader, told)}")
    if not parts:
        parts.append(f"does {_rate(best, told)} tokens a second in {told.name(best.test)}")
    speeds = (", and " if "," in parts[0] else " and ").join(parts)
    n_subjects = len({row.subject for row in measured})
    if n_subjects > 1:
        of = told.number(str(n_subjects), n_subjects, "models", measured)
        return f"On {where}, {subject} is the fastest of {of}: it {speeds}"
    return f"{subject} on {where} {speeds}"


def _rate(row: Row, told: Told) -> str:
    return told.number(figures.number(median(row)), median(row), "median", [row])


def share(row: Row, told: Told) -> str:
    """`, 81 % of what the memory allows`; nothing above the ceiling: then the findings say what is wrong with it."""
    fraction = row.fraction.value
    if fraction is None or fraction > BROKEN_ABOVE:
        return ""
    percent = told.number(figures.percent(fraction), fraction, "share of ceiling", [row])
    return f", {percent} of {allowed_words(row)}"


def allowed_words(row: Row) -> str:
    """What the row's ceiling is made of."""
    if row.attempt.ceiling_is_reference:
        return "the reference peak"
    return {"memory": "what the memory allows", "compute": "what the compute allows"}.get(
        row.attempt.ceiling_bound or "", "the exact ceiling"
    )


def outcome_words(rows: Sequence[Row], told: Told | None = None) -> str:
    """`3 cells failed, 2 not possible here`, '' where all went well."""
    told = told if told is not None else Told()
    of_status: dict[str, list[Row]] = {}
    for row in rows:
        name = "failed" if row.status in FAILED_STATUSES else row.status
        of_status.setdefault(name, []).append(row)
    words = {"failed": "failed", "unsupported": "not possible here", "skipped": "skipped"}
    return ", ".join(
        f"{told.number(figures.counted(len(found), 'cell'), len(found), 'rows', found)} {word}"
        for status, word in words.items()
        if (found := of_status.get(status, []))
    )
