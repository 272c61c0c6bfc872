"""One run's folder: run.json, and three tables written group by group.

A group's three parts carry one name; its part of `cells` comes last and is the commit: without it the other two do
not count, and they are overwritten when the group is written again. One process writes a run; any number may read it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from llamasweep.errors import StoreError, plain_reason
from llamasweep.results.columns import TABLES, from_row, record_from_row, record_row, to_row
from llamasweep.results.records import Attempt, Reading, RunInfo, Sample
from llamasweep.store.files import FileOps, put, store_error, temporary
from llamasweep.store.forms import make_file, make_folder, put_rows
from llamasweep.store.info import info_from_text, info_text
from llamasweep.store.reader import (
    COMPACTED_PART,
    TableRead,
    part_files,
    part_group,
    part_number,
    plain_rows,
    read_table,
    table_path,
)

INFO_NAME = "run.json"
_COMMIT = "cells"
_BEFORE_COMMIT = ("telemetry", "samples")
_FIRST_NUMBER = 2  # below are the schema part and the compacted part
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

_Record = TypeVar("_Record", Attempt, Reading, Sample)


class RunStore:
    """A run's folder. `create` makes one, `open` takes up one that is there."""

    def __init__(self, run_dir: Path, ops: FileOps | None = None) -> None:
        self.run_dir = run_dir
        self.logs_dir = run_dir / "logs"
        self._ops = ops or FileOps()
        self._written: set[str] | None = None
        """Attempts that are written down; None until this process has begun to write."""

    @classmethod
    def create(cls, root: Path, info: RunInfo, *, ops: FileOps | None = None) -> RunStore:
        """A new run under `root`, complete with its empty tables from the first moment that it is visible.

        Raises StoreError where it exists already or the disk does not let us.
        """
        _check_name(info.run_id, "run id")
        run_dir = root / info.run_id
        if run_dir.exists():
            raise StoreError(f"the run {run_dir} is there already")
        draft = cls(temporary(run_dir), ops)
        try:
            draft._fill(info)
            draft._ops.rename(draft.run_dir, run_dir)
            draft._ops.sync_folder(root)
        except (OSError, StoreError) as problem:
            shutil.rmtree(draft.run_dir, ignore_errors=True)
            if isinstance(problem, OSError):
                raise store_error(run_dir, problem) from problem
            raise
        return cls(run_dir, ops)

    @classmethod
    def open(cls, run_dir: Path, *, ops: FileOps | None = None) -> RunStore:
        """An existing run, for reading or to go on with it. Changes nothing yet.

        Raises StoreError where it is no run, or one of a newer schema.
        """
        store = cls(run_dir, ops)
        store.read_info()
        return store

    def write_info(self, info: RunInfo) -> None:
        """Replace run.json, whole or not at all."""
        put(self.run_dir / INFO_NAME, info_text(info).encode(), self._ops)

    def read_info(self) -> RunInfo:
        """Raises StoreError where run.json is missing, damaged or newer."""
        path = self.run_dir / INFO_NAME
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise StoreError(
                f"{self.run_dir} is no run: {plain_reason(problem)}",
                hint="`llamasweep results list` shows the runs that are there",
            ) from problem
        return info_from_text(text, str(path))

    def write_group(
        self,
        group_id: str,
        attempts: Sequence[Attempt],
        samples: Sequence[Sample] = (),
        readings: Sequence[Reading] = (),
    ) -> None:
        """Write down one group; when this returns it survives a power cut.

        Attempts that are all there already change nothing; other attempts of a known group (a retry) become a part of
        their own. With no readings, those that a killed process had written for this group stay. Raises StoreError on a
        disk that refuses, a value that no column holds, or attempts of which only some are there already.
        """
        _check_name(group_id, "group id")
        written = self._prepared()
        ids = {a.attempt_id for a in attempts}
        if self._is_written(group_id, ids):
            return
        rows = {
            "telemetry": _rows(record_row, readings),
            "samples": _rows(record_row, samples),
            "cells": _rows(to_row, attempts),
        }
        part = self._part_name(group_id)
        keeps_readings = not readings and (table_path(self.run_dir, "telemetry") / part).exists()
        for name in (*_BEFORE_COMMIT, _COMMIT):
            if not (name == "telemetry" and keeps_readings):
                put_rows(table_path(self.run_dir, name), part, rows[name], self._ops)
        written |= ids

    def compact(self) -> list[str]:
        """Turn each table into one file, readable at every moment; returns a sentence per unreadable part.

        With an unreadable part the tables stay folders, so that it stays where it is. What a killed process wrote
        and nobody committed is left out.
        """
        if all(table_path(self.run_dir, name).is_file() for name in TABLES):
            return []
        self._prepared()
        committed = self._committed()
        reads = {name: read_table(self.run_dir, name, only=committed) for name in TABLES}
        unreadable = [text for read in reads.values() for text in read.unreadable]
        if not unreadable:
            # Not `cells` first: while it is a folder its part names say which of the other tables' parts count.
            for name in (*_BEFORE_COMMIT, _COMMIT):
                make_file(self.run_dir, name, reads[name], self._ops)
        return unreadable

    def reopen(self) -> None:
        """Turn each table back into a folder, so that groups can be added. `write_group` does it by itself."""
        self._prepared()

    def attempts(self) -> list[Attempt]:
        """Every attempt, in the order written."""
        return _records(from_row, self.table(_COMMIT), self._file(_COMMIT))

    def samples(self) -> list[Sample]:
        """Repetitions of attempts that are there; those of a group that nobody committed do not count."""
        known = set(self.table(_COMMIT).rows.column("attempt_id").to_pylist())
        read = self.table("samples")
        samples = _records(lambda row: record_from_row(Sample, row), read, self._file("samples"))
        return [s for s in samples if s.attempt_id in known]

    def readings(self) -> list[Reading]:
        """Readings of groups that are there."""
        return self._readings(self._committed())

    def uncommitted_readings(self, group_id: str) -> list[Reading]:
        """What a killed process had written of this group's telemetry before it could commit; usually nothing."""
        names = self._uncommitted(group_id)
        return self._readings(names) if names else []

    def table(self, name: str) -> TableRead:
        """`cells`, `samples` or `telemetry` as an Arrow table, with what could not be read."""
        return read_table(self.run_dir, name)

    def unreadable(self) -> list[str]:
        """A sentence for each part that cannot be read."""
        return [text for name in TABLES for text in self.table(name).unreadable]

    def part_ids(self) -> set[str]:
        """Groups that are written down, whatever form the tables have."""
        return set(self.table(_COMMIT).group_ids)

    def _fill(self, info: RunInfo) -> None:
        shutil.rmtree(self.run_dir, ignore_errors=True)
        self.logs_dir.mkdir(parents=True)
        for name in TABLES:
            make_folder(self.run_dir, name, self._ops)
        self.write_info(info)

    def _prepared(self) -> set[str]:
        """The attempts that are there, with every table a folder that can be written to."""
        is_ready = all(table_path(self.run_dir, name).is_dir() for name in TABLES)
        if self._written is None or not is_ready:
            try:
                for name in TABLES:  # `cells` first, for the reason given in `compact`
                    make_folder(self.run_dir, name, self._ops)
            except OSError as problem:
                raise store_error(self.run_dir, problem) from problem
            self._written = set(self.table(_COMMIT).rows.column("attempt_id").to_pylist())
        return self._written

    def _is_written(self, group_id: str, ids: set[str]) -> bool:
        if not ids:
            return group_id in self.part_ids()
        there = ids & self._prepared()
        if there and there != ids:
            raise StoreError(
                f"group {group_id}: {len(there)} of its {len(ids)} attempts are written already"
            )
        return bool(there)

    def _part_name(self, group_id: str) -> str:
        """The name of an uncommitted try of this group if there is one, else the next number."""
        for name in self._uncommitted(group_id):
            return name
        numbers = [part_number(p) for name in TABLES for p in part_files(self.run_dir, name)]
        return f"{max([*numbers, _FIRST_NUMBER - 1]) + 1:06d}-{group_id}.parquet"

    def _committed(self) -> set[str]:
        """Part names that count in every table; what was compacted had been committed before."""
        return {path.name for path in part_files(self.run_dir, _COMMIT)} | {COMPACTED_PART}

    def _uncommitted(self, group_id: str) -> list[str]:
        paths = [p for name in _BEFORE_COMMIT for p in part_files(self.run_dir, name)]
        return sorted({p.name for p in paths if part_group(p) == group_id} - self._committed())

    def _readings(self, parts: Collection[str]) -> list[Reading]:
        read = read_table(self.run_dir, "telemetry", only=parts)
        return _records(lambda row: record_from_row(Reading, row), read, self._file("telemetry"))

    def _file(self, name: str) -> Path:
        return table_path(self.run_dir, name)


def _records(
    make: Callable[[Mapping[str, Any]], _Record], read: TableRead, path: Path
) -> list[_Record]:
    try:
        return [make(row) for row in plain_rows(read.rows)]
    except (ValueError, TypeError, OverflowError) as problem:
        raise StoreError(f"a row of {path} cannot be understood: {problem}") from problem


def _rows(make: Callable[[Any], Mapping[str, Any]], records: Sequence[Any]) -> list[dict[str, Any]]:
    try:
        return [dict(make(record)) for record in records]
    except (ValueError, TypeError) as problem:
        raise StoreError(f"a row cannot be stored: {problem}") from problem


def _check_name(text: str, what: str) -> None:
    """Such a name becomes a file's; raises StoreError for one that could lead elsewhere."""
    if not _SAFE_NAME.fullmatch(text):
        raise StoreError(f"not a {what} that can name a file: {text!r}")
