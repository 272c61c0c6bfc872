"""One measured speed on a track that ends at what the hardware allows. Rows in, positions from 0 to 1 out.

Where no row of a kind has an exact ceiling its tracks run to the fastest of them, and the scale says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report.rows import Row

BAND_LOW = 0.70
BAND_HIGH = 0.85
"""The share of the pencil ceiling that people quote for a healthy machine at small depth."""

MAX_SCALE = 3.0
MAX_PENCIL = 1.25
"""A pencil ceiling further beyond the exact one is not drawn: it would only make all tracks shorter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """One measured speed on its scale.

    All of `measured`, `low`, `high`, `ceiling`, `pencil`, `band_low`, `band_high` are positions from 0 (left) to 1 (right
    end of the drawing); None where not drawn. ceiling: where the track ends, the exact ceiling. is_beyond: the
    measurement lies past the right end of the drawing.
    """

    row: Row
    measured: float
    low: float | None
    high: float | None
    ceiling: float | None
    pencil: float | None
    band_low: float | None
    band_high: float | None
    is_beyond: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """A track that could not be drawn, and why; the row may be measured all the same."""

    row: Row | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What all tracks of one kind run to.

    end_fraction: right end as a share of each row's exact ceiling; None where no row has one, and then end_tps is the
    end in t/s. reason: why rows have no exact ceiling, None where all have one. has_pencil: some pencil ceiling is drawn.
    is_reference: some row's ceiling rests on a peak that an engine may exceed, and is no bound. has_bound: some row's is one.
    """

    end_fraction: float | None
    end_tps: float | None
    reason: str | None
    has_pencil: bool
    is_reference: bool = False
    has_bound: bool = True


def scale_of(rows: Sequence[Row | None]) -> Scale | None:
    """The scale of one kind; None where none of the rows was measured."""
    measured = [row for row in rows if row is not None and row.rates is not None]
    if not measured:
        return None
    reason = next((row.ceiling.reason for row in measured if not row.ceiling.value), None)
    with_ceiling = [row for row in measured if row.ceiling.value]
    pencils = [row.pencil_ceiling.value for row in measured]
    if with_ceiling:
        end = max([1.0, *(share for row in with_ceiling for share in _shares(row))])
        return Scale(
            end_fraction=end if end == 1.0 else min(MAX_SCALE, end * 1.03),
            end_tps=None,
            reason=reason,
            has_pencil=any(pencils),
            is_reference=any(row.attempt.ceiling_is_reference for row in with_ceiling),
            has_bound=not all(row.attempt.ceiling_is_reference for row in with_ceiling),
        )
    top = max(_top(row) for row in measured)
    near = [pencil for pencil in pencils if pencil is not None and pencil <= top * 2]
    return Scale(end_fraction=None, end_tps=max([top, *near]), reason=reason, has_pencil=bool(near))


def track_of(row: Row | None, scale: Scale | None) -> Track | Missing:
    """Where everything lies; or the reason why there is nothing to draw."""
    if row is None:
        return Missing(row=None, reason="not in the sweep")
    if row.rates is None or scale is None:
        return Missing(row=row, reason=row.attempt.error_message or row.status.replace("_", " "))
    if scale.end_fraction is None:
        return _track(row, scale.end_tps or _top(row))
    if not row.ceiling.value:
        return Missing(row=row, reason=f"no exact ceiling: {row.ceiling.reason}")
    return _track(row, scale.end_fraction * row.ceiling.value)


def _shares(row: Row) -> list[float]:
    """What has to fit, as shares of the row's ceiling: its fastest repetition and its pencil ceiling."""
    ceiling, pencil = row.ceiling.value, row.pencil_ceiling.value
    if not ceiling:
        return []
    near = [] if pencil is None or pencil / ceiling > MAX_PENCIL else [pencil / ceiling]
    return [_top(row) / ceiling, *near]


def _top(row: Row) -> float:
    assert row.rates is not None  # noqa: S101  (the callers filter)
    median, high = row.rates.median, row.rates.high
    return median if high is None else max(median, high)


_Ends = tuple[float, float] | tuple[None, None]


def _track(row: Row, end_tps: float) -> Track:
    rates = row.rates
    assert rates is not None  # noqa: S101  (the callers filter)
    spread: _Ends = (None, None)
    if rates.n_kept > 1 and rates.low is not None and rates.high is not None:
        spread = (min(1.0, rates.low / end_tps), min(1.0, rates.high / end_tps))
    pencil, band = _pencil_on_track(row.pencil_ceiling.value, end_tps)
    return Track(
        row=row,
        measured=min(1.0, rates.median / end_tps),
        low=spread[0],
        high=spread[1],
        ceiling=row.ceiling.value / end_tps if row.ceiling.value else None,
        pencil=pencil,
        band_low=band[0],
        band_high=band[1],
        is_beyond=rates.median > end_tps * 1.0001,
    )


def _pencil_on_track(pencil_tps: float | None, end_tps: float) -> tuple[float | None, _Ends]:
    """The pencil ceiling and its usual band as positions; None where not known or past the end."""
    if pencil_tps is None or pencil_tps <= 0:
        return None, (None, None)
    pencil = pencil_tps / end_tps
    is_near = pencil * BAND_LOW < 1
    band: _Ends = (pencil * BAND_LOW, min(1.0, pencil * BAND_HIGH)) if is_near else (None, None)
    return (pencil if pencil <= 1 else None), band
