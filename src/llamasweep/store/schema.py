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
