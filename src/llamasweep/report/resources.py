"""What a model takes: peaks of memory beside its size, along the depth, and energy. Rows in, plain data out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from llamasweep.report import figures
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.panels import Point, Series, panels
from llamasweep.report.rows import Measured, Row, varying
from llamasweep.report.strips import per_model

MAX_BARS = 24
MAX_LINES = 6
Where = Literal["RAM", "VRAM"]
JOULES_PER_WH = 3600.0
_SCOPES = {"gpu": "the GPU", "cpu": "the CPU", "gpu+cpu": "GPU and CPU"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One model's figure. mark: what it is held against, on the same axis; None if nothing. words: the whole in a sentence.

    predicted: what it should have been, made before; None where nobody can tell.
    """

    row: Row
    label: str
    value: float
    mark: float | None
    words: str
    predicted: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """Figures of one kind side by side, largest first."""

    title: str
    subtitle: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Peaks along an axis of one series. points: (value on the axis, bytes, the point in words). rows: one per point."""

    label: str
    points: tuple[tuple[float, float, str], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """Memory against one axis for one model."""

    axis: str
    title: str
    subtitle: str
    lines: tuple[Line, ...]


def memory_bars(rows: Sequence[Row]) -> tuple[Bars, ...]:
    """Peaks of RAM and of VRAM beside the model's size; a kind that no row has is absent."""
    wheres: tuple[Where, ...] = ("VRAM", "RAM")
    return tuple(bars for where in wheres if (bars := _memory_bars(rows, where)))


def memory_growth(rows: Sequence[Row], axis: str = "n_depth") -> tuple[Growth, ...]:
    """VRAM where it was measured, else RAM, against a numeric axis: one per model, where the axis varies."""
    found = []
    for panel in panels(rows, axis):
        if panel.kind != "tg" or not panel.is_numeric:
            continue
        points = [point for series in panel.series for point in series.points]
        where: Where = "VRAM" if any(p.row.vram_bytes.value for p in points) else "RAM"
        lines = [_memory_line(series, where, axis) for series in panel.series[:MAX_LINES]]
        lines = [line for line in lines if len(line.points) > 1]
        if lines:
            found.append(
                Growth(
                    axis=axis,
                    title=_growth_title(lines, where, axis),
                    subtitle=f"{shown(panel.family, 60)}, {panel.test}, peak of {where}",
                    lines=tuple(lines),
                )
            )
    return tuple(found)


def _memory_line(series: Series, where: Where, axis: str) -> Line:
    known = [
        (point, value)
        for point in series.points
        if (value := _memory(point.row, where).value) is not None
    ]
    return Line(
        label=series.label,
        points=tuple(
            (float(point.x), value, _growth_words(point, where, value, axis))
            for point, value in known
        ),
        rows=tuple(point.row for point, _ in known),
    )


def energy_bars(rows: Sequence[Row]) -> tuple[tuple[str, Bars], ...]:
    """(kind, joules per token) of tg and pp, least first; absent where no row has a figure."""
    found = []
    for kind, index in (("tg", 0), ("pp", 1)):
        known = _chosen(rows, index, lambda row: row.energy_j)
        if not known:
            continue
        known.sort(key=lambda pair: pair[1])
        row, least = known[0]
        bars = tuple(
            Bar(
                row=one,
                label=_label(one, known),
                value=value,
                mark=None,
                words=_energy_words(one, value),
            )
            for one, value in known[:MAX_BARS]
        )
        found.append(
            (
                kind,
                Bars(
                    title=f"{shown(row.subject, 60)} takes {figures.energy(least)} a token, "
                    f"{figures.count(round(JOULES_PER_WH / least))} tokens per Wh",
                    subtitle=f"{row.test}, {_scope_words([one for one, _ in known])}",
                    bars=bars,
                ),
            )
        )
    return tuple(found)


def _memory(row: Row, where: Where) -> Measured:
    return row.ram_bytes if where == "RAM" else row.vram_bytes


