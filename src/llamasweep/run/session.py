"""One run's folder while it is measured: found again or made new, completed from its logs, and what it already holds.

A question is done when a row answers it, keyed by (cell, build content, round); a failed one counts as done too,
unless it is to be tried again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llamasweep.errors import StoreError
from llamasweep.results.records import FAILED_STATUSES, Attempt, RunInfo
from llamasweep.run.assemble import Assembled, assemble
from llamasweep.run.group_log import GroupRecord, log_ids, read_group_log, tidy
from llamasweep.store.locate import list_runs, new_run_id
from llamasweep.store.parquet import RunStore
from llamasweep.sweep.subjects import Build

DoneKey = tuple[str, str | None, int]
"""(cell_id, build, round_index); build: its content hash, with its name where one binary is measured under several."""


@dataclass(slots=True)
class Session:
    """A run that is being measured. done: key -> (status, attempts so far). longest_s: cell_id -> longest time it took.

    shared_hashes: content hashes that several builds of this run have, because one is measured against itself.
    """

    store: RunStore
    info: RunInfo
    is_resumed: bool
    done: dict[DoneKey, tuple[str, int]] = field(default_factory=dict)
    longest_s: dict[str, float] = field(default_factory=dict)
    n_groups_logged: int = 0
    shared_hashes: frozenset[str] = frozenset()

    def key(self, cell: str, build: Build, round_index: int) -> DoneKey:
        """The key of a question. cell: its id."""
        return self._key(cell, build.content_hash, build.label, round_index)

    def _key(
        self, cell: str, build_hash: str | None, label: str | None, round_index: int
    ) -> DoneKey:
        is_shared = build_hash in self.shared_hashes
        return (cell, f"{build_hash} {label}" if is_shared else build_hash, round_index)

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Take note of rows that are there now."""
        for a in attempts:
            key = self._key(a.cell_id, a.build_hash, a.build_label, a.round_index)
            if a.attempt_index + 1 >= self.n_tries(key):
                self.done[key] = (a.status, a.attempt_index + 1)
            if a.status == "ok" and a.started_at is not None and a.finished_at is not None:
                seconds = (a.finished_at - a.started_at).total_seconds()
                self.longest_s[a.cell_id] = max(seconds, self.longest_s.get(a.cell_id, 0.0))

    def is_done(self, key: DoneKey, *, retry_failed: bool) -> bool:
        """Whether this question needs no more measuring."""
        status = self.done.get(key, (None, 0))[0]
        return status is not None and not (retry_failed and status in FAILED_STATUSES)

    def n_tries(self, key: DoneKey) -> int:
        return self.done.get(key, ("", 0))[1]

    def next_log_id(self, group_id: str) -> str:
        """A stem that sorts in the order of starting and was never used."""
        self.n_groups_logged += 1
        return f"{self.n_groups_logged:05d}-{group_id}"

    def commit(self, record: GroupRecord, found: Assembled) -> None:
        """Rows of one group into Parquet, then its log is tidied up."""
        self.store.write_group(record.log_id, found.attempts, found.samples, record.readings)
        tidy(self.store.logs_dir, record.log_id)

    def update(self, **changes: Any) -> None:
        """Change run.json."""
        self.info = replace(self.info, **changes)
        self.store.write_info(self.info)

    def note(self, sentence: str) -> None:
        if sentence not in self.info.notes:
            self.update(notes=[*self.info.notes, sentence])

    def add_group(self, entry: dict[str, Any]) -> None:
        """Remember how one engine process was called and how it went; written with the next update of run.json."""
        self.info = replace(self.info, groups=[*self.info.groups, entry])


def open_session(
    root: Path, *, sweep_name: str, fresh: bool, first_info: Mapping[str, Any]
) -> tuple[Session, list[str]]:
    """The newest run of this sweep, completed from its logs, or a new one; and sentences on what was noticed.

    first_info: fields of RunInfo for a new run, compared with those of a resumed one. Raises StoreError.
    """
    newest, notes = (None, []) if fresh else _newest_run(root, sweep_name)
    if newest is None:
        session = _new_session(root, sweep_name, first_info)
        session.shared_hashes = _shared_hashes(first_info)
        return session, notes
    store = RunStore.open(newest)
    info = store.read_info()
    session = Session(store=store, info=info, is_resumed=True)
    session.shared_hashes = _shared_hashes(first_info)
    notes += _changes(info, first_info)
    session.n_groups_logged = _last_log_number({*log_ids(store.logs_dir), *store.part_ids()})
    session.learn(store.attempts())
    notes += _complete_from_logs(session)
    session.update(**{k: v for k, v in first_info.items() if k in _REFRESHED}, finished_at=None)
    return session, notes


