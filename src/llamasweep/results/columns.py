"""The flat columns of every table, derived from `results.records` and `sweep.parameters`.

Knows how a record becomes one flat row of plain values and back. Knows nothing of Parquet, pandas or files: `store.schema`
turns these columns into Arrow types, `results.schema_page` into the page of columns.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from llamasweep.results.records import Attempt, Reading, Sample, TelemetryFigures
from llamasweep.results.request_times import RequestTimes
from llamasweep.sweep.parameters import PARAMETERS, Parameter

ColumnType = Literal["int64", "float64", "string", "bool", "timestamp", "strings", "json"]
"""timestamp: microseconds, UTC. strings: a list of texts. json: a JSON object as text."""

Source = Literal["field", "requested", "applied", "telemetry", "requests"]
_NESTED: dict[Source, type] = {"telemetry": TelemetryFigures, "requests": RequestTimes}
"""Fields of an attempt that are records themselves, or None."""

Value = int | float | str | bool | datetime | list[str] | None

_INT64 = 2**63
_TYPES: dict[object, ColumnType] = {
    int: "int64",
    float: "float64",
    str: "string",
    bool: "bool",
    datetime: "timestamp",
    tuple[str, ...]: "strings",
    dict[str, str]: "json",
}
_KINDS: dict[str, ColumnType] = {
    "int": "int64",
    "str": "string",
    "choice": "string",
    "bool": "bool",
}
_APPLIED = "_applied"

_NEVER_NEGATIVE = {
    "tps",
    "bytes_per_s",
    "flop_per_s",
    "flop_per_byte",
    "bytes",
    "flop",
    "s",
    "j",
    "w",
    "mhz",
    "fraction",
}
_SPREADS = {"sample_std_tps", "mad_tps"}
_CALCULATIONS = {"flop", "flop_per_s"}
_MOST = 1e15
_MOST_CALCULATIONS = 1e24
"""A thousand accelerators calculate 10^18 times a second; no other figure comes near 10^15."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column.

    unit: as in names (bytes, ns, s, tps, w, j, c, mhz, fraction, count), None where there is none. nullable:
    whether it may be absent. source: where its value lives in the record; key: its name there.
    """

    name: str
    type: ColumnType
    unit: str | None
    doc: str
    nullable: bool
    source: Source = "field"
    key: str


def _stored_type(hint: Any) -> tuple[ColumnType, bool]:
    """Column type of a field's annotation and whether it allows None."""
    arms = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = [arm for arm in arms if arm is not type(None)]
    if len(kinds) != 1:
        raise TypeError(f"a column has one type, not {hint}")
    kind = str if typing.get_origin(kinds[0]) is Literal else kinds[0]
    return _TYPES[kind], len(kinds) < len(arms)


def _field_columns(record: type, source: Source = "field") -> list[Column]:
    hints = typing.get_type_hints(record)
    columns: list[Column] = []
    for field in dataclasses.fields(record):
        if record is Attempt and field.name == "requested":
            columns += _parameter_columns()
        elif record is Attempt and field.name in _NESTED:
            columns += _field_columns(_NESTED[field.name], field.name)
        elif not (record is Attempt and field.name == "applied"):
            kind, nullable = _stored_type(hints[field.name])
            columns.append(
                Column(
                    name=field.name,
                    type=kind,
                    unit=field.metadata["unit"],
                    doc=field.metadata["doc"],
                    nullable=nullable,
                    source=source,
                    key=field.name,
                )
            )
    return columns


def _parameter_columns() -> list[Column]:
    """Two columns per parameter; the depth that was asked for is the test's own `n_depth`."""
    own = {field.name for field in dataclasses.fields(Attempt)}
    columns = []
    for parameter in PARAMETERS:
        if parameter.name not in own:
            columns.append(_parameter_column(parameter, "requested"))
        columns.append(_parameter_column(parameter, "applied"))
    return columns


