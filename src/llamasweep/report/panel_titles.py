"""What each small chart shows, as a sentence without a full stop. No sentence praises."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.comparison import SAME_WITHIN, Verdict, compare, median
from llamasweep.report.depth_loss import loss_words
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.panels import Panel, Point, Series
from llamasweep.report.rows import Row
from llamasweep.report.told import Told


def panel_title(panel: Panel, told: Told | None = None) -> str:
    """What one panel shows, in a sentence without a full stop; its numbers are noted in `told`."""
    told = told if told is not None else Told()
    if panel.axis == "n_depth":
        return _depth_title(panel, told)
    if panel.axis == "n_threads":
        return _threads_title(panel, told)
    verdicts = {_best_words(series, panel, Told()) for series in panel.series}
    word = _verb(panel.kind)
    if len(verdicts) == 1:
        return f"{word} {_best_words(panel.series[0], panel, told)}"
    return f"{word}: which {axis_word(panel.axis)} is fastest depends on {_series_noun(panel)}"


def rates_title(rows: Sequence[Row]) -> str:
    """What the bars of one kind of test show."""
    kind = rows[0].kind
    best = max(rows, key=median)
    verb = {"tg": "writes", "pp": "reads"}.get(kind, "does")
    text = f"{shown(best.subject, 60)} {verb} {figures.number(median(best))} tokens a second"
    return text + (f", the fastest of {len(rows)}" if len(rows) > 1 else "")


def _verb(kind: str) -> str:
    return {"tg": "Generation", "pp": "Prompt reading"}.get(kind, kind)


def _depth_title(panel: Panel, told: Told) -> str:
    ends = [(series.points[0], series.points[-1]) for series in panel.series]
    deepest = max((last for _, last in ends), key=lambda point: float(point.x))
    n_depth = int(float(deepest.x))
    where = f"depth {told.number(figures.count(n_depth), n_depth, 'n_depth', [deepest.row])}"
    clear = [(a, b) for a, b in ends if compare(b.row, a.row) in ("slower", "faster")]
    same = [(a, b) for a, b in ends if compare(b.row, a.row) == "same"]
    if not clear:
        visible = "loses nothing" if len(same) == len(ends) else "loses nothing beyond the spread"
        return f"{_verb(panel.kind)} {visible} up to {where}"
    kept = sorted(clear + same, key=lambda pair: pair[1].median / pair[0].median)
    low, high = (_ratio(last, first, told) for first, last in (kept[0], kept[-1]))
    told.names += [series.label for series in panel.series]
    share = figures.span(low, high)
    return f"{_verb(panel.kind)} keeps {share} of its speed at {where}{loss_words(panel)}"


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
    if compare(best.row, worst.row) == "undecided":
        return f"shows no difference in {axis_word(panel.axis)} beyond the spread"
    return f"is fastest at {axis_word(panel.axis)} {_x_word(best, told)}"


def _x_word(point: Point, told: Told) -> str:
    if isinstance(point.x, float):
        return told.number(f"{point.x:g}", point.x, "setting", [point.row])
    return told.name(value_word(point.x))


def _series_noun(panel: Panel) -> str:
    return "the quantisation" if all("," not in s.label for s in panel.series) else "the setting"
