"""RunStore: what is written is read back, in both forms, through pandas too; and the order of system calls."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.unit.store.records import RUN_ID, attempt, group, reading, run_info

from llamasweep.errors import StoreError
from llamasweep.results.columns import TABLES
from llamasweep.store.files import FileOps
from llamasweep.store.parquet import RunStore
from llamasweep.store.reader import table_path


class RecordedOps(FileOps):
    """Does the real thing and writes down what was done to which name."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._names: dict[int, str] = {}

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self._names[descriptor] = path.name
        self.calls.append(f"create {path.name}")
        return descriptor

    def write(self, descriptor: int, data: memoryview) -> int:
        self.calls.append(f"write {self._names[descriptor]}")
        return super().write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        self.calls.append(f"fsync {self._names[descriptor]}")
        super().fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self.calls.append(f"rename {source.name} {target.name}")
        super().rename(source, target)

    def sync_folder(self, folder: Path) -> None:
        self.calls.append(f"sync {folder.name}")
        super().sync_folder(folder)

    def exchange(self, left: Path, right: Path) -> bool:
        self.calls.append(f"exchange {left.name} {right.name}")
        return super().exchange(left, right)


class RenamingOps(FileOps):
    """A system that cannot exchange two names in one step."""

    def exchange(self, left: Path, right: Path) -> bool:  # noqa: ARG002
        return False


