"""Which runs may go, and removing one: never anything but a run that lies in the folder of runs itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from llamasweep.errors import StoreError
from llamasweep.store.files import store_error
from llamasweep.store.locate import RunEntry, is_run, run_entry


def runs_to_prune(
    entries: Sequence[RunEntry],
    *,
    now: datetime,
    keep: int | None = None,
    older_than: timedelta | None = None,
) -> list[RunEntry]:
    """Runs (newest first, as listed) beyond the newest `keep`, or started before `now - older_than`.

    A run whose start nobody knows is never old. Links, and folders that another program may have written, are left alone.
    """
    own = [e for e in entries if e.is_ours and not e.path.is_symlink()]
    if keep is not None:
        return own[keep:]
    if older_than is None:
        return []
    return [e for e in own if e.started_at is not None and e.started_at < now - older_than]


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below; links count for nothing, and what vanishes meanwhile too."""
    total = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                total += path.stat().st_size
        except OSError:
            continue
    return total


def remove_run(run_dir: Path, root: Path) -> None:
    """Delete a run. It vanishes from the list at once, so that a kill leaves no half of it visible.

    Raises StoreError for anything that is not a run right inside `root`.
    """
    is_inside = run_dir.parent.resolve() == root.resolve() and not run_dir.is_symlink()
    if not is_inside or not is_run(run_dir) or not run_entry(run_dir).is_ours:
        raise StoreError(f"{run_dir} is no run of {root} and was left alone")
    going = run_dir.with_name(f".{run_dir.name}.gone")
    try:
        run_dir.rename(going)
        shutil.rmtree(going)
    except OSError as problem:
        raise store_error(run_dir, problem) from problem
