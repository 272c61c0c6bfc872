"""Sentences made from the data: the title of the page, what it found, and the title of each panel.

A difference is said to exist only where the ranges of the kept repetitions do not overlap and the medians differ by more
than 3 %; with fewer than two repetitions nothing is said of differences. No sentence praises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llamasweep.report import figures
from llamasweep.report.flags import NOISY
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.panels import Panel, Point, Series
from llamasweep.report.rows import Row, varying
from llamasweep.report.strips import per_model, representative
from llamasweep.results.records import FAILED_STATUSES

SAME_WITHIN = 0.03
"""Medians closer than this are treated as the same speed (the report's choice; the samples stay visible)."""

_BROKEN_ABOVE = 1.02
"""A share above this means that an assumption of the ceiling is wrong, not that the machine is good."""

Verdict = Literal["faster", "slower", "same", "undecided"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence and the part of the page that shows it (an id, without #)."""

    text: str
    link: str


def compare(a: Row, b: Row) -> Verdict:
    """How a stands to b. Undecided: a large difference within the spread, or too few repetitions to see one."""
    if a.rates is None or b.rates is None:
        return "undecided"
    ratio = a.rates.median / b.rates.median
    if 1 / (1 + SAME_WITHIN) <= ratio <= 1 + SAME_WITHIN:
        return "same"
    lows_highs = (a.rates.low, a.rates.high, b.rates.low, b.rates.high)
    if min(a.rates.n_kept, b.rates.n_kept) < 2 or any(value is None for value in lows_highs):
        return "undecided"
    a_low, a_high, b_low, b_high = (float(value or 0.0) for value in lows_highs)
    if a_low > b_high:
        return "faster"
    if a_high < b_low:
        return "slower"
    return "undecided"


def headline(rows: Sequence[Row], where: str) -> str:
    """The title: what was measured on what, with its speed and its share of the pencil ceiling."""
    measured = [row for row in rows if row.rates is not None]
    if not measured:
        return f"Nothing could be measured on {where}: {outcome_words(rows) or 'no cell was tried'}"
    tg = shallowest(representative(measured, "tg"))
    pp = shallowest(representative(measured, "pp"))
    best_tg = max(tg, key=median, default=None)
    best_pp = max(pp, key=median, default=None)
    best = best_tg or best_pp or max(measured, key=median)
    subjects = {row.subject for row in measured}
    parts: list[str] = []
    if best_tg is not None:
        parts.append(f"writes {figures.number(median(best_tg))} tokens a second" + _share(best_tg))
    same_subject = [row for row in pp if row.subject == best.subject]
    reader = max(same_subject, key=median, default=None if best_tg else best_pp)
    if reader is not None:
        unit = "" if parts else " tokens a second"
        parts.append(f"reads {figures.number(median(reader))}{unit}")
    if not parts:
        parts.append(f"does {figures.number(median(best))} tokens a second in {best.test}")
    speeds = " and ".join(parts) if len(parts) > 1 else parts[0].removesuffix(",")
    if len(subjects) > 1:
        return f"On {where}, {best.subject} is the fastest of {len(subjects)}: it {speeds}"
    return f"{best.subject} on {where} {speeds}"


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """What was found of speeds: shares of the ceiling, steps of the quantisation ladder."""
    return (*_ceiling_findings(rows), *_ladder_findings(rows))


def warnings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """What went wrong or is in doubt."""
    found = _failure_findings(rows)
    noisy = [row for row in rows if NOISY & set(row.flags)]
    if noisy:
        verb = "is" if len(noisy) == 1 else "are"
        found.append(
            Finding(
                text=f"{figures.counted(len(noisy), 'row')} of {figures.count(len(rows))} "
                f"{verb} noisy: read small differences there with care.",
                link="trust",
            )
        )
    return tuple(found)


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


def panel_title(panel: Panel) -> str:
    """What one panel shows, in a sentence without a full stop."""
    if panel.axis == "n_depth":
        return _depth_title(panel)
    if panel.axis == "n_threads":
        return _threads_title(panel)
    verdicts = {_best_words(series, panel) for series in panel.series}
    word = _verb(panel.kind)
    if len(verdicts) == 1:
        return f"{word} {verdicts.pop()}"
    return f"{word}: which {axis_word(panel.axis)} is fastest depends on {_series_noun(panel)}"


def rates_title(rows: Sequence[Row]) -> str:
    """What the bars of one kind of test show."""
    kind = rows[0].kind
    best = max(rows, key=median)
    verb = {"tg": "writes", "pp": "reads"}.get(kind, "does")
    text = f"{shown(best.subject, 60)} {verb} {figures.number(median(best))} tokens a second"
    return text + (f", the fastest of {len(rows)}" if len(rows) > 1 else "")


def median(row: Row) -> float:
    """Median rate in t/s, 0 where there is none (for sorting only)."""
    return row.rates.median if row.rates is not None else 0.0


def shallowest(rows: Sequence[Row]) -> list[Row]:
    """Rows at the least depth among them."""
    depth = min((row.attempt.n_depth for row in rows), default=0)
    return [row for row in rows if row.attempt.n_depth == depth]


def _share(row: Row) -> str:
    """Nothing above the ceiling: then the bandwidth is wrong for this model, and the findings say so."""
    fraction = row.pencil_fraction.value
    if fraction is None or fraction > _BROKEN_ABOVE:
        return ""
    return f", {figures.percent(fraction)} of the pencil ceiling,"


def _verb(kind: str) -> str:
    return {"tg": "Generation", "pp": "Prompt reading"}.get(kind, kind)


def _ceiling_findings(rows: Sequence[Row]) -> list[Finding]:
    best = [tg for tg, _ in per_model([row for row in rows if row.rates is not None]) if tg]
    fractions = [row.pencil_fraction.value for row in best if row.pencil_fraction.value is not None]
    if not fractions:
        return []
    share = figures.span(figures.percent(min(fractions)), figures.percent(max(fractions)))
    text = f"Generation reaches {share} of the pencil ceiling (memory bandwidth ÷ model size) at its fastest setting"
    if max(fractions) > _BROKEN_ABOVE:
        text += (
            "; above 100 % means that the bandwidth figure is too low for this model, most often because "
            "its weights stay in the processor's cache"
        )
    elif min(fractions) >= 0.70:
        text += ", where a healthy machine reaches 70 to 85 %"
    else:
        text += "; people quote 70 to 85 % for a healthy machine and a model much larger than its caches"
    return [Finding(text=text + ".", link="ceiling")]


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


def _failure_findings(rows: Sequence[Row]) -> list[Finding]:
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


def _depth_title(panel: Panel) -> str:
    ends = [(series.points[0], series.points[-1]) for series in panel.series]
    deepest = max(float(last.x) for _, last in ends)
    where = f"depth {figures.count(int(deepest))}"
    clear = [(a, b) for a, b in ends if compare(b.row, a.row) in ("slower", "faster")]
    same = [(a, b) for a, b in ends if compare(b.row, a.row) == "same"]
    if not clear:
        visible = "loses nothing" if len(same) == len(ends) else "loses nothing beyond the spread"
        return f"{_verb(panel.kind)} {visible} up to {where}"
    kept = [last.median / first.median for first, last in clear + same]
    share = figures.span(figures.percent(min(kept)), figures.percent(max(kept)))
    return f"{_verb(panel.kind)} keeps {share} of its speed at {where}"


def _threads_title(panel: Panel) -> str:
    word = _verb(panel.kind)
    most = max(float(point.x) for series in panel.series for point in series.points)
    firm = {_enough(series, ("same",)) for series in panel.series}
    loose = {_enough(series, ("same", "undecided")) for series in panel.series}
    needed = max(loose)
    if len(loose) > 1:
        return (
            f"{word} needs {min(loose):g} to {needed:g} threads, depending on {_series_noun(panel)}"
        )
    if needed == most:
        return f"{word} still gains at {most:g} threads, the most that was tried"
    lost = max(series.points[-1].median / _best(series).median for series in panel.series)
    if all(
        compare(series.points[-1].row, _best(series).row) == "slower" for series in panel.series
    ):
        return (
            f"{word} is fastest at {needed:g} {_threads(needed)}; {most:g} keep "
            f"{figures.percent(lost)} of that"
        )
    beyond = "" if firm == loose else " beyond the spread"
    return f"Above {needed:g} {_threads(needed)} {word.lower()} gains nothing{beyond}"


def _threads(n: float) -> str:
    return "thread" if n == 1 else "threads"


def _best(series: Series) -> Point:
    return max(series.points, key=lambda point: point.median)


def _enough(series: Series, verdicts: tuple[Verdict, ...]) -> float:
    """Fewest threads that the fastest point is not clearly faster than; single repetitions show nothing clearly."""
    best = _best(series)
    if best.row.rates is None or best.row.rates.n_kept < 2:
        verdicts = ("same",)
    return min(
        float(point.x) for point in series.points if compare(best.row, point.row) in verdicts
    )


def _best_words(series: Series, panel: Panel) -> str:
    ordered = sorted(series.points, key=lambda point: point.median)
    worst, best = ordered[0], ordered[-1]
    if best.median <= worst.median * (1 + SAME_WITHIN):
        return f"does not depend on {axis_word(panel.axis)} (within 3 %)"
    if compare(best.row, worst.row) == "undecided":
        return f"shows no difference in {axis_word(panel.axis)} beyond the spread"
    return f"is fastest at {axis_word(panel.axis)} {_x_word(best)}"


def _x_word(point: Point) -> str:
    return f"{point.x:g}" if isinstance(point.x, float) else value_word(point.x)


def _series_noun(panel: Panel) -> str:
    return "the quantisation" if all("," not in s.label for s in panel.series) else "the setting"
