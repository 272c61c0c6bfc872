"""What varied: for each axis with several values, the speeds along it as series. Rows in, plain data out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report.names import value_word
from llamasweep.report.rows import Row, axis_value, varying
from llamasweep.report.strips import representative, setting_word
from llamasweep.results.request_load import least_load as least_load_of
from llamasweep.results.request_load import request_load

MAX_SERIES = 6
MAX_FREE_SERIES = 3
"""More lines than this, and the other settings are held at one value."""
MAX_MODELS = 6
MAX_DOTS = 600


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One row on an axis: its median and the range of its kept repetitions, in t/s."""

    x: float | str
    row: Row

    @property
    def median(self) -> float:
        """Tokens per second."""
        assert self.row.rates is not None  # noqa: S101  (points are made of measured rows)
        return self.row.rates.median


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Rows that differ only on the axis. label: what tells it from the other series of its panel."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One small chart: one kind of test, one model, all its series along one axis.

    fixed: other settings held at one value for this panel, in words. n_left_out: series not drawn, they are in the table.
    """

    axis: str
    kind: str
    test: str
    family: str
    is_numeric: bool
    series: tuple[Series, ...]
    fixed: tuple[str, ...]
    n_left_out: int


def axes_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Axes that vary among the measured rows; builds and runs are told apart within panels and are no axis here."""
    timed = [row for row in rows if row.rates is not None]
    first = [axis for axis in ("n_depth", "n_threads") if axis in varying(timed)]
    rest = [
        axis for axis in varying(timed) if axis not in ("n_depth", "n_threads", "run_id", "build")
    ]
    return (*first, *rest)


def panels(rows: Sequence[Row], axis: str) -> tuple[Panel, ...]:
    """Panels of one axis: tg before pp, models by their best speed, at most MAX_MODELS of them."""
    made: list[Panel] = []
    for kind in ("tg", "pp"):
        timed = [row for row in representative(rows, kind) if row.rates is not None]
        families: dict[str, float] = {}
        for row in timed:
            assert row.rates is not None  # noqa: S101  (filtered above)
            families[row.family] = max(families.get(row.family, 0.0), row.rates.median)
        for family in sorted(families, key=lambda name: -families[name])[:MAX_MODELS]:
            panel = _panel([row for row in timed if row.family == family], axis, kind, family)
            if panel is not None:
                made.append(panel)
    return tuple(
        sorted(
            made, key=lambda panel: list(dict.fromkeys(p.family for p in made)).index(panel.family)
        )
    )


def _panel(rows: Sequence[Row], axis: str, kind: str, family: str) -> Panel | None:
    others = tuple(name for name in varying(rows) if name not in (axis, "run_id", "build"))
    lines: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if axis_value(row, axis) is not None:
            key = (row.quant, row.build, row.run_id, *(axis_value(row, name) for name in others))
            lines.setdefault(key, []).append(row)
    usable = {key: line for key, line in lines.items() if _n_values(line, axis) > 1}
    if not usable:
        return None
    fixed: tuple[str, ...] = ()
    if len(usable) > MAX_FREE_SERIES and others:
        held = _richest(usable, others)
        usable = {key: line for key, line in usable.items() if key[3:] == held}
        fixed = tuple(setting_word(n, v) for n, v in zip(others, held, strict=True))
    kept = sorted(usable.items(), key=lambda item: -max(_medians(item[1])))
    labels = _labels([line[0] for _, line in kept], () if fixed else others)
    numeric = all(_is_number(axis_value(row, axis)) for _, line in kept for row in line)
    return Panel(
        axis=axis,
        kind=kind,
        test=rows[0].test,
        family=family,
        is_numeric=numeric,
        series=tuple(
            Series(label=label, points=_points(line, axis, numeric))
            for label, (_, line) in zip(labels, kept[:MAX_SERIES], strict=False)
        ),
        fixed=fixed,
        n_left_out=len(lines) - min(len(kept), MAX_SERIES),
    )


def _n_values(line: Sequence[Row], axis: str) -> int:
    return len({axis_value(row, axis) for row in line})


def _medians(line: Sequence[Row]) -> list[float]:
    return [row.rates.median for row in line if row.rates is not None]


def _richest(
    lines: dict[tuple[object, ...], list[Row]], others: Sequence[str]
) -> tuple[object, ...]:
    """The other settings at which most is known along the axis; of equals the least load, then the fastest."""
    totals: dict[tuple[object, ...], tuple[int, float]] = {}
    for key, line in lines.items():
        n, best = totals.get(key[3:], (0, 0.0))
        totals[key[3:]] = (n + len(line), max(best, *_medians(line)))
    most = max(n for n, _ in totals.values())
    richest = [held for held, (n, _) in totals.items() if n == most]
    alike = least_load_of(richest, lambda held: request_load(dict(zip(others, held, strict=True))))
    return max(alike, key=lambda held: totals[held])


def _labels(firsts: Sequence[Row], others: tuple[str, ...]) -> list[str]:
    """Only what differs among the series: quantisation, build, run, other settings."""
    parts: list[list[str]] = [[] for _ in firsts]
    columns = [
        [row.quant for row in firsts],
        [row.build for row in firsts],
        [row.run_id for row in firsts],
        *([setting_word(axis, axis_value(row, axis)) for row in firsts] for axis in others),
    ]
    for column in columns:
        if len(set(column)) > 1:
            for part, word in zip(parts, column, strict=True):
                part.append(value_word(word))
    return [", ".join(part) or row.subject for part, row in zip(parts, firsts, strict=True)]


def _points(line: Sequence[Row], axis: str, numeric: bool) -> tuple[Point, ...]:
    points = []
    for row in line:
        value = axis_value(row, axis)
        if numeric:
            assert isinstance(value, int | float)  # noqa: S101  (what `numeric` means)
            points.append(Point(x=float(value), row=row))
        else:
            points.append(Point(x=value_word(value), row=row))
    return tuple(sorted(points, key=lambda point: point.x)) if numeric else tuple(points)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
