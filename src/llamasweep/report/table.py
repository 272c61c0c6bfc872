"""The table of all rows as plain data: columns that differ, cells with a sort value, footnotes for what is absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.row_marks import Mark
from llamasweep.report.rows import NO_REASON, Measured, Row, axis_value, constant, varying
from llamasweep.report.strips import setting_word
from llamasweep.report.trouble import STATUS_WORDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: title, its unit or meaning, None if clear. is_number: right-aligned and sorted by value."""

    title: str
    note: str | None = None
    is_number: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CellText:
    """What one table cell shows. sort: number or text to sort by, None = absent, sorted last. footnote: index or None.

    fraction, spread: what follows an integer part, apart so that decimal points align; None for other cells.
    marks: shown in the place of the text.
    """

    text: str
    sort: float | str | None
    fraction: str | None = None
    spread: str | None = None
    footnote: int | None = None
    marks: tuple[Mark, ...] = ()
    is_bad: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One row of the table."""

    anchor: str
    status: str
    cells: tuple[CellText, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """columns and lines; same: settings equal in all rows; never: figures absent everywhere, with their reasons."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    footnotes: tuple[str, ...]
    same: tuple[str, ...]
    never: tuple[tuple[str, str, tuple[str, ...]], ...]


ENERGY = "J/token"
MARKS_NOTE = "▲ alarm, ⚑ warning, ○ note, each with its card under Why slow; without a sign a flag of the run, see Trust"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Figure:
    title: str
    note: str | None
    get: Callable[[Row], Measured]
    show: Callable[[float], str]
    absent: str = "not measured"


def _model_size(row: Row) -> Measured:
    size = row.attempt.model_size_bytes
    if size is not None:
        return Measured(value=float(size))
    return Measured(value=None, reason=row.attempt.reasons.get("model_size_bytes", NO_REASON))


def _share(row: Row) -> Measured:
    return row.fraction


_FIGURES: tuple[_Figure, ...] = (
    _Figure(
        title="of ceiling",
        note="median ÷ exact ceiling, or times a reference peak, which may be exceeded",
        get=_share,
        absent="no ceiling",
        show=figures.percent,
    ),
    _Figure(
        title="of pencil",
        note="median ÷ pencil ceiling (bandwidth ÷ model size)",
        get=lambda row: row.pencil_fraction,
        absent="no ceiling",
        show=figures.percent,
    ),
    _Figure(
        title="size",
        note="of all tensors",
        get=_model_size,
        show=figures.size,
    ),
    _Figure(
        title="RAM",
        note="peak of the engine's processes",
        get=lambda row: row.ram_bytes,
        show=figures.size,
    ),
    _Figure(
        title="VRAM",
        note="peak in use on the devices",
        get=lambda row: row.vram_bytes,
        show=figures.size,
    ),
    _Figure(
        title=ENERGY, note="energy ÷ tokens", get=lambda row: row.energy_j, show=figures.energy
    ),
)


def table(rows: Sequence[Row]) -> Table:
    """All rows, in the order in which they were tried."""
    axes = varying(rows)
    has_engines = len({row.attempt.engine for row in rows}) > 1
    footnotes: dict[str, int] = {}
    timed = [row for row in rows if row.rates is not None]
    shown_figures = [f for f in _FIGURES if any(f.get(row).value is not None for row in timed)]
    columns = (
        Column(title="model"),
        Column(title="quant"),
        *([Column(title="engine")] if has_engines else []),
        *(Column(title=_axis_column(axis), is_number=_is_numeric(rows, axis)) for axis in axes),
        Column(title="test"),
        Column(title="t/s", note="median ± sample standard deviation", is_number=True),
        Column(title="n", note="repetitions kept (+ left out)", is_number=True),
        *(Column(title=f.title, note=_note_of(f, timed), is_number=True) for f in shown_figures),
        Column(title="marks", note=MARKS_NOTE),
        Column(title="status"),
    )
    lines = tuple(
        _line(row, axes, shown_figures, footnotes, has_engine=has_engines) for row in rows
    )
    return Table(
        columns=columns,
        lines=lines,
        footnotes=tuple(footnotes),
        same=tuple(setting_word(name, value) for name, value in constant(rows).items()),
        never=tuple(
            (f.title, f.absent, _reasons(timed, f))
            for f in _FIGURES
            if f not in shown_figures and timed
        ),
    )


