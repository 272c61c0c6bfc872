"""Exported rows as a CSV, JSONL or SQLite file, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llamasweep.errors import StoreError
from llamasweep.results.export import EXPORT_FIELDS
from llamasweep.store.files import named_error, put_named

TABLE = "llama_bench"
"""The table that llama-bench's own SQL output fills."""


def write_export(
    rows: Sequence[dict[str, Any]], kind: str, path: Path, *, replace: bool = False
) -> None:
    """Write the rows in llama-bench's columns; kind: csv, jsonl or sqlite.

    Raises StoreError, also where the file is there and not to be replaced.
    """
    if path.exists() and not replace:
        raise StoreError(f"{path} is there already", hint="choose another name, or add --force")
    if path.is_dir():
        raise StoreError(f"{path} is a folder")
    makers = {"csv": _csv_bytes, "jsonl": _jsonl_bytes, "sqlite": _sqlite_bytes}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put_named(path, makers[kind](rows))
    except OSError as problem:
        raise named_error(path, problem, "--out") from problem


def _jsonl_bytes(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _csv_bytes(rows: Sequence[dict[str, Any]]) -> bytes:
    """Every value quoted and switches as 0 and 1, as llama-bench writes them; absent is empty."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([f.name for f in EXPORT_FIELDS])
    writer.writerows([_flat(row[f.name]) for f in EXPORT_FIELDS] for row in rows)
    return text.getvalue().encode()


def _sqlite_bytes(rows: Sequence[dict[str, Any]]) -> bytes:
    names = ", ".join(f.name for f in EXPORT_FIELDS)
    types = ", ".join(f"{f.name} {f.sql}" for f in EXPORT_FIELDS)
    marks = ", ".join("?" * len(EXPORT_FIELDS))
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f"CREATE TABLE {TABLE} ({types})")
        database.executemany(
            f"INSERT INTO {TABLE} ({names}) VALUES ({marks})",  # noqa: S608  (names from the code)
            [[_flat(row[f.name]) for f in EXPORT_FIELDS] for row in rows],
        )
        database.commit()
        return database.serialize()
    finally:
        database.close()


def _flat(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
