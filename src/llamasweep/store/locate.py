"""Where results are: the folder of runs, the run that somebody means, and loading it.

Local folders only. Writes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from llamasweep.errors import StoreError, quoted
from llamasweep.results.against_one import AXIS, NAMES, NEEDED, against_one
from llamasweep.results.columns import TABLES
from llamasweep.results.records import Attempt, RunData, RunInfo
from llamasweep.store.parquet import INFO_NAME, RunStore
from llamasweep.store.reader import part_files, read_table, table_path
from llamasweep.store.schema import united

if TYPE_CHECKING:
    import pandas as pd

RESULTS_VARIABLE = "LLAMASWEEP_RESULTS"
_SLUG_LENGTH = 40
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[a-z0-9-]{1,40}-[0-9a-f]{6}")
_MOST_NAMED = 5
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class UnreadablePartWarning(UserWarning):
    """Some of the results could not be read and are missing from what was loaded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEntry:
    """A run in a list. info: None where run.json cannot be used; problem: why, None if it can."""

    path: Path
    info: RunInfo | None
    problem: str | None = None

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def is_ours(self) -> bool:
        """Whether llamasweep certainly wrote it: other programs call their files run.json too."""
        return self.info is not None or _RUN_ID.fullmatch(self.run_id) is not None

    @property
    def started_at(self) -> datetime | None:
        """As run.json says, else as the run's id says; None where neither does."""
        text = self.info.started_at if self.info is not None else self.run_id
        digits = re.sub(r"[^0-9T]", "", text[:19])
        try:
            return datetime.strptime(digits, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return None


def results_root(option: str | None) -> Path:
    """The folder of runs: the option, else `$LLAMASWEEP_RESULTS`, else `results` here. It need not exist."""
    return Path(option or os.environ.get(RESULTS_VARIABLE) or "results").expanduser()


def new_run_id(sweep_name: str, started: datetime) -> str:
    """UTC start, the sweep's name cut down to a-z, 0-9 and dashes, and six hex digits of both unabridged.

    Raises ValueError for a time without a zone.
    """
    if started.tzinfo is None:
        raise ValueError("the start of a run needs its time zone")
    utc = started.astimezone(UTC)
    text = f"{utc.isoformat()} {sweep_name}".encode("utf-8", "surrogatepass")
    return f"{utc:%Y%m%dT%H%M%SZ}-{_slug(sweep_name)}-{hashlib.sha256(text).hexdigest()[:6]}"


def list_runs(root: Path) -> list[RunEntry]:
    """Every run under the folder, newest first; one with a damaged run.json is listed with its problem."""
    if not root.is_dir():
        return []
    entries = [run_entry(path) for path in root.iterdir() if is_run(path)]
    return sorted(entries, key=lambda e: (e.started_at or _LONG_AGO, e.run_id), reverse=True)


def find_run(root: Path, text: str | None = None) -> Path:
    """The run that `text` means: a path, a run id, its unique beginning, or a sweep's name (its newest run).

    None means the newest run of all. Raises StoreError where there is none, or several.
    """
    if text is not None and is_run(Path(text)):
        return Path(text)
    entries = list_runs(root)
    if text is None:
        matches = entries[:1]
    else:
        matches = [e for e in entries if e.run_id == text]
        matches = matches or [e for e in entries if e.info and e.info.sweep_name == text][:1]
        matches = matches or [e for e in entries if text and e.run_id.startswith(text)]
    if len(matches) == 1:
        return matches[0].path
    raise _not_one(root, text, matches, entries)


def is_run(path: Path) -> bool:
    """Whether the folder holds a run: its run.json or one of its tables."""
    if path.name.startswith("."):
        return False
    return (path / INFO_NAME).is_file() or any(table_path(path, name).exists() for name in TABLES)


def load_run(path: Path) -> RunData:
    """A whole run. What could not be read is warned of (`UnreadablePartWarning`) and leads `info.notes`.

    Raises StoreError, also where every row of a run that measured something is lost, and where its rows are another run's.
    """
    store = RunStore.open(path)
    return dataclasses.replace(
        _rows_of(store, path), samples=tuple(store.samples()), readings=tuple(store.readings())
    )


def load_rows(path: Path) -> RunData:
    """A run with its attempts alone: no samples and no readings. Warns and raises as `load_run`."""
    return _rows_of(RunStore.open(path), path)


def _rows_of(store: RunStore, path: Path) -> RunData:
    info = store.read_info()
    attempts = tuple(store.attempts())
    unreadable = store.unreadable()
    if not attempts:
        _check_nothing_lost(store, info)
    _check_own(path, info, attempts)
    for text in unreadable:
        warnings.warn(f"{path.name}: {text}", UnreadablePartWarning, stacklevel=3)
    return RunData(
        info=dataclasses.replace(info, notes=[*unreadable, *info.notes]),
        attempts=attempts,
        samples=(),
    )


def _check_nothing_lost(store: RunStore, info: RunInfo) -> None:
    """A run without a row is no run in which nothing was tried where its table is damaged or gone. Raises StoreError."""
    path = table_path(store.run_dir, "cells")
    hint = f"restore {path.name} from a copy, or measure the sweep again"
    if unreadable := store.table("cells").unreadable:
        raise StoreError(f"no row of {store.run_dir} is left: {'; '.join(unreadable)}", hint=hint)
    if not part_files(store.run_dir, "cells") and info.groups:
        raise StoreError(
            f"{path} is missing or empty, and {INFO_NAME} tells of {len(info.groups)} measured groups",
            hint=hint,
        )


def _check_own(path: Path, info: RunInfo, attempts: Sequence[Attempt]) -> None:
    """Raises StoreError where rows name another run than run.json does."""
    others = sorted({a.run_id for a in attempts} - {info.run_id})
    if others:
        named = ", ".join(quoted(one) for one in others[:_MOST_NAMED])
        raise StoreError(
            f"{path / INFO_NAME} is of the run {quoted(info.run_id)}, and cells.parquet beside it holds rows of {named}",
            hint="files of several runs are mixed: put each run's files in a folder of their own",
        )


def load_frame(path: str | Path) -> pd.DataFrame:
    """All attempts of a run, or of every run in a folder, as one DataFrame with every column of every version.

    Whole numbers and switches keep their type where values are missing (Int64, boolean). What could not be read is
    warned of (`UnreadablePartWarning`) and listed in `.attrs["unreadable"]`. The last columns are those of
    `results.against_one`, which are made here. Raises StoreError for a newer schema and
    where there is nothing to read.
    """
    run_dirs = _run_dirs(Path(path).expanduser())
    reads = [read_table(run_dir, "cells") for run_dir in run_dirs]
    unreadable = [
        f"{run_dir.name}: {text}"
        for run_dir, read in zip(run_dirs, reads, strict=True)
        for text in read.unreadable
    ]
    for text in unreadable:
        warnings.warn(text, UnreadablePartWarning, stacklevel=3)
    table = united("cells", [read.rows for read in reads])
    frame = _with_streams(_frame(table), table)
    frame.attrs["unreadable"] = unreadable
    return frame


def _frame(table: pa.Table) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (slow to import, and only this needs it)

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame


def _with_streams(frame: pd.DataFrame, table: pa.Table) -> pd.DataFrame:
    """With what several streams are against one."""
    import pandas as pd  # noqa: PLC0415  (slow to import, and only this needs it)

    has_several = any((n or 1) > 1 for n in table[AXIS].unique().to_pylist())
    names = [name for name in table.column_names if name in NEEDED]
    made = against_one(table.select(names).to_pylist()) if has_several else []
    columns = {
        name: pd.Series(
            [getattr(one, name) for one in made] or None,
            index=frame.index,
            dtype="object" if name.endswith("_reason") else "float64",
        )
        for name in NAMES
    }
    return frame.assign(**columns)


def _run_dirs(path: Path) -> list[Path]:
    if is_run(path):
        return [path]
    run_dirs = sorted(p for p in path.iterdir() if is_run(p)) if path.is_dir() else []
    if not run_dirs:
        raise StoreError(
            f"no results in {path}",
            hint="give a run's folder or the folder of runs, `results` unless you chose another",
        )
    return run_dirs


def run_entry(path: Path) -> RunEntry:
    """A folder that holds a run, with its problem where run.json cannot be used."""
    try:
        return RunEntry(path=path, info=RunStore(path).read_info())
    except StoreError as problem:
        return RunEntry(path=path, info=None, problem=problem.message)


def _not_one(
    root: Path, text: str | None, matches: Sequence[RunEntry], entries: Sequence[RunEntry]
) -> StoreError:
    if not entries:
        return StoreError(f"no runs in {root}", hint="measure something first: llamasweep run")
    named = ", ".join(e.run_id for e in (matches or entries)[:_MOST_NAMED])
    if matches:
        return StoreError(f"{text!r} fits {len(matches)} runs: {named}", hint="write more of it")
    return StoreError(f"no run {text!r} in {root}", hint=f"the newest are {named}")


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name[: 10 * _SLUG_LENGTH].lower())
    dashed = re.sub(r"[^a-z0-9]+", "-", plain.encode("ascii", "ignore").decode())
    return dashed.strip("-")[:_SLUG_LENGTH].strip("-") or "sweep"
