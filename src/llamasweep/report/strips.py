"""The hero: one strip per model and quantisation, measured speed against the pencil ceiling. Rows in, plain data out.

Which rows become strips, in what order and on what scale; nothing of how they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llamasweep.report.flags import flag_word
from llamasweep.report.names import axis_word, value_word
from llamasweep.report.rows import Row, axis_value, varying
from llamasweep.results.records import FAILED_STATUSES

BAND_LOW = 0.70
BAND_HIGH = 0.85
"""The share of the pencil ceiling that people quote for a healthy machine at small depth."""

MAX_STRIPS = 24
MAX_FULL_STRIPS = 12
MAX_SCALE = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """One measured speed on its scale.

    All of `measured`, `low`, `high`, `ceiling`, `band_low`, `band_high` are positions from 0 (left) to 1 (right end
    of the track); None where not drawn. is_beyond: the measurement lies past the right end.
    """

    row: Row
    measured: float
    low: float | None
    high: float | None
    ceiling: float | None
    band_low: float | None
    band_high: float | None
    is_beyond: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """A track that could not be drawn, and why."""

    row: Row | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """One row of the hero. setting: what tells it from its neighbours, in words, '' if nothing. doubts: its flags."""

    subject: str
    setting: str
    doubts: tuple[str, ...]
    tg: Track | Missing
    pp: Track | Missing


@dataclass(frozen=True, kw_only=True, slots=True)
class Hero:
    """All strips. n_left_out: strips beyond the bound. choice: how rows were chosen, None if each stands for itself.

    tg_end_fraction: right end of the tg tracks as a share of each row's ceiling; None where no row has one, and then
    tg_end_tps is the end in t/s and why_no_ceiling the reason. pp_end_tps: right end of the pp tracks. None: no such track.
    """

    strips: tuple[Strip, ...]
    n_left_out: int
    choice: str | None
    tg_end_fraction: float | None
    tg_end_tps: float | None
    pp_end_tps: float | None
    why_no_ceiling: str | None


def hero(rows: Sequence[Row]) -> Hero | None:
    """The strips, or None where nothing of pp and tg was measured."""
    timed = [row for row in rows if row.rates is not None and row.kind in ("pp", "tg")]
    if not timed:
        return None
    axes, chosen = _choose(rows, timed)
    tg_end, tg_tps = _tg_end(chosen)
    pp_end = max((_top(pp) for _, pp in chosen if pp is not None and pp.rates), default=0) or None
    ordered = sorted(chosen, key=_speed_order(chosen))
    shortened = tuple(axis for axis in varying(timed) if axis not in axes)
    names = (axes, shortened)
    strips = tuple(_strip(pair, names, tg_end, tg_tps, pp_end) for pair in ordered[:MAX_STRIPS])
    return Hero(
        strips=strips,
        n_left_out=max(0, len(ordered) - MAX_STRIPS),
        choice=(
            "Each strip is the fastest of its settings of "
            + ", ".join(axis_word(axis) for axis in shortened)
            if shortened
            else None
        ),
        tg_end_fraction=tg_end,
        tg_end_tps=tg_tps if tg_end is None else None,
        pp_end_tps=pp_end,
        why_no_ceiling=next(
            (tg.pencil_ceiling.reason for tg, _ in ordered if tg is not None and tg.rates), None
        ),
    )


def per_model(rows: Sequence[Row]) -> list[tuple[Row | None, Row | None]]:
    """(tg, pp) of each model, quantisation, build and run: its fastest setting at the least depth, fastest first."""
    identity = tuple(axis for axis in varying(rows) if axis in ("run_id", "build"))
    shallow = min((row.attempt.n_depth for row in rows), default=0)
    pairs = _pairs([row for row in rows if row.attempt.n_depth == shallow], identity)
    return sorted(pairs, key=_speed_order(pairs))


def representative(rows: Sequence[Row], kind: str) -> list[Row]:
    """Rows of the kind's longest test: what the hero and the headline speak of."""
    of_kind = [row for row in rows if row.kind == kind]
    longest = max((row.attempt.n_prompt + row.attempt.n_gen for row in of_kind), default=0)
    return [row for row in of_kind if row.attempt.n_prompt + row.attempt.n_gen == longest]


Pair = tuple[Row | None, Row | None]


def _choose(rows: Sequence[Row], timed: Sequence[Row]) -> tuple[tuple[str, ...], list[Pair]]:
    """The finest division that stays readable: every setting, else depth, else model and quantisation alone."""
    axes = varying(timed)
    identity = tuple(a for a in axes if a in ("run_id", "build"))
    with_depth = (*identity, *(a for a in axes if a == "n_depth"))
    divisions = ((axes, MAX_FULL_STRIPS), (with_depth, MAX_STRIPS), (identity, MAX_STRIPS))
    pairs: list[Pair] = []
    for division, bound in divisions:
        candidates = rows
        if "n_depth" in axes and "n_depth" not in division:
            shallow = min(row.attempt.n_depth for row in rows)
            candidates = [row for row in rows if row.attempt.n_depth == shallow]
        pairs = _pairs(candidates, division)
        if len(pairs) <= bound:
            return division, pairs
    return identity, pairs