def _parameter_column(parameter: Parameter, source: Literal["requested", "applied"]) -> Column:
    is_applied = source == "applied"
    absent = "only echoed or not told" if is_applied else "left to the engine"
    return Column(
        name=parameter.name + (_APPLIED if is_applied else ""),
        type=_KINDS[parameter.kind],
        unit="count" if parameter.name.startswith("n_") else None,
        doc=f"{parameter.doc}; {source}, None = {absent}",
        nullable=True,
        source=source,
        key=parameter.name,
    )


ATTEMPT_COLUMNS: tuple[Column, ...] = tuple(_field_columns(Attempt))
SAMPLE_COLUMNS: tuple[Column, ...] = tuple(_field_columns(Sample))
READING_COLUMNS: tuple[Column, ...] = tuple(_field_columns(Reading))

TABLES: dict[str, tuple[Column, ...]] = {
    "cells": ATTEMPT_COLUMNS,
    "samples": SAMPLE_COLUMNS,
    "telemetry": READING_COLUMNS,
}
"""Table name (`cells` is `cells.parquet`) -> its columns in order."""

_PARAMETER_NAMES = {p.name for p in PARAMETERS}
_FLOATS = tuple(c for c in ATTEMPT_COLUMNS if c.type == "float64")
_OF_SOURCE: dict[Source, tuple[Column, ...]] = {
    source: tuple(c for c in ATTEMPT_COLUMNS if c.source == source)
    for source in ("field", "requested", "applied", *_NESTED)
}
_FIELD_COLUMNS: dict[type, tuple[Column, ...]] = {
    record: tuple(c for c in columns if c.source == "field")
    for record, columns in (
        (Attempt, ATTEMPT_COLUMNS),
        (Sample, SAMPLE_COLUMNS),
        (Reading, READING_COLUMNS),
    )
}


def to_row(attempt: Attempt) -> dict[str, Value]:
    """The attempt as one flat row, every column present.

    A number that no column can hold (not finite, or beyond 64 bits) becomes None with a reason. `requested["n_depth"]`
    is `n_depth` itself. Raises ValueError for a parameter that is not declared and for a time without a zone.
    """
    unknown = (attempt.requested.keys() | attempt.applied.keys()) - _PARAMETER_NAMES
    if unknown:
        raise ValueError(f"not a parameter: {', '.join(sorted(unknown))}")
    reasons = dict(attempt.reasons)
    row: dict[str, Value] = {}
    for column in ATTEMPT_COLUMNS:
        value, reason = _stored(column, _raw(attempt, column))
        row[column.name] = value
        if reason is not None:
            reasons.setdefault(column.name, reason)
    row["reasons"] = _json_text(reasons)
    return row


def from_row(row: Mapping[str, Any]) -> Attempt:
    """The attempt that `to_row` was given; columns that are missing are None, unknown ones are ignored.

    A number that nothing can have measured (not finite; a negative rate; above 10^15) is None with a reason.
    `telemetry` and `requests` are None where no figure of them is there. Raises ValueError where a needed column is missing.
    """
    faults = _faults(row)
    row = {**row, **dict.fromkeys(faults)} if faults else row
    fields = _loaded_fields(Attempt, row)
    fields["reasons"] |= faults
    nested: dict[str, Any] = {}
    for source, record in _NESTED.items():
        figures = {c.key: row.get(c.name) for c in _OF_SOURCE[source]}
        has_figures = any(value is not None for value in figures.values())
        nested[source] = record(**figures) if has_figures else None
    return Attempt(
        **fields,
        requested=_parameters(row, "requested"),
        applied=_parameters(row, "applied"),
        **nested,
    )


def record_row(record: Sample | Reading) -> dict[str, Value]:
    """A sample or a reading as one flat row. Raises ValueError for a value that no column can hold."""
    return {c.name: _stored(c, getattr(record, c.key))[0] for c in _FIELD_COLUMNS[type(record)]}


_Record = TypeVar("_Record", Sample, Reading)


def record_from_row(record: type[_Record], row: Mapping[str, Any]) -> _Record:
    """The sample or reading that `record_row` was given."""
    return record(**_loaded_fields(record, row))


def _faults(row: Mapping[str, Any]) -> dict[str, str]:
    """Columns whose number cannot be one that was measured -> why."""
    found = {c.name: _fault(c, row.get(c.name)) for c in _FLOATS}
    return {name: fault for name, fault in found.items() if fault is not None}