def _predicted(row: Row, where: Where) -> int | None:
    of = row.attempt
    return of.predicted_ram_bytes if where == "RAM" else of.predicted_vram_bytes


def _memory_bars(rows: Sequence[Row], where: Where) -> Bars | None:
    known = _chosen(rows, None, lambda row: _memory(row, where))
    if not known:
        return None
    known.sort(key=lambda pair: -pair[1])
    bars = tuple(
        Bar(
            row=row,
            label=_label(row, known),
            value=value,
            mark=row.attempt.model_size_bytes,
            words=_memory_words(row, where, value),
            predicted=_predicted(row, where),
        )
        for row, value in known[:MAX_BARS]
    )
    ratios = [value / size for row, value in known if (size := row.attempt.model_size_bytes)]
    title = f"{where} peaks at {figures.size(max(value for _, value in known))}"
    if ratios:
        least, most = figures.number(min(ratios)), figures.number(max(ratios))
        title = f"{where} peaks at {figures.span(least, most)} times the size of the model"
    whose = "the engine's processes" if where == "RAM" else "all used devices"
    return Bars(
        title=title, subtitle=f"peak of {whose} while tested, at the least depth", bars=bars
    )


def _chosen(
    rows: Sequence[Row], index: int | None, get: Callable[[Row], Measured]
) -> list[tuple[Row, float]]:
    """(row, figure) per model in its fastest setting: of tg, of pp, or of either (None)."""
    found = []
    for pair in per_model([row for row in rows if row.rates is not None]):
        of_model = pair if index is None else (pair[index],)
        known = [(r, v) for r in of_model if r is not None and (v := get(r).value) is not None]
        if known:
            found.append(max(known, key=lambda item: item[1]))
    return found


def _label(row: Row, among: Sequence[tuple[Row, float]]) -> str:
    identity = [axis for axis in varying([one for one, _ in among]) if axis in ("run_id", "build")]
    return ", ".join([row.subject, *(value_word(getattr(row, axis)) for axis in identity)])


def _memory_words(row: Row, where: Where, value: float) -> str:
    size = row.attempt.model_size_bytes
    text = f"{shown(row.subject, 60)}: {where} peak {figures.size(value)}"
    predicted = _predicted(row, where)
    if predicted is not None:
        text += f", predicted {figures.size(predicted)}"
    return text + (f", model {figures.size(size)}" if size else ", size of the model not known")


def _growth_words(point: Point, where: Where, value: float, axis: str) -> str:
    at = f"{axis_word(axis)} {figures.count(int(float(point.x)))}"
    return f"{shown(point.row.subject, 60)} at {at}: {where} peak {figures.size(value)}"


def _energy_words(row: Row, joules: float) -> str:
    per_wh = figures.count(round(JOULES_PER_WH / joules))
    return f"{shown(row.subject, 60)}, {row.test}: {figures.energy(joules)} a token, {per_wh} tokens per Wh"


def _scope_words(rows: Sequence[Row]) -> str:
    scopes = {row.attempt.telemetry.energy_scope for row in rows if row.attempt.telemetry}
    named = sorted(_SCOPES.get(scope, shown(scope, 20)) for scope in scopes if scope)
    return f"energy of {' or '.join(named)} alone" if named else "scope of the energy not recorded"


def _growth_title(lines: Sequence[Line], where: Where, axis: str) -> str:
    changes = [line.points[-1][1] - line.points[0][1] for line in lines]
    to = f"{axis_word(axis)} {figures.count(int(max(line.points[-1][0] for line in lines)))}"
    largest = 0.01 * max(line.points[0][1] for line in lines)
    if max(abs(change) for change in changes) <= largest:
        return f"{where} does not grow up to {to}"
    if max(changes) <= 0:
        least, most = figures.size(-max(changes)), figures.size(-min(changes))
        return f"{where} falls by {figures.span(least, most)} up to {to}"
    least, most = figures.size(max(0.0, min(changes))), figures.size(max(changes))
    return f"{where} grows by {figures.span(least, most)} up to {to}"