def _note_of(figure: _Figure, rows: Sequence[Row]) -> str | None:
    """The figure's note; of energy also which parts of the machine it covers."""
    scopes = {
        row.attempt.telemetry.energy_scope for row in rows if row.attempt.telemetry is not None
    }
    named = sorted(shown(scope, 20) for scope in scopes if scope)
    return (
        f"{figure.note}, covers {', '.join(named)}"
        if figure.title == ENERGY and named
        else figure.note
    )


def rate_text(row: Row) -> tuple[str, str, str]:
    """Integer part, fraction and spread of a measured row: `('41', '.2', '± 0.6')`; '' where there is none."""
    assert row.rates is not None  # noqa: S101  (the caller looked)
    whole, dot, fraction = figures.number(row.rates.median).partition(".")
    std = row.rates.std
    spread = f"± {figures.spread(std, row.rates.median)}" if std is not None else ""
    return whole, dot + fraction, spread


def _line(
    row: Row,
    axes: Sequence[str],
    shown_figures: Sequence[_Figure],
    footnotes: dict[str, int],
    *,
    has_engine: bool,
) -> Line:
    engine = shown(row.attempt.engine, 40)
    cells = [
        CellText(text=shown(row.family, 60), sort=row.family),
        CellText(text=shown(row.quant or "unknown", 24), sort=row.quant or None),
        *([CellText(text=engine, sort=engine)] if has_engine else []),
        *(_axis_cell(row, axis) for axis in axes),
        CellText(text=row.test, sort=row.test),
        _rate_cell(row, footnotes),
        _n_cell(row),
        *(_figure_cell(row, figure, footnotes) for figure in shown_figures),
        CellText(
            text=", ".join(mark.text for mark in row.marks) or "none",
            sort=len(row.marks),
            marks=row.marks,
        ),
        CellText(
            text=STATUS_WORDS.get(row.status, row.status),
            sort=row.status,
            is_bad=row.status in ("failed", "timeout", "out_of_memory"),
        ),
    ]
    return Line(anchor=row.anchor, status=row.status, cells=tuple(cells))


def _rate_cell(row: Row, footnotes: dict[str, int]) -> CellText:
    if row.rates is None:
        return _absent(
            row.attempt.error_message or STATUS_WORDS.get(row.status, row.status), footnotes
        )
    whole, fraction, spread = rate_text(row)
    note = None
    if not spread:
        reason = f"no spread from {figures.counted(row.rates.n_kept, 'repetition')}"
        note = _note(reason, footnotes)
    return CellText(
        text=whole, fraction=fraction, spread=spread, sort=row.rates.median, footnote=note
    )


def _n_cell(row: Row) -> CellText:
    if row.rates is None:
        return CellText(text="none", sort=None)
    extra = f" (+{row.rates.n_discarded})" if row.rates.n_discarded else ""
    return CellText(text=f"{row.rates.n_kept}{extra}", sort=row.rates.n_kept)


def _figure_cell(row: Row, figure: _Figure, footnotes: dict[str, int]) -> CellText:
    measured = figure.get(row)
    if measured.value is not None and figure.get is _share and row.attempt.ceiling_is_reference:
        text = f"{figures.times(measured.value)} the reference"
        return CellText(text=text, sort=measured.value)
    if measured.value is not None:
        return CellText(text=figure.show(measured.value), sort=measured.value)
    if row.rates is None:
        return _absent("the row has no measurement, see its status", footnotes)
    return _absent(measured.reason or NO_REASON, footnotes, figure.absent)


def _absent(reason: str, footnotes: dict[str, int], word: str = "not measured") -> CellText:
    return CellText(text=word, sort=None, footnote=_note(reason, footnotes))


def _note(reason: str, footnotes: dict[str, int]) -> int:
    return footnotes.setdefault(shown(reason, 300), len(footnotes) + 1)


def _reasons(rows: Sequence[Row], figure: _Figure) -> tuple[str, ...]:
    reasons = dict.fromkeys(shown(figure.get(row).reason or NO_REASON, 300) for row in rows)
    return tuple(reasons)[:3]


def _axis_column(axis: str) -> str:
    return {"build": "build", "run_id": "run"}.get(axis, axis_word(axis))


def _is_numeric(rows: Sequence[Row], axis: str) -> bool:
    values = [axis_value(row, axis) for row in rows]
    return all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        for value in values
    )


def _axis_cell(row: Row, axis: str) -> CellText:
    value = axis_value(row, axis)
    if value is None:
        return CellText(text="engine's choice", sort=None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return CellText(text=value_word(value), sort=float(value))
    return CellText(text=value_word(value), sort=value_word(value))
