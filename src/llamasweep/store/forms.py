"""The two forms of a table: a folder of parts while a run goes on, one file after it, and the way between them.

The table is readable at every moment of the change, and a kill at any moment leaves one form or the other complete.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from llamasweep.errors import StoreError
from llamasweep.store.files import FileOps, discard, put, set_aside, swap_in, temporary
from llamasweep.store.reader import COMPACTED_PART, SCHEMA_PART, TableRead, table_path
from llamasweep.store.schema import arrow_schema, arrow_table, encoded


def put_rows(folder: Path, part: str, rows: Sequence[dict[str, Any]], ops: FileOps) -> None:
    """Write rows as one part of the table that the folder is. Raises StoreError."""
    name = folder.name.removeprefix(".").removesuffix(".new").removesuffix(".parquet")
    try:
        data = parquet_bytes(arrow_table(name, rows))
    except (pa.ArrowException, OverflowError, UnicodeError) as problem:
        raise StoreError(f"{name} of {part} cannot be stored: {problem}") from problem
    put(folder / part, data, ops)


def parquet_bytes(table: pa.Table) -> memoryview:
    """The table as a Parquet file in memory, so that writing it is one stream of bytes that can be synced."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue())


def make_folder(run_dir: Path, name: str, ops: FileOps) -> None:
    """Undo what a kill interrupted, and leave the table as a folder with today's schema in front."""
    path = table_path(run_dir, name)
    _settle(path, ops)
    if path.is_file():
        _split(path, ops)
    path.mkdir(exist_ok=True)
    for draft in path.glob(".*.new"):
        discard(draft, ops)
    if not _starts_with_schema(path, name):
        put_rows(path, SCHEMA_PART, [], ops)


def make_file(run_dir: Path, name: str, read: TableRead, ops: FileOps) -> None:
    """Put one file with these rows in the place of the folder."""
    path = table_path(run_dir, name)
    draft = temporary(path)
    put(draft, parquet_bytes(encoded(name, read.rows, parts=read.group_ids)), ops)
    swap_in(draft, path, ops)


def _settle(path: Path, ops: FileOps) -> None:
    """The path holds a complete form, or the old one stands beside it; whatever else is there is left over."""
    if not path.exists() and set_aside(path).exists():
        ops.rename(set_aside(path), path)
        ops.sync_folder(path.parent)
    for left_over in (temporary(path), set_aside(path), temporary(temporary(path))):
        discard(left_over, ops)


def _split(path: Path, ops: FileOps) -> None:
    draft = temporary(path)
    draft.mkdir()
    try:
        os.link(path, draft / COMPACTED_PART)
    except OSError:  # a filesystem without hard links
        put(draft / COMPACTED_PART, path.read_bytes(), ops)
    put_rows(draft, SCHEMA_PART, [], ops)
    swap_in(draft, path, ops)


def _starts_with_schema(path: Path, name: str) -> bool:
    try:
        found = pq.read_schema(path / SCHEMA_PART)
    except (OSError, pa.ArrowException):
        return False
    return bool(found.equals(arrow_schema(name), check_metadata=True))
