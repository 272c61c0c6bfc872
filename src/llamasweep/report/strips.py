"""The hero: one strip per model and quantisation, measured speed against its ceiling. Rows in, plain data out.

Which rows become strips and in what order; `tracks` places them, the template draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llamasweep.report.comparison import least_load, load
from llamasweep.report.names import axis_word, value_word
from llamasweep.report.row_marks import Mark
from llamasweep.report.rows import Row, axis_value, varying
from llamasweep.report.tracks import Missing, Scale, Track, scale_of, track_of
from llamasweep.results.records import FAILED_STATUSES
from llamasweep.results.request_load import DEFAULTS as LOAD_DEFAULTS

MAX_STRIPS = 24
MAX_FULL_STRIPS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """One row of the hero. setting: what tells it from its neighbours, in words, '' if nothing. marks: of its rows.

    anchors: of the rows that it shows.
    """

    subject: str
    setting: str
    marks: tuple[Mark, ...]
    anchors: tuple[str, ...]
    tg: Track | Missing
    pp: Track | Missing


@dataclass(frozen=True, kw_only=True, slots=True)
class Hero:
    """All strips. n_left_out: strips beyond the bound. choice: how rows were chosen, None if each stands for itself.

    tg_scale, pp_scale: what the tracks of a kind run to; None where no row of the kind was measured.
    """

    strips: tuple[Strip, ...]
    n_left_out: int
    choice: str | None
    tg_scale: Scale | None
    pp_scale: Scale | None


def hero(rows: Sequence[Row]) -> Hero | None:
    """The strips, or None where nothing of pp and tg was measured."""
    timed = [row for row in rows if row.rates is not None and row.kind in ("pp", "tg")]
    if not timed:
        return None
    axes, chosen = _choose(rows, timed)
    scales = (scale_of([tg for tg, _ in chosen]), scale_of([pp for _, pp in chosen]))
    ordered = sorted(chosen, key=_speed_order(chosen))
    shortened = tuple(axis for axis in varying(timed) if axis not in axes)
    return Hero(
        strips=tuple(_strip(pair, axes, shortened, scales) for pair in ordered[:MAX_STRIPS]),
        n_left_out=max(0, len(ordered) - MAX_STRIPS),
        choice=_choice_words(shortened),
        tg_scale=scales[0],
        pp_scale=scales[1],
    )


def _choice_words(shortened: Sequence[str]) -> str | None:
    """How the row of a strip was chosen among settings and loads."""
    settings = [axis_word(axis) for axis in shortened if axis not in LOAD_DEFAULTS]
    fastest = f"the fastest of its settings of {', '.join(settings)}" if settings else ""
    if len(settings) == len(shortened):
        return f"Each strip is {fastest}" if fastest else None
    return f"Each strip is of the least load, one new request where that was asked{fastest and ', and ' + fastest}"


def per_model(rows: Sequence[Row]) -> list[tuple[Row | None, Row | None]]:
    """(tg, pp) of each model, quantisation, build and run: its fastest setting at the least depth and load, fastest first."""
    identity = tuple(axis for axis in varying(rows) if axis in ("run_id", "build"))
    shallow = min((row.attempt.n_depth for row in rows), default=0)
    pairs = _pairs([row for row in rows if row.attempt.n_depth == shallow], identity)
    return sorted(pairs, key=_speed_order(pairs))


def representative(rows: Sequence[Row], kind: str) -> list[Row]:
    """Rows of the kind's longest test, of every load."""
    of_kind = [row for row in rows if row.kind == kind]
    longest = max((row.attempt.n_prompt + row.attempt.n_gen for row in of_kind), default=0)
    return [row for row in of_kind if row.attempt.n_prompt + row.attempt.n_gen == longest]


def of_least_load(rows: Sequence[Row], kind: str) -> list[Row]:
    """Rows of the kind's least load and of the longest test in it: what sentences about one person's request speak of."""
    return representative(least_load([row for row in rows if row.kind == kind]), kind)


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
            if before is None or _is_shown_before(row, before):
                best[kind] = row
    pairs = [(best.get("tg"), best.get("pp")) for best in found.values()]
    return [pair for pair in pairs if any(row is not None and row.rates for row in pair)]


def _is_shown_before(row: Row, other: Row) -> bool:
    """Whether it stands for both: the one of less load, of equal ones the one of more worth."""
    if load(row) != load(other):
        return load(row) < load(other)
    return _worth(row) > _worth(other)


def _worth(row: Row) -> tuple[float, bool]:
    """What to show of several: the fastest, else a failure, else what was not tried."""
    return _median(row), row.status in FAILED_STATUSES


def _median(row: Row | None) -> float:
    return row.rates.median if row is not None and row.rates is not None else 0.0


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
    axes: tuple[str, ...],
    shortened: tuple[str, ...],
    scales: tuple[Scale | None, Scale | None],
) -> Strip:
    row = _subject_row(pair)
    words = [setting_word(axis, axis_value(row, axis)) for axis in axes]
    words += [_chosen_word(axis, pair) for axis in shortened if _is_set(axis, pair)]
    return Strip(
        subject=row.subject,
        setting=", ".join(words),
        marks=tuple(dict.fromkeys(mark for one in pair if one is not None for mark in one.marks)),
        anchors=tuple(one.anchor for one in pair if one is not None),
        tg=track_of(pair[0], scales[0]),
        pp=track_of(pair[1], scales[1]),
    )


def _is_set(axis: str, pair: Pair) -> bool:
    """Whether the sweep chose a value for it; what is left to the engine in both rows goes without saying."""
    return any(row is not None and axis_value(row, axis) is not None for row in pair)


def _chosen_word(axis: str, pair: Pair) -> str:
    """The setting that was fastest, said of each track where they differ."""
    kinds = [(row.kind, axis_value(row, axis)) for row in pair if row is not None and row.rates]
    if len({value for _, value in kinds}) == 1:
        return setting_word(axis, kinds[0][1])
    return f"{axis_word(axis)} " + ", ".join(
        f"{'left to the engine' if value is None else value_word(value)} ({kind})"
        for kind, value in kinds
    )


def setting_word(axis: str, value: object) -> str:
    """`depth 4096`, or `threads left to the engine`."""
    if axis in ("build", "run_id"):
        return value_word(value)
    if value is None and axis == "turn":
        return "no conversation"
    if value is None:
        value = LOAD_DEFAULTS.get(axis)
    if value is None:
        return f"{axis_word(axis)} left to the engine"
    return f"{axis_word(axis)} {value_word(value)}"