class FullDisk(FileOps):
    """No room from the nth write on, and that one is cut short."""

    def __init__(self, n_writes: int) -> None:
        self.n_left = n_writes

    def write(self, descriptor: int, data: memoryview) -> int:
        self.n_left -= 1
        if self.n_left == 0:
            return super().write(descriptor, data[: len(data) // 2])
        if self.n_left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(descriptor, data)


def _store(tmp_path: Path, ops: FileOps | None = None, n_groups: int = 2) -> RunStore:
    store = RunStore.create(tmp_path, run_info(), ops=ops)
    for number in range(n_groups):
        store.write_group(*group(f"g{number}"))
    return store


def _visible(run_dir: Path) -> set[str]:
    return {str(p.relative_to(run_dir)) for p in run_dir.rglob("*") if p.is_file()}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    _store(tmp_path)
    store = RunStore.open(tmp_path / RUN_ID)

    expected = [group("g0"), group("g1")]
    assert store.attempts() == [a for g in expected for a in g[1]]
    assert store.samples() == [s for g in expected for s in g[2]]
    assert store.readings() == [r for g in expected for r in g[3]]
    assert store.part_ids() == {"g0", "g1"}
    assert store.read_info() == run_info()


def test_each_part_is_written_synced_renamed_and_its_folder_synced_and_cells_come_last(
    tmp_path: Path,
) -> None:
    ops = RecordedOps()
    store = RunStore.create(tmp_path, run_info(), ops=ops)
    ops.calls.clear()

    store.write_group(*group("g1"))

    part, draft = "000002-g1.parquet", ".000002-g1.parquet.new"
    assert ops.calls == [
        call
        for table in ("telemetry", "samples", "cells")
        for call in (
            f"create {draft}",
            f"write {draft}",
            f"fsync {draft}",
            f"rename {draft} {part}",
            f"sync {table}.parquet",
        )
    ]


def test_run_json_is_replaced_whole(tmp_path: Path) -> None:
    ops = RecordedOps()
    store = RunStore.create(tmp_path, run_info(), ops=ops)
    ops.calls.clear()

    store.write_info(run_info(finished_at="2026-11-29T15:00:00+00:00"))

    draft = ".run.json.new"
    assert ops.calls == [
        f"create {draft}",
        f"write {draft}",
        f"fsync {draft}",
        f"rename {draft} run.json",
        f"sync {RUN_ID}",
    ]
    assert store.read_info().finished_at == "2026-11-29T15:00:00+00:00"


@pytest.mark.parametrize("ops", [FileOps, RenamingOps])
def test_compacted_and_reopened_tables_hold_the_same(
    tmp_path: Path, ops: Callable[[], FileOps]
) -> None:
    store = _store(tmp_path, ops())
    before = store.attempts(), store.samples(), store.readings(), store.part_ids()

    assert store.compact() == []
    assert all(table_path(store.run_dir, name).is_file() for name in TABLES)
    assert (store.attempts(), store.samples(), store.readings(), store.part_ids()) == before

    store.reopen()
    assert all(table_path(store.run_dir, name).is_dir() for name in TABLES)
    assert (store.attempts(), store.samples(), store.readings(), store.part_ids()) == before


def test_a_finished_run_takes_more_groups_and_is_compacted_again(tmp_path: Path) -> None:
    _store(tmp_path).compact()
    store = RunStore.open(tmp_path / RUN_ID)

    store.write_group(*group("g7"))
    store.compact()

    assert [a.attempt_id for a in store.attempts()] == [
        f"{g}-{i}" for g in ("g0", "g1", "g7") for i in (0, 1)
    ]
    assert store.part_ids() == {"g0", "g1", "g7"}
    assert {p.name for p in store.run_dir.iterdir()} == {
        "run.json", "logs", "cells.parquet", "samples.parquet", "telemetry.parquet",
    }  # fmt: skip


def test_a_table_changes_form_by_one_exchange_of_names(tmp_path: Path) -> None:
    ops = RecordedOps()
    store = _store(tmp_path, ops)
    ops.calls.clear()

    store.compact()

    swaps = [c for c in ops.calls if c.startswith(("exchange", "rename"))]
    assert swaps == [
        call
        for name in ("telemetry", "samples", "cells")
        for call in (
            f"rename ..{name}.parquet.new.new .{name}.parquet.new",
            f"exchange .{name}.parquet.new {name}.parquet",
        )
    ]


@pytest.mark.parametrize("compacted", [False, True])
def test_pandas_and_pyarrow_read_both_forms(tmp_path: Path, compacted: bool) -> None:
    store = _store(tmp_path)
    if compacted:
        store.compact()

    for name, n_rows in (("cells", 4), ("samples", 8), ("telemetry", 2)):
        path = table_path(store.run_dir, name)
        columns = [c.name for c in TABLES[name]]
        assert list(pd.read_parquet(path).columns) == columns
        assert len(pd.read_parquet(path)) == n_rows
        assert ds.dataset(path).to_table().shape == (n_rows, len(columns))


def test_an_empty_run_is_readable_with_every_column(tmp_path: Path) -> None:
    store = _store(tmp_path, n_groups=0)

    frame = pd.read_parquet(table_path(store.run_dir, "cells"))

    assert frame.shape == (0, len(TABLES["cells"]))
    assert store.attempts() == []


def test_files_say_types_units_and_version(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.compact()

    file = pq.ParquetFile(table_path(store.run_dir, "cells"))

    schema = file.schema_arrow
    assert schema.metadata[b"llamasweep.schema_version"] == b"1"
    assert b'"ram_peak_process_bytes": "bytes"' in schema.metadata[b"llamasweep.units"]
    assert schema.field("median_tps").metadata[b"unit"] == b"tps"
    assert schema.field("started_at").type == pa.timestamp("us", tz="UTC")
    assert schema.field("status").type == pa.dictionary(pa.int32(), pa.string())
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_an_unreadable_part_is_reported_and_left_alone_and_the_rest_loads(tmp_path: Path) -> None:
    store = _store(tmp_path)
    broken = table_path(store.run_dir, "cells") / "000002-g0.parquet"
    broken.write_bytes(broken.read_bytes()[:-7])

    unreadable = store.compact()

    assert [a.group_id for a in store.attempts()] == ["g1", "g1"]
    assert [s.attempt_id[:2] for s in store.samples()] == ["g1"] * 4
    assert len(unreadable) == 1
    assert "cells.parquet/000002-g0.parquet cannot be read" in unreadable[0]
    assert broken.exists()
    assert table_path(store.run_dir, "cells").is_dir()


def test_a_full_disk_is_a_store_error_with_a_hint_and_shows_nothing_half_written(
    tmp_path: Path,
) -> None:
    store = _store(tmp_path, n_groups=1)
    before = _visible(store.run_dir)
    full = RunStore.open(store.run_dir, ops=FullDisk(1))

    with pytest.raises(StoreError, match="No space left") as caught:
        full.write_group(*group("g9"))

    assert caught.value.hint is not None
    assert "free some space" in caught.value.hint
    assert _visible(store.run_dir) == before
    assert [a.group_id for a in store.attempts()] == ["g0", "g0"]


def test_a_full_disk_while_compacting_leaves_the_folders(tmp_path: Path) -> None:
    store = _store(tmp_path)
    full = RunStore.open(store.run_dir, ops=FullDisk(2))

    with pytest.raises(StoreError):
        full.compact()

    assert len(store.attempts()) == 4
    assert len(store.samples()) == 8


def test_a_group_killed_before_its_commit_does_not_count_and_is_overwritten(tmp_path: Path) -> None:
    store = _store(tmp_path)
    (table_path(store.run_dir, "cells") / "000003-g1.parquet").unlink()

    assert store.part_ids() == {"g0"}
    assert len(store.samples()) == 4
    assert [r.device for r in store.readings()] == ["g0"]
    assert [r.device for r in store.uncommitted_readings("g1")] == ["g1"]

    RunStore.open(store.run_dir).write_group("g1", *group("g1")[1:3], [reading(device="again")])

    assert len(store.attempts()) == 4
    assert len(store.samples()) == 8
    assert [r.device for r in store.readings()] == ["g0", "again"]


def test_readings_of_a_killed_group_stay_when_it_is_completed_without_any(tmp_path: Path) -> None:
    store = _store(tmp_path)
    (table_path(store.run_dir, "cells") / "000003-g1.parquet").unlink()

    RunStore.open(store.run_dir).write_group(*group("g1")[:3], [])

    assert [r.device for r in store.readings()] == ["g0", "g1"]


def test_uncommitted_rows_are_left_out_when_compacting(tmp_path: Path) -> None:
    store = _store(tmp_path)
    (table_path(store.run_dir, "cells") / "000003-g1.parquet").unlink()

    store.compact()

    assert len(pd.read_parquet(table_path(store.run_dir, "samples"))) == 4
    assert len(pd.read_parquet(table_path(store.run_dir, "telemetry"))) == 1


def test_the_same_group_again_changes_nothing(tmp_path: Path) -> None:
    store = _store(tmp_path)
    before = _visible(store.run_dir)

    store.write_group(*group("g1"))
    RunStore.open(store.run_dir).write_group(*group("g1"))

    assert _visible(store.run_dir) == before


def test_a_retry_of_a_group_is_a_part_of_its_own(tmp_path: Path) -> None:
    store = _store(tmp_path)

    store.write_group("g1", [attempt("g1", 5, attempt_index=1)])

    assert len(store.attempts()) == 5
    assert store.part_ids() == {"g0", "g1"}


def test_a_group_of_which_a_part_is_there_already_is_refused(tmp_path: Path) -> None:
    store = _store(tmp_path)

    with pytest.raises(StoreError, match="1 of its 2 attempts"):
        store.write_group("g1", [attempt("g1", 0), attempt("g1", 9)])


@pytest.mark.parametrize("name", ["../g", "a/b", "", ".hidden", "_x", "a\nb", "x" * 101])
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    store = _store(tmp_path, n_groups=0)

    with pytest.raises(StoreError):
        store.write_group(name, [attempt()])
    with pytest.raises(StoreError):
        RunStore.create(tmp_path, run_info(run_id=name))


def test_a_value_that_no_column_holds_is_a_store_error(tmp_path: Path) -> None:
    store = _store(tmp_path, n_groups=0)

    with pytest.raises(StoreError, match="n_prompt"):
        store.write_group("g1", [attempt(n_prompt=2**70)])

    assert store.attempts() == []


def test_a_run_is_never_created_over_another(tmp_path: Path) -> None:
    _store(tmp_path)

    with pytest.raises(StoreError, match="there already"):
        RunStore.create(tmp_path, run_info())

    assert len(RunStore.open(tmp_path / RUN_ID).attempts()) == 4


def test_columns_of_another_version_are_kept_when_compacting(tmp_path: Path) -> None:
    store = _store(tmp_path)
    part = table_path(store.run_dir, "cells") / "000002-g0.parquet"
    table = pq.read_table(part)
    changed = table.append_column("later_tps", pa.array([1.0, 2.0])).drop_columns(["mad_tps"])
    pq.write_table(changed, part)

    store.compact()

    frame = pd.read_parquet(table_path(store.run_dir, "cells"))
    assert frame["later_tps"].tolist()[:2] == [1.0, 2.0]
    assert frame["later_tps"].isna().tolist() == [False, False, True, True]
    assert "mad_tps" in frame


def test_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    store = _store(tmp_path)
    part = table_path(store.run_dir, "cells") / "000002-g0.parquet"
    table = pq.read_table(part)
    metadata = {**table.schema.metadata, b"llamasweep.schema_version": b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), part)

    with pytest.raises(StoreError, match="schema version 99") as caught:
        store.attempts()
    assert caught.value.hint == "upgrade llamasweep to read it"


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "damaged"), ("[]", "damaged"), ('{"schema_version": 1}', "incomplete")],
)
def test_a_damaged_run_json_is_a_store_error(tmp_path: Path, text: str, words: str) -> None:
    store = _store(tmp_path, n_groups=0)
    (store.run_dir / "run.json").write_text(text)

    with pytest.raises(StoreError, match=words):
        RunStore.open(store.run_dir)


def test_run_json_is_plain_json_whatever_the_facts_hold(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"temperature_c": float("nan"), "name": "a\udcff", "set": {1}}
    store = RunStore.create(tmp_path, run_info(machine=odd))

    machine = store.read_info().machine

    assert machine["temperature_c"] is None
    assert machine["set"] == [1]
