"""Sentences made from the data: what was found of speeds, and what went wrong. No sentence praises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import compare, median, shallowest
from llamasweep.report.figures import THIN
from llamasweep.report.headline import allowed_words
from llamasweep.report.names import shown
from llamasweep.report.rows import Row, varying
from llamasweep.report.strips import per_model, representative
from llamasweep.results.records import FAILED_STATUSES


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence and the part of the page that shows it (an id, without #)."""

    text: str
    link: str


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """What was found of speeds: shares of the ceiling, steps of the quantisation ladder."""
    return (*_ceiling_findings(rows), *_ladder_findings(rows))


def _ceiling_findings(rows: Sequence[Row]) -> list[Finding]:
    pairs = per_model([row for row in rows if row.rates is not None])
    tg = [one for one, _ in pairs if one is not None]
    found = [_generation_share(tg), _prompt_share([pp for _, pp in pairs if pp is not None])]
    return [Finding(text=text + ".", link="ceiling") for text in found if text]


def _generation_share(rows: Sequence[Row]) -> str:
    exact = [row.fraction.value for row in rows if row.fraction.value is not None]
    pencil = [row.pencil_fraction.value for row in rows if row.pencil_fraction.value is not None]
    by_pencil = "the pencil ceiling (bandwidth ÷ model size)"
    if not exact:
        if not pencil:
            return ""
        reason = next((row.ceiling.reason for row in rows if row.ceiling.reason), None)
        return (
            f"Generation reaches {_span(pencil)} of {by_pencil} at its fastest setting; people quote "
            f"70 to 85{THIN}%. No exact ceiling: {shown(reason or '', 200)}"
        )
    text = (
        f"Generation reaches {_span(exact)} of the exact ceiling (bandwidth ÷ bytes that a token must move) "
        "at its fastest setting"
    )
    if pencil:
        text += f"; of {by_pencil} it is {_span(pencil)}, where people quote 70 to 85{THIN}%"
    return text


def _prompt_share(rows: Sequence[Row]) -> str:
    known = [row for row in rows if row.fraction.value is not None]
    if not known:
        return ""
    shares = [row.fraction.value for row in known if row.fraction.value is not None]
    bounds = {allowed_words(row) for row in known}
    what = bounds.pop() if len(bounds) == 1 else "the exact ceiling"
    return f"Prompt reading reaches {_span(shares)} of {what}"


def _span(fractions: Sequence[float]) -> str:
    return figures.span(figures.percent(min(fractions)), figures.percent(max(fractions)))


def _ladder_findings(rows: Sequence[Row]) -> list[Finding]:
    """Per model: the smallest file against the largest, at equal settings."""
    found = []
    tg = shallowest(representative([row for row in rows if row.rates is not None], "tg"))
    for family in dict.fromkeys(row.family for row in tg):
        sized = [row for row in tg if row.family == family and row.attempt.model_size_bytes]
        pair = _ladder_pair(sized)
        if pair is None:
            continue
        small, large = pair
        ratio = median(small) / median(large)
        share = (small.attempt.model_size_bytes or 0) / (large.attempt.model_size_bytes or 1)
        size_words = f"at {figures.percent(share)} of the size"
        words = {
            "faster": f"generates {figures.times(ratio)} as fast as {large.quant} {size_words}",
            "slower": f"generates at {figures.percent(ratio)} of the speed of {large.quant} although it is smaller",
            "same": f"generates as fast as {large.quant}, {size_words}",
            "undecided": f"and {large.quant} differ by less than their spread shows",
        }[compare(small, large)]
        found.append(Finding(text=f"{shown(family)}: {small.quant} {words}.", link="rates"))
    return found[:3]


def _ladder_pair(rows: Sequence[Row]) -> tuple[Row, Row] | None:
    by_setting: dict[tuple[object, ...], list[Row]] = {}
    axes = varying(rows)
    for row in rows:
        key = (row.run_id, row.build, *(row.settings.get(axis) for axis in axes))
        by_setting.setdefault(key, []).append(row)
    groups = [group for group in by_setting.values() if len({row.quant for row in group}) > 1]
    if not groups:
        return None
    group = max(groups, key=lambda rows_: (len({r.quant for r in rows_}), max(map(median, rows_))))
    ordered = sorted(group, key=lambda row: row.attempt.model_size_bytes or 0)
    return (ordered[0], ordered[-1]) if ordered[0].quant != ordered[-1].quant else None


def failures(rows: Sequence[Row]) -> list[Finding]:
    failed = [row for row in rows if row.status in FAILED_STATUSES]
    if not failed:
        return []
    kinds = Counter(
        (row.attempt.exit_signal or row.attempt.error_kind or row.status).replace("_", " ")
        for row in failed
    )
    words = ", ".join(f"{n} × {shown(kind, 40)}" for kind, n in kinds.most_common(4))
    return [
        Finding(text=f"{figures.counted(len(failed), 'cell')} failed: {words}.", link="failures")
    ]
