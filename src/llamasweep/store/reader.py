"""Reading one table of a run, whether it is a folder of parts or one file, also while somebody writes it.

A part that cannot be read is reported and left alone; the rest loads. Writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from llamasweep.errors import plain_reason
from llamasweep.store.files import set_aside
from llamasweep.store.migrate import check_version, upgrade
from llamasweep.store.schema import check_types, decoded, held_parts, schema_version, united

_PART_NAME = re.compile(r"(\d{6,})(?:-([A-Za-z0-9][A-Za-z0-9_.-]*))?\.parquet")
"""`000002-GROUP.parquet` holds one group; the two without a group are below."""
SCHEMA_PART = "000000.parquet"
"""No rows and every column: any reader of the folder takes the schema from its first file."""
COMPACTED_PART = "000001.parquet"
"""What an earlier, finished stretch of the run left."""

_ATTEMPTS_TO_READ = 3
"""A folder may become a file between listing and opening it; then everything is there under the new form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRead:
    """rows: united and decoded. group_ids: groups whose rows they are. unreadable: a sentence for each part that
    could not be read."""

    rows: pa.Table
    group_ids: frozenset[str]
    unreadable: tuple[str, ...]


def table_path(run_dir: Path, name: str) -> Path:
    """`cells.parquet` and its like, a folder while the run goes on and a file after it."""
    return run_dir / f"{name}.parquet"


def read_table(run_dir: Path, name: str, *, only: Collection[str] | None = None) -> TableRead:
    """All rows of a table, none where it is not there; `only` keeps to parts of these names while it is a folder.

    Raises StoreError for a newer schema, and for a column whose values are of another type than they must be.
    """
    for _ in range(_ATTEMPTS_TO_READ - 1):
        try:
            return _read_once(run_dir, name, only)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return _read_once(run_dir, name, only)


def part_files(run_dir: Path, name: str) -> list[Path]:
    """The files of a table in the order of writing, the empty schema part left out."""
    path = table_path(run_dir, name)
    if not path.exists():
        path = set_aside(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        return []
    parts = [p for p in path.iterdir() if _PART_NAME.fullmatch(p.name) and p.name != SCHEMA_PART]
    return sorted(parts, key=lambda p: (part_number(p), p.name))


def part_number(part: Path) -> int:
    """Its place in the order of writing; 0 for a table that is one file."""
    found = _PART_NAME.fullmatch(part.name)
    return int(found[1]) if found else 0


def part_group(part: Path) -> str | None:
    """The group that a part's name tells, None for a compacted file."""
    found = _PART_NAME.fullmatch(part.name)
    return found[2] if found else None


def plain_rows(table: pa.Table) -> Iterator[dict[str, object]]:
    """Rows as dicts of plain values, a few thousand at a time."""
    for batch in table.to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def _read_once(run_dir: Path, name: str, only: Collection[str] | None) -> TableRead:
    tables: list[pa.Table] = []
    group_ids: set[str] = set()
    unreadable: list[str] = []
    for path in part_files(run_dir, name):
        if only is not None and _PART_NAME.fullmatch(path.name) and path.name not in only:
            continue
        try:
            table = _read_part(path, name)
        except (FileNotFoundError, NotADirectoryError):
            raise
        except (pa.ArrowException, OSError, ValueError) as problem:
            place = path.relative_to(run_dir)
            unreadable.append(f"{place} cannot be read and was left alone: {plain_reason(problem)}")
            continue
        group_id = part_group(path)
        group_ids |= {group_id} if group_id is not None else held_parts(table.schema)
        plain = decoded(table)
        check_types(name, plain, str(path))
        tables.append(plain)
    return TableRead(
        rows=united(name, tables),
        group_ids=frozenset(group_ids),
        unreadable=tuple(unreadable),
    )


def _read_part(path: Path, name: str) -> pa.Table:
    """Without threads of Arrow's: a pool that is idle when the process ends may abort it, and so take its exit code."""
    with path.open("rb") as stream:
        file = pq.ParquetFile(stream, pre_buffer=False)
        version = check_version(schema_version(file.schema_arrow), str(path))
        return upgrade(name, file.read(use_threads=False), version)
