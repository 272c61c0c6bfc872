"""What each small chart shows, as a sentence without a full stop. No sentence praises."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.comparison import SAME_WITHIN, Verdict, compare, median
from llamasweep.report.depth_loss import loss_words
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.panels import Panel, Point, Series
from llamasweep.report.rows import Row


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


def _verb(kind: str) -> str:
    return {"tg": "Generation", "pp": "Prompt reading"}.get(kind, kind)


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
    return f"{_verb(panel.kind)} keeps {share} of its speed at {where}{loss_words(panel)}"


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
