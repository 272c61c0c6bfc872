"""Arrow schemas and tables from the columns of `results.columns`.

Text is dictionary-encoded, times carry their zone, units and schema version stand in the metadata.
Opens no file.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from llamasweep.errors import StoreError, quoted
from llamasweep.results.columns import TABLES, Column
from llamasweep.results.records import SCHEMA_VERSION

VERSION_KEY = b"llamasweep.schema_version"
UNITS_KEY = b"llamasweep.units"
PARTS_KEY = b"llamasweep.parts"
"""JSON list of the group ids that a compacted file holds."""

_ARROW: dict[str, Any] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.dictionary(pa.int32(), pa.string()),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "strings": pa.list_(pa.field("element", pa.string())),  # as Parquet itself names it
    "json": pa.string(),
}


@functools.cache
def arrow_schema(table: str) -> pa.Schema:
    """Schema of `cells`, `samples` or `telemetry` as this version writes it."""
    columns = TABLES[table]
    units = {c.name: c.unit for c in columns if c.unit is not None}
    metadata = {VERSION_KEY: str(SCHEMA_VERSION).encode(), UNITS_KEY: json.dumps(units).encode()}
    return pa.schema([_field(c) for c in columns], metadata=metadata)


def _field(column: Column) -> pa.Field:
    unit = {b"unit": column.unit.encode()} if column.unit is not None else None
    return pa.field(column.name, _ARROW[column.type], nullable=column.nullable, metadata=unit)


def arrow_table(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of plain values as an Arrow table with the full schema."""
    schema = arrow_schema(table)
    arrays = [pa.array([row[f.name] for row in rows], type=f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def decoded(table: pa.Table) -> pa.Table:
    """The table with plain text instead of dictionaries and every column nullable, so that any two unite."""
    fields = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


@functools.cache
def _plain_schema(table: str) -> pa.Schema:
    return decoded(arrow_table(table, [])).schema


def check_types(name: str, part: pa.Table, where: str) -> None:
    """Raises StoreError where a column of a decoded part is there twice, or in a type that today's cannot take in."""
    if len(set(part.column_names)) < len(part.column_names):
        raise StoreError(f"{where} is damaged: a column is there twice")
    for wanted in _plain_schema(name):
        if wanted.name not in part.column_names:
            continue
        found = part.schema.field(wanted.name).type
        if not _fits(found, wanted.type):
            raise StoreError(
                f"{where}: the column {wanted.name} holds {quoted(str(found))}, and it must be {wanted.type}",
                hint="some other program wrote it: restore the file from a copy, or write the column in its type",
            )


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    is_type = pa.types
    if found == wanted or is_type.is_null(found):
        return True
    if is_type.is_floating(wanted):
        return bool(is_type.is_floating(found) or is_type.is_integer(found))
    if is_type.is_integer(wanted):
        return bool(is_type.is_signed_integer(found))
    if is_type.is_list(wanted):
        return bool(is_type.is_list(found) and is_type.is_string(found.value_type))
    if is_type.is_timestamp(wanted):
        return bool(is_type.is_timestamp(found) and found.tz is not None)
    return bool(is_type.is_string(wanted) and is_type.is_large_string(found))


def united(table: str, parts: Sequence[pa.Table]) -> pa.Table:
    """All rows of all decoded parts under one schema: this version's columns first, then any others.

    A column that only some parts have is null in the others; none is lost.
    """
    full = decoded(arrow_table(table, []))
    whole = pa.concat_tables([full, *parts], promote_options="permissive")
    return whole.replace_schema_metadata(arrow_schema(table).metadata)


def encoded(table: str, whole: pa.Table, *, parts: Iterable[str]) -> pa.Table:
    """A united table in the types in which files are written; columns of other versions stay as they are."""
    schema = arrow_schema(table)
    fields = [
        schema.field(name) if name in schema.names else whole.schema.field(name)
        for name in whole.column_names
    ]
    metadata = {**schema.metadata, PARTS_KEY: json.dumps(sorted(parts)).encode()}
    return whole.cast(pa.schema(fields, metadata=metadata))


def schema_version(schema: pa.Schema) -> int | None:
    """The version that a file was written with, None where it does not say."""
    text = (schema.metadata or {}).get(VERSION_KEY)
    return int(text) if text is not None and text.isdigit() else None


def held_parts(schema: pa.Schema) -> set[str]:
    """Group ids that a compacted file holds; empty for an ordinary part."""
    text = (schema.metadata or {}).get(PARTS_KEY)
    return set(json.loads(text)) if text is not None else set()
