"""Several streams against one, in words: the latency beside a panel's throughput, and each of its points. Rows in, words out."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.panels import Panel, Point
from llamasweep.report.rows import Row
from llamasweep.report.told import Told
from llamasweep.results.against_one import MEASURE_OF, AgainstOne, against_one
from llamasweep.results.columns import to_row


def latency_words(many: Point, few: Point, kind: str, told: Told) -> str:
    """`, at 3.31 times the latency (TPOT)`; '' where no request of both was timed."""
    measure = MEASURE_OF[kind]
    longer, base = (_seconds(point.row, f"{measure}_median_s") for point in (many, few))
    if longer is None or base is None:
        return ""
    ratio = longer / base
    said = told.number(figures.times(ratio), ratio, "latency ratio", [many.row, few.row])
    return f", at {said} the latency ({measure.upper()})"


def points_words(panel: Panel) -> str:
    """Each number of streams of the longest series against one; '' where there is no row of one, or a single other."""
    series = max(panel.series, key=lambda one: len(one.points))
    first, *others = series.points
    if float(first.x) != 1 or len(others) < 2:
        return ""
    found = stream_ratios([point.row for point in series.points])[1:]
    words = [
        f"{figures.count(int(float(point.x)))} at once {_by(one.throughput_ratio)} the throughput"
        + ("" if one.latency_ratio is None else f" at {_by(one.latency_ratio)} the latency")
        for point, one in zip(others, found, strict=True)
        if one.throughput_ratio is not None
    ]
    of_series = f" ({series.label})" if len(panel.series) > 1 else ""
    return f" Against 1{of_series}: {'; '.join(words)}." if words else ""


def expected_words(panel: Panel) -> str:
    """What the most streams of the longest series are expected to reach, and at most; '' where nothing is known."""
    last = max(panel.series, key=lambda one: len(one.points)).points[-1]
    estimate_tps, ceiling_tps = last.row.attempt.estimate_tps, last.row.ceiling.value
    if estimate_tps is None or ceiling_tps is None or float(last.x) < 2:
        return ""
    bound = "by the reference peak" if last.row.attempt.ceiling_is_reference else "at most"
    return (
        f" {figures.count(int(float(last.x)))} at once: {figures.rate(estimate_tps)} expected (memory time and compute time "
        f"added), {figures.rate(ceiling_tps)} {bound} (the longer of both)."
    )


def _by(ratio: float) -> str:
    return f"{figures.number(ratio)}{figures.THIN}\N{MULTIPLICATION SIGN}"


def stream_ratios(rows: Sequence[Row]) -> list[AgainstOne]:
    """Of each row against the row of one stream among them, its rounds pooled."""
    return against_one(
        to_row(row.attempt)
        | {"round_index": 0, "median_tps": None if row.rates is None else row.rates.median}
        for row in rows
    )


def _seconds(row: Row, column: str) -> float | None:
    value: float | None = getattr(row.attempt.requests, column, None)
    return value if value is not None and value > 0 else None
