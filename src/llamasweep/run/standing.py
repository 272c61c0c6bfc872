"""How far a run is, read from its folder by another process: what is in Parquet, and what is only in the logs yet."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llamasweep.engines.known import engine_named
from llamasweep.results.records import Attempt
from llamasweep.run.group_log import GroupRecord, log_ids, read_group_log
from llamasweep.run.lock import current_run
from llamasweep.store.parquet import RunStore


def read_standing(run_dir: Path) -> dict[str, Any]:
    """Plain values for people and scripts. Raises StoreError where the folder is no run."""
    store = RunStore.open(run_dir)
    info = store.read_info()
    counts = _counts(store.attempts())
    record = _open_group(store)
    n_in_log = 0
    if record is not None:
        parse_row = engine_named(record.description["common"]["engine"]).parse_row
        n_in_log = sum(parse_row(line) is not None for line in record.stdout_lines)
    return {
        "run_id": info.run_id,
        "sweep": info.sweep_name,
        "started_at": info.started_at,
        "finished_at": info.finished_at,
        "is_running": current_run() == info.run_id,
        "n_cells_planned": info.n_cells_planned,
        "is_open_ended": info.sweep_resolved.get("rounds") == "auto",
        "n_done": sum(n for status, n in counts.items() if status != "unsupported") + n_in_log,
        "counts": counts,
        "current": _current(record),
        "last_sign_at": _last_sign(store.run_dir),
        "problems": store.unreadable(),
    }


def _counts(attempts: Iterable[Attempt]) -> dict[str, int]:
    """Status -> questions; of one that was tried again the last try counts."""
    last: dict[tuple[str, str | None, int], Attempt] = {}
    for a in attempts:
        key = (a.cell_id, a.build_hash, a.round_index)
        if key not in last or a.attempt_index >= last[key].attempt_index:
            last[key] = a
    return dict(Counter(a.status for a in last.values()))


def _open_group(store: RunStore) -> GroupRecord | None:
    """The group whose log is there and whose rows are not in Parquet yet."""
    ids = log_ids(store.logs_dir)
    if not ids or ids[-1] in store.part_ids():
        return None
    return read_group_log(store.logs_dir, ids[-1])


def _current(record: GroupRecord | None) -> str | None:
    if record is None:
        return None
    common = record.description["common"]
    last = record.events[-1].event if record.events else None
    cells = record.description["cells"]
    where = ""
    if last is not None and last.cell_index is not None:
        where = (
            f", cell {min(last.cell_index + 1, len(cells))} of {len(cells)}: {last.step or 'row'}"
        )
    return f"{common['model_label']} on {common['build_label']}{where}"


def _last_sign(run_dir: Path) -> str | None:
    """When anything in the folder was written last, UTC."""
    times = []
    for path in run_dir.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # the runner renames meanwhile
            if path.is_file():
                times.append(path.stat().st_mtime)
    return (
        datetime.fromtimestamp(max(times), tz=UTC).isoformat(timespec="seconds") if times else None
    )
