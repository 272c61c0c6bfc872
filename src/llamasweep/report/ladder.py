"""The quantisation ladder: speed against the bytes that a token moves, under the line bandwidth ÷ bytes. Rows in, plain data out.

Quality stands beside it where the sweep file tells it; nothing here knows whether more of a measure is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import median
from llamasweep.report.headline import BROKEN_ABOVE
from llamasweep.report.names import shown
from llamasweep.report.rows import Row
from llamasweep.report.strips import per_model

MAX_LADDERS = 6
STEADY_WITHIN = 0.05
"""Shares of the line that differ by less, 5 points, count as the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """One quantisation in its fastest setting. share: of bandwidth ÷ bytes, None where the bandwidth is not known."""

    row: Row
    label: str
    bytes_per_token: float
    tps: float
    share: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ladder:
    """The quantisations of one model, fewest bytes first. bandwidth_bytes_per_s: None where it is not known or differs."""

    family: str
    test: str
    rungs: tuple[Rung, ...]
    bandwidth_bytes_per_s: float | None
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Quality:
    """Quality against speed of the same quantisations. points: (rung, value). sources: as the sweep file tells them."""

    ladder: Ladder
    metric: str
    points: tuple[tuple[Rung, float], ...]
    sources: tuple[str, ...]


def ladders(rows: Sequence[Row]) -> tuple[Ladder, ...]:
    """One per model with several quantisations that generated; models by their fastest."""
    by_family: dict[str, dict[str, Row]] = {}
    for tg, _ in per_model([row for row in rows if row.rates is not None]):
        if tg is not None and tg.rates is not None and tg.attempt.bytes_per_token:
            by_family.setdefault(tg.family, {}).setdefault(tg.quant, tg)
    found = [
        _ladder(family, list(quants.values()))
        for family, quants in by_family.items()
        if len(quants) > 1
    ]
    return tuple(found[:MAX_LADDERS])


def title(view: Ladder) -> str:
    """Whether speed follows the bytes, without a full stop."""
    fewest, most = view.rungs[0], view.rungs[-1]
    known = [(rung.share, rung) for rung in view.rungs if rung.share is not None]
    if len(known) < len(view.rungs):
        return (
            f"{fewest.label} moves {figures.percent(fewest.bytes_per_token / most.bytes_per_token)} of the bytes of "
            f"{most.label} and writes {figures.times(fewest.tps / most.tps)} as fast"
        )
    above = [rung.label for share, rung in known if share > BROKEN_ABOVE]
    if above:
        verb = "lies" if len(above) == 1 else "lie"
        return f"{' and '.join(above)} {verb} above bandwidth ÷ bytes, so one of these is wrong"
    least, best = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    if best[0] - least[0] <= STEADY_WITHIN:
        share = figures.span(figures.percent(least[0]), figures.percent(best[0]))
        return f"Speed follows the bytes: each quantisation reaches {share} of bandwidth ÷ bytes"
    return (
        f"{best[1].label} gets {figures.percent(best[0])} of what the memory gives, "
        f"{least[1].label} {figures.percent(least[0])}"
    )


def quality(view: Ladder) -> Quality | None:
    """Of the quantisations for which the sweep file tells the same measure; None below two."""
    told = [
        (rung, rung.row.attempt.quality_metric, rung.row.attempt.quality_value)
        for rung in view.rungs
    ]
    metric = next((metric for _, metric, value in told if metric and value is not None), None)
    points = [(rung, value) for rung, of, value in told if of == metric and value is not None]
    if metric is None or len(points) < 2:
        return None
    sources = dict.fromkeys(
        shown(rung.row.attempt.quality_source or "source not told", 120) for rung, _ in points
    )
    return Quality(
        ladder=view, metric=shown(metric, 40), points=tuple(points), sources=tuple(sources)
    )


def quality_title(view: Quality) -> str:
    """What the fastest gives against the slowest, as both are told."""
    ordered = sorted(view.points, key=lambda point: point[0].tps)
    (slow, slow_value), (fast, fast_value) = ordered[0], ordered[-1]
    return (
        f"{fast.label} is {figures.times(fast.tps / slow.tps)} as fast as {slow.label}, with {view.metric} "
        f"{fast_value:g} against {slow_value:g}"
    )


def rung_words(rung: Rung) -> str:
    """The sentence of a rung's mark."""
    text = f"{rung.label}: {figures.rate(rung.tps)}, {figures.number(rung.bytes_per_token / 1e9)} GB a token"
    return text + (
        f", {figures.percent(rung.share)} of bandwidth ÷ bytes" if rung.share is not None else ""
    )


def _ladder(family: str, rows: Sequence[Row]) -> Ladder:
    bandwidths = {row.attempt.ceiling_bandwidth_bytes_per_s for row in rows}
    bandwidth = bandwidths.pop() if len(bandwidths) == 1 else None
    rungs = [
        Rung(
            row=row,
            label=row.quant or "quantisation not known",
            bytes_per_token=n_bytes,
            tps=median(row),
            share=median(row) * n_bytes / bandwidth if bandwidth else None,
        )
        for row in rows
        if (n_bytes := row.attempt.bytes_per_token)
    ]
    return Ladder(
        family=family,
        test=rows[0].test,
        rungs=tuple(sorted(rungs, key=lambda rung: rung.bytes_per_token)),
        bandwidth_bytes_per_s=bandwidth,
        source=shown(rows[0].attempt.ceiling_bandwidth_source or "source not recorded", 120),
    )