def _fault(column: Column, value: float | None) -> str | None:
    if value is None:
        return None
    if not math.isfinite(value):
        return "the file holds no finite number"
    if value < 0 and column.unit in _NEVER_NEGATIVE:
        return f"the file holds {value:g}, which is below 0"
    if value == 0:
        return _fault_of_zero(column)
    if abs(value) > (_MOST_CALCULATIONS if column.unit in _CALCULATIONS else _MOST):
        return f"the file holds {value:g}, which nothing can reach"
    return None


def _fault_of_zero(column: Column) -> str | None:
    if column.name == "energy_per_token_j":
        return "the file holds 0: the energy counter did not move"
    if column.unit == "tps" and column.nullable and column.name not in _SPREADS:
        return "the file holds 0, which is no rate"
    return None


def _parameters(row: Mapping[str, Any], source: Literal["requested", "applied"]) -> dict[str, Any]:
    values = ((c.key, row.get(c.name)) for c in _OF_SOURCE[source])
    return {key: value for key, value in values if value is not None}


def _loaded_fields(record: type, row: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for column in _FIELD_COLUMNS[record]:
        value = row.get(column.name)
        if value is None and not column.nullable and column.type not in ("strings", "json"):
            raise ValueError(f"column {column.name} is missing")
        if column.type == "float64" and not column.nullable and (fault := _fault(column, value)):
            raise ValueError(f"column {column.name}: {fault}")
        fields[column.key] = _loaded(column, value)
    return fields


def _loaded(column: Column, value: Any) -> Any:
    if column.type == "strings":
        return tuple(value) if value is not None else ()
    if column.type == "json":
        return _loaded_texts(column, value)
    if column.type == "timestamp" and value is not None:
        return value.astimezone(UTC)
    return value


def _loaded_texts(column: Column, value: str | None) -> dict[str, str]:
    """Raises ValueError where the text is no JSON object."""
    try:
        texts = json.loads(value) if value else {}
    except RecursionError as problem:
        raise ValueError(f"column {column.name}: nested too deeply") from problem
    if not isinstance(texts, dict):
        raise ValueError(f"column {column.name}: no JSON object")
    return {name: str(text) for name, text in texts.items()}


def _raw(attempt: Attempt, column: Column) -> Any:
    if column.source == "requested":
        return attempt.requested.get(column.key)
    if column.source == "applied":
        return attempt.applied.get(column.key)
    if column.source in _NESTED:
        nested = getattr(attempt, column.source)
        return getattr(nested, column.key) if nested is not None else None
    return getattr(attempt, column.key)


def _stored(column: Column, value: Any) -> tuple[Value, str | None]:
    """The value as the column holds it, and why it is None where it could not be held."""
    if value is None:
        if not column.nullable:
            raise ValueError(f"column {column.name} needs a value")
        return None, None
    if column.type in ("int64", "float64"):
        return _stored_number(column, value)
    if column.type == "timestamp":
        return _stored_time(column, value), None
    if column.type == "strings":
        return [_text(item) for item in value], None
    if column.type == "json":
        return _json_text(value), None
    return (bool(value) if column.type == "bool" else _text(value)), None


def _stored_number(column: Column, value: Any) -> tuple[Value, str | None]:
    number = int(value) if column.type == "int64" else float(value)
    if isinstance(number, int):
        fault = None if -_INT64 <= number < _INT64 else "beyond 64 bits"
    else:
        fault = None if math.isfinite(number) else "not a finite number"
    if fault is None:
        return number, None
    if not column.nullable:
        raise ValueError(f"column {column.name}: {fault}")
    return None, fault


def _stored_time(column: Column, value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(f"column {column.name}: a time needs its zone")
    return value.astimezone(UTC)


def _text(value: object) -> str:
    """Valid UTF-8: a file name may hold bytes that are none, and they come as lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _json_text(reasons: Mapping[str, str]) -> str:
    clean = {_text(key): _text(value) for key, value in reasons.items()}
    return json.dumps(clean, sort_keys=True, ensure_ascii=False)