def _pairs(rows: Sequence[Row], division: tuple[str, ...]) -> list[Pair]:
    found: dict[tuple[object, ...], dict[str, Row]] = {}
    for kind in ("tg", "pp"):
        for row in representative(rows, kind):
            key = (row.family, row.quant, *(axis_value(row, axis) for axis in division))
            best = found.setdefault(key, {})
            before = best.get(kind)
            if before is None or _worth(row) > _worth(before):
                best[kind] = row
    pairs = [(best.get("tg"), best.get("pp")) for best in found.values()]
    return [pair for pair in pairs if any(row is not None and row.rates for row in pair)]


def _worth(row: Row) -> tuple[float, bool]:
    """What to show of several: the fastest, else a failure, else what was not tried."""
    return _median(row), row.status in FAILED_STATUSES


def _median(row: Row | None) -> float:
    return row.rates.median if row is not None and row.rates is not None else 0.0


def _top(row: Row) -> float:
    assert row.rates is not None  # noqa: S101  (the callers filter)
    return max(row.rates.median, row.rates.high or 0.0)


def _tg_end(pairs: Sequence[Pair]) -> tuple[float | None, float | None]:
    """The right end of all tg tracks: a share of each row's ceiling, or t/s where no row has a ceiling."""
    measured = [tg for tg, _ in pairs if tg is not None and tg.rates is not None]
    shares = [_top(row) / row.pencil_ceiling.value for row in measured if row.pencil_ceiling.value]
    if shares:
        return min(MAX_SCALE, max(1.05, max(shares) * 1.05)), None
    return None, max((_top(row) for row in measured), default=None)


def _speed_order(pairs: Sequence[Pair]) -> Callable[[Pair], tuple[object, ...]]:
    """Models in the order of their fastest strip, strips of a model by speed."""
    fastest: dict[str, float] = {}
    for tg, pp in pairs:
        for row in (tg, pp):
            if row is not None:
                fastest[row.family] = max(fastest.get(row.family, 0.0), _median(tg))
    return lambda pair: (
        -fastest[_subject_row(pair).family],
        _subject_row(pair).family,
        -_median(pair[0]),
        -_median(pair[1]),
    )


def _subject_row(pair: Pair) -> Row:
    row = pair[0] or pair[1]
    assert row is not None  # noqa: S101  (a pair has at least one)
    return row


def _strip(
    pair: Pair,
    axes: tuple[tuple[str, ...], tuple[str, ...]],
    tg_end: float | None,
    tg_tps: float | None,
    pp_end: float | None,
) -> Strip:
    row = _subject_row(pair)
    words = [setting_word(axis, axis_value(row, axis)) for axis in axes[0]]
    words += [_chosen_word(axis, pair) for axis in axes[1]]
    return Strip(
        subject=row.subject,
        setting=", ".join(words),
        doubts=tuple(
            dict.fromkeys(flag_word(f) for one in pair if one is not None for f in one.flags)
        ),
        tg=_tg_track(pair[0], tg_end, tg_tps),
        pp=_pp_track(pair[1], pp_end),
    )


def _chosen_word(axis: str, pair: Pair) -> str:
    """The setting that was fastest, said of each track where they differ."""
    kinds = [(row.kind, axis_value(row, axis)) for row in pair if row is not None and row.rates]
    if len({value for _, value in kinds}) == 1:
        return setting_word(axis, kinds[0][1])
    return f"{axis_word(axis)} " + ", ".join(
        f"{value_word(value)} ({kind})" for kind, value in kinds
    )


def setting_word(axis: str, value: object) -> str:
    """`depth 4096`, or `threads left to the engine`."""
    if axis in ("build", "run_id"):
        return value_word(value)
    if value is None:
        return f"{axis_word(axis)} left to the engine"
    return f"{axis_word(axis)} {value_word(value)}"


def _tg_track(
    row: Row | None, end_fraction: float | None, end_tps: float | None
) -> Track | Missing:
    if row is None or row.rates is None:
        return _missing(row)
    ceiling = row.pencil_ceiling.value
    if end_fraction is not None and not ceiling:
        return Missing(
            row=row, reason=f"no ceiling to draw it against: {row.pencil_ceiling.reason}"
        )
    end = end_fraction * ceiling if end_fraction is not None and ceiling else (end_tps or _top(row))
    return _track(row, end, ceiling)


def _pp_track(row: Row | None, end_tps: float | None) -> Track | Missing:
    if row is None or row.rates is None:
        return _missing(row)
    return _track(row, end_tps or _top(row), None)


def _track(row: Row, end_tps: float, ceiling: float | None) -> Track:
    rates = row.rates
    assert rates is not None  # noqa: S101  (the callers filter)
    has_spread = rates.n_kept > 1 and rates.low is not None and rates.high is not None
    return Track(
        row=row,
        measured=min(1.0, rates.median / end_tps),
        low=min(1.0, (rates.low or 0.0) / end_tps) if has_spread else None,
        high=min(1.0, (rates.high or 0.0) / end_tps) if has_spread else None,
        ceiling=ceiling / end_tps if ceiling else None,
        band_low=ceiling * BAND_LOW / end_tps if ceiling else None,
        band_high=ceiling * BAND_HIGH / end_tps if ceiling else None,
        is_beyond=rates.median > end_tps * 1.0001,
    )


def _missing(row: Row | None) -> Missing:
    if row is None:
        return Missing(row=None, reason="not in the sweep")
    return Missing(row=row, reason=row.attempt.error_message or row.status.replace("_", " "))
