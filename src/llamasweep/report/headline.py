"""The title of the page: what was measured on what, how fast, and how far from what the hardware allows."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.comparison import least_load, load, median, shallowest
from llamasweep.report.flags import flag_word
from llamasweep.report.names import load_words
from llamasweep.report.rows import Row
from llamasweep.report.strips import of_least_load
from llamasweep.report.told import Told
from llamasweep.results.contenders import BROKEN_ABOVE, HARMLESS_FLAGS
from llamasweep.results.records import FAILED_STATUSES

__all__ = ["BROKEN_ABOVE", "allowed_words", "fastest", "headline", "outcome_words", "share"]


def fastest(rows: Sequence[Row]) -> tuple[Row | None, Row | None]:
    """(tg, pp) that the page is called after: the model that generates fastest, and how fast the same one reads.

    Of the least load and depth and of the longest test; None where there is no such rate. A rate with a doubt stands for a
    model only where that has none without.
    """
    measured = [row for row in rows if row.rates is not None]
    tg = shallowest(of_least_load(measured, "tg"))
    pp = shallowest(of_least_load(measured, "pp"))
    writer = _reliable_fastest(tg)
    if writer is None:
        return None, _reliable_fastest(pp)
    same = [row for row in pp if row.subject == writer.subject]
    return writer, _reliable_fastest(same)


def _reliable_fastest(rows: Sequence[Row]) -> Row | None:
    """The fastest of what stands for each model: its rows without a doubt, else all of them."""
    of_model: dict[str, list[Row]] = {}
    for row in rows:
        of_model.setdefault(row.subject, []).append(row)
    stand = [
        max([row for row in found if not doubts(row)] or found, key=median)
        for found in of_model.values()
    ]
    return max(stand, key=median, default=None)


def doubts(row: Row) -> tuple[str, ...]:
    """Flags for which `best` does not rely on a rate either."""
    found = tuple(flag for flag in row.flags if flag not in HARMLESS_FLAGS)
    share_of_bound = None if row.attempt.ceiling_is_reference else row.fraction.value
    is_above = share_of_bound is not None and share_of_bound > BROKEN_ABOVE
    return (*found, "above_ceiling") if is_above and "above_ceiling" not in found else found


def headline(rows: Sequence[Row], where: str, told: Told | None = None) -> str:
    """What was measured on what, with its speed and its share of the exact ceiling; its numbers are noted in `told`."""
    told = told if told is not None else Told()
    told.name(where)
    measured = [row for row in rows if row.rates is not None]
    if not measured:
        outcome = outcome_words(rows, told) or "no cell was tried"
        return f"Nothing could be measured on {where}: {outcome}"
    writer, reader = fastest(measured)
    best = writer or reader or max(least_load(measured), key=median)
    subject = told.name(best.subject)
    parts: list[str] = []
    if writer is not None:
        parts.append(
            f"writes {_rate(writer, told)} tokens a second{_asked(writer, told)}{share(writer, told)}"
        )
    if reader is not None:
        unit = "" if parts else " tokens a second"
        parts.append(
            f"reads {_rate(reader, told)}{unit}{_asked(reader, told)}{share(reader, told)}"
        )
    if not parts:
        parts.append(f"does {_rate(best, told)} tokens a second in {told.name(best.test)}")
    speeds = (", and " if "," in parts[0] else " and ").join(parts)
    n_subjects = len({row.subject for row in measured})
    if n_subjects > 1:
        of = told.number(str(n_subjects), n_subjects, "models", measured)
        rival = _doubtful_rival(measured, best)
        among = " by rates to rely on" if rival is not None and not doubts(best) else ""
        other = "" if rival is None else f"; {_rival_words(rival, told)}"
        return f"On {where}, {subject} is the fastest of {of}{among}: it {speeds}{other}"
    return f"{subject} on {where} {speeds}"


def _doubtful_rival(measured: Sequence[Row], best: Row) -> Row | None:
    """The fastest of another model that measured more than the best one, with a doubt for which it does not stand."""
    alike = shallowest(of_least_load(measured, best.kind))
    faster = [r for r in alike if r.subject != best.subject and median(r) > median(best)]
    return max(faster, key=median, default=None)


def _rival_words(row: Row, told: Told) -> str:
    return f"{told.name(row.subject)} has {_rate(row, told)}{_asked(row, told)}"


def _asked(row: Row, told: Told) -> str:
    doubtful = ", ".join(flag_word(flag) for flag in doubts(row))
    said = [load_words(load(row)), f"not to be relied on: {doubtful}" if doubtful else ""]
    words = "; ".join(text for text in said if text)
    return f" ({told.name(words)})" if words else ""


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