_REFRESHED = ("sweep_resolved", "machine", "builds", "models", "n_cells_planned", "versions")


def _shared_hashes(info: Mapping[str, Any]) -> frozenset[str]:
    hashes = Counter(build.get("content_hash") for build in info["builds"])
    return frozenset(value for value, n in hashes.items() if n > 1 and value is not None)


def _last_log_number(ids: Iterable[str]) -> int:
    """The highest number that a log or its rows carry, so that none is used again even where logs were deleted."""
    numbers = (re.match(r"[0-9]{5,9}(?=-)", name) for name in ids)
    return max((int(number[0]) for number in numbers if number), default=0)


def _newest_run(root: Path, sweep_name: str) -> tuple[Path | None, list[str]]:
    """The run to continue, and what is said of newer ones whose run.json cannot be used."""
    notes: list[str] = []
    name_part = _name_part(new_run_id(sweep_name, datetime.now(tz=UTC)))
    for entry in list_runs(root):  # newest first
        if entry.info is not None and entry.info.sweep_name == sweep_name:
            return entry.path, notes
        if entry.info is None and entry.is_ours and _name_part(entry.run_id) == name_part:
            notes.append(f"the run {entry.run_id} is not continued: {entry.problem}")
    return None, notes


def _name_part(run_id: str) -> str:
    """What a run's id says of the sweep's name: without the time before it and the digits behind it."""
    return run_id.partition("-")[2].rpartition("-")[0]


def _new_session(root: Path, sweep_name: str, first_info: Mapping[str, Any]) -> Session:
    started = datetime.now(tz=UTC)
    info = RunInfo(
        run_id=new_run_id(sweep_name, started),
        sweep_name=sweep_name,
        started_at=started.isoformat(),
        finished_at=None,
        groups=[],
        notes=[],
        **first_info,
    )
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(
            f"cannot write results to {root}: {problem.strerror}",
            hint="Choose another folder with --results.",
        ) from problem
    return Session(store=RunStore.create(root, info), info=info, is_resumed=False)


def _complete_from_logs(session: Session) -> list[str]:
    """Groups that a killed runner logged but did not write: their finished rows become a part now."""
    written = session.store.part_ids()
    notes = []
    for log_id in log_ids(session.store.logs_dir):
        if log_id in written:
            tidy(session.store.logs_dir, log_id)  # for a kill between the two
            continue
        record = read_group_log(session.store.logs_dir, log_id)
        try:
            found = None if record is None else assemble(record)
        except (AttributeError, KeyError, TypeError, ValueError):
            notes.append(f"the log of {log_id} cannot be understood; its cells are measured again")
            continue
        if record is None or found is None or not found.attempts:
            continue
        session.commit(record, found)
        session.learn(found.attempts)
        notes.append(
            f"{len(found.attempts)} rows of {log_id} were completed from its log after a kill"
        )
    return notes


def _changes(info: RunInfo, now: Mapping[str, Any]) -> list[str]:
    """What differs from when the run began, in sentences."""
    notes = []
    if _comparable(info.sweep_resolved) != _comparable(now["sweep_resolved"]):
        notes.append(
            "the sweep file has changed since this run began; cells that it still names are kept"
        )
    for what, key in (("build", "builds"), ("model", "models")):
        before = {item.get("label"): item.get("content_hash") for item in getattr(info, key)}
        for item in now[key]:
            if item["label"] in before and before[item["label"]] != item.get("content_hash"):
                notes.append(
                    f"the {what} {item['label']!r} is another file than before; its cells are measured anew"
                )
    if info.machine.get("fingerprint") != now["machine"].get("fingerprint"):
        notes.append(
            "this machine differs from the one on which the run began; rows carry their own fingerprint"
        )
    return notes


def _comparable(resolved: Mapping[str, Any]) -> dict[str, Any]:
    return {
        k: v for k, v in resolved.items() if k not in {"file", "max_time_s", "stop_at", "on_finish"}
    }
