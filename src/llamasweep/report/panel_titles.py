"""What each small chart shows, as a sentence without a full stop. No sentence praises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from llamasweep.report import figures
from llamasweep.report.comparison import (
    SAME_WITHIN,
    Verdict,
    compare,
    is_repeated,
    least_load,
    load,
    median,
)
from llamasweep.report.depth_loss import loss_words
from llamasweep.report.names import axis_word, load_words, shown, value_word
from llamasweep.report.panels import Panel, Point, Series
from llamasweep.report.rows import Row
from llamasweep.report.stream_words import latency_words
from llamasweep.report.told import Told


def panel_title(panel: Panel, told: Told | None = None) -> str:
    """What one panel shows, in a sentence without a full stop; its numbers are noted in `told`."""
    told = told if told is not None else Told()
    text = _title(panel, told)
    points = [point.row for series in panel.series for point in series.points]
    return text if is_repeated(*points) else f"{text}, measured once"


def _title(panel: Panel, told: Told) -> str:
    titles = {
        "n_depth": _depth_title,
        "n_threads": _threads_title,
        "concurrency": _streams_title,
        "prompt_cache": _cache_title,
        "turn": _turn_title,
    }
    if panel.axis in titles:
        return titles[panel.axis](panel, told)
    verdicts = {_best_words(series, panel, Told()) for series in panel.series}
    word = _verb(panel.kind)
    if len(verdicts) == 1:
        return f"{word} {_best_words(panel.series[0], panel, told)}"
    return f"{word}: which {axis_word(panel.axis)} is fastest depends on {_series_noun(panel)}"


def rates_title(rows: Sequence[Row]) -> str:
    """What the bars of one kind of test show."""
    kind = rows[0].kind
    rows = least_load(rows)
    best = max(rows, key=median)
    verb = {"tg": "writes", "pp": "reads"}.get(kind, "does")
    words = load_words(load(best))
    text = f"{shown(best.subject, 60)} {verb} {figures.number(median(best))} tokens a second"
    text += f" ({words})" if words else ""
    return text + (f", the fastest of {len(rows)}" if len(rows) > 1 else "")


def _verb(kind: str) -> str:
    return {"tg": "Generation", "pp": "Prompt reading"}.get(kind, kind)


def _verbs(kind: str) -> str:
    return {"tg": "write", "pp": "read"}.get(kind, "do")


def _depth_title(panel: Panel, told: Told) -> str:
    ends = [(series.points[0], series.points[-1]) for series in panel.series]
    deepest = max((last for _, last in ends), key=lambda point: float(point.x))
    n_depth = int(float(deepest.x))
    where = f"depth {told.number(figures.count(n_depth), n_depth, 'n_depth', [deepest.row])}"
    verdicts = [_depth_verdict(first, last) for first, last in ends]
    if not {"faster", "slower", "single"} & set(verdicts):
        is_same = set(verdicts) == {"same"}
        visible = "loses nothing" if is_same else "shows no loss beyond the spread"
        return f"{_verb(panel.kind)} {visible} up to {where}"
    known = [pair for pair, found in zip(ends, verdicts, strict=True) if found != "undecided"]
    kept = sorted(known, key=lambda pair: pair[1].median / pair[0].median)
    low, high = (_ratio(last, first, told) for first, last in (kept[0], kept[-1]))
    told.names += [series.label for series in panel.series]
    share = figures.span(low, high)
    return f"{_verb(panel.kind)} keeps {share} of its speed at {where}{loss_words(panel)}"


def _depth_verdict(first: Point, last: Point) -> Verdict | Literal["single"]:
    """How the deepest stands to the shallowest; single: apart, and measured too few times to decide it."""
    found = compare(last.row, first.row)
    is_single = found == "undecided" and not is_repeated(first.row, last.row)
    return "single" if is_single else found


def _streams_title(panel: Panel, told: Told) -> str:
    """What all users get together, and each of them, of the longest series."""
    series = max(panel.series, key=lambda one: len(one.points))
    few, many = series.points[0], series.points[-1]
    ratio, share = many.median / few.median, float(few.x) / float(many.x)
    rows = [many.row, few.row]
    in_all = told.number(figures.times(ratio), ratio, "ratio", rows)
    each = told.number(figures.percent(ratio * share), ratio * share, "share of a stream", rows)
    of_series = f" ({told.name(series.label)})" if len(panel.series) > 1 else ""
    return (
        f"{_streams(many, told)} requests at once {_verbs(panel.kind)} {in_all} the tokens a second of "
        f"{_streams(few, told)} in all, {each} for each{latency_words(many, few, panel.kind, told)}"
        f"{_overlap(many, few)}{of_series}"
    )


def _overlap(a: Point, b: Point) -> str:
    """What makes a ratio uncertain: repetitions of one as fast as some of the other."""
    is_open = compare(a.row, b.row) == "undecided" and is_repeated(a.row, b.row)
    return ", with overlapping ranges" if is_open else ""


def _streams(point: Point, told: Told) -> str:
    return told.number(figures.count(int(float(point.x))), float(point.x), "setting", [point.row])


def _cache_title(panel: Panel, told: Told) -> str:
    """What a prompt that was read before saves, of the series with the most."""
    pairs = [
        (warm, cold)
        for series in panel.series
        for warm in series.points
        for cold in series.points
        if (warm.x, cold.x) == ("warm", "cold")
    ]
    if not pairs:
        return f"{_verb(panel.kind)}, by prompt cache"
    warm, cold = max(pairs, key=lambda pair: pair[0].median / pair[1].median)
    ratio = warm.median / cold.median
    by = told.number(figures.times(ratio), ratio, "ratio", [warm.row, cold.row])
    return f"{_verb(panel.kind)} goes {by} as fast with a prompt that the server has read before{_overlap(warm, cold)}"


def _turn_title(panel: Panel, told: Told) -> str:
    """What becomes of the rate as a conversation grows, of the series with the most turns that kept most of it."""
    most = max(len(series.points) for series in panel.series)
    long = [series for series in panel.series if len(series.points) == most]
    series = max(long, key=lambda one: one.points[-1].median / one.points[0].median)
    first, last = series.points[0], series.points[-1]
    share, turn = _ratio(last, first, told), int(float(last.x))
    where = told.number(figures.count(turn), turn, "setting", [last.row])
    of_series = f" ({told.name(series.label)})" if len(panel.series) > 1 else ""
    return (
        f"{_verb(panel.kind)} at turn {where} of a conversation goes at {share} of the speed of turn "
        f"{_x_word(first, told)}{_overlap(last, first)}{of_series}"
    )


def _ratio(a: Point, b: Point, told: Told) -> str:
    ratio = a.median / b.median
    return told.number(figures.percent(ratio), ratio, "ratio", [a.row, b.row])


def _threads_title(panel: Panel, told: Told) -> str:
    word = _verb(panel.kind)
    points = [point for series in panel.series for point in series.points]
    most = max(points, key=lambda point: float(point.x))
    firm = [_enough(series, ("same",)) for series in panel.series]
    loose = [_enough(series, ("same", "undecided")) for series in panel.series]
    least, needed = (pick(loose, key=lambda point: float(point.x)) for pick in (min, max))
    if least.x != needed.x:
        span = f"{_count(least, told)} to {_count(needed, told)}"
        return f"{word} needs {span} threads, depending on {_series_noun(panel)}"
    if needed.x == most.x:
        return f"{word} still gains at {_count(most, told)} threads, the most that was tried"
    n_needed = f"{_count(needed, told)} {'thread' if needed.x == 1 else 'threads'}"
    ends = [(series.points[-1], _best(series)) for series in panel.series]
    if all(compare(last.row, best.row) == "slower" for last, best in ends):
        last, best = max(ends, key=lambda pair: pair[0].median / pair[1].median)
        return (
            f"{word} is fastest at {n_needed}; {_count(most, told)} keep "
            f"{_ratio(last, best, told)} of that"
        )
    beyond = "" if {p.x for p in firm} == {p.x for p in loose} else " beyond the spread"
    return f"Above {n_needed} {word.lower()} gains nothing{beyond}"


def _count(point: Point, told: Told) -> str:
    return told.number(f"{point.x:g}", float(point.x), "n_threads", [point.row])


def _best(series: Series) -> Point:
    return max(series.points, key=lambda point: point.median)


def _enough(series: Series, verdicts: tuple[Verdict, ...]) -> Point:
    """Fewest threads that the fastest point is not clearly faster than; single repetitions show nothing clearly."""
    best = _best(series)
    if best.row.rates is None or best.row.rates.n_kept < 2:
        verdicts = ("same",)
    near = [point for point in series.points if compare(best.row, point.row) in verdicts]
    return min(near, key=lambda point: float(point.x))


def _best_words(series: Series, panel: Panel, told: Told) -> str:
    ordered = sorted(series.points, key=lambda point: point.median)
    worst, best = ordered[0], ordered[-1]
    if best.median <= worst.median * (1 + SAME_WITHIN):
        near = told.number("3 %", SAME_WITHIN, "fixed", [best.row, worst.row])
        return f"does not depend on {axis_word(panel.axis)} (within {near})"
    if compare(best.row, worst.row) == "undecided" and is_repeated(best.row, worst.row):
        return f"shows no difference in {axis_word(panel.axis)} beyond the spread"
    return f"is fastest at {axis_word(panel.axis)} {_x_word(best, told)}"


def _x_word(point: Point, told: Told) -> str:
    if isinstance(point.x, float):
        return told.number(f"{point.x:g}", point.x, "setting", [point.row])
    return told.name(value_word(point.x))


def _series_noun(panel: Panel) -> str:
    return "the quantisation" if all("," not in s.label for s in panel.series) else "the setting"
