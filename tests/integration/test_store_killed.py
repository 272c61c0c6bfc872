"""A writer that dies: at every system call in turn, and for real by SIGKILL; nothing is lost, nothing doubled."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
from tests.unit.store.records import group, run_info

from llamasweep.store.files import FileOps
from llamasweep.store.parquet import RunStore

_ROOT = Path(__file__).parents[2]
_N_GROUPS = 12
_WRITER = """
import sys
from pathlib import Path
from tests.unit.store.records import group
from llamasweep.store.files import FileOps
from llamasweep.store.parquet import RunStore

class Telling(FileOps):
    def create(self, path): print("create", flush=True); return super().create(path)
    def fsync(self, descriptor): print("fsync", flush=True)
    def rename(self, source, target): print("rename", flush=True); super().rename(source, target)
    def exchange(self, left, right): print("exchange", flush=True); return super().exchange(left, right)
    def sync_folder(self, folder): print("synced", flush=True)

store = RunStore.open(Path(sys.argv[1]), ops=Telling())
done = store.part_ids()
for number in range(int(sys.argv[2])):
    if f"g{number}" not in done:
        store.write_group(*group(f"g{number}"))
    if number % 5 == 4:
        store.compact()
store.compact()
"""


class _Killed(BaseException):
    """Stands for SIGKILL: no handler of errors sees it."""


class _Unsynced(FileOps):
    """Leaves out the slow calls, whose effect no test can see."""

    def fsync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


class _KilledAt(_Unsynced):
    """Dies before the nth system call, counted over all kinds."""

    def __init__(self, n: int, *, can_exchange: bool) -> None:
        self.n_left = n
        self._can_exchange = can_exchange

    def _step(self) -> None:
        self.n_left -= 1
        if self.n_left < 0:
            raise _Killed

    def create(self, path: Path) -> int:
        self._step()
        return super().create(path)

    def write(self, descriptor: int, data: memoryview) -> int:
        self._step()
        return super().write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        self._step()
        super().fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def sync_folder(self, folder: Path) -> None:
        self._step()
        super().sync_folder(folder)

    def exchange(self, left: Path, right: Path) -> bool:
        self._step()
        return super().exchange(left, right) if self._can_exchange else False

    def remove_folder(self, folder: Path) -> None:
        self._step()
        super().remove_folder(folder)


def _one_group(root: Path) -> Path:
    store = RunStore.create(root, run_info(), ops=_Unsynced())
    store.write_group(*group("g0"))
    return store.run_dir


def _whole_life(run_dir: Path, ops: FileOps) -> None:
    """One more group, the run finished, taken up again with another group, finished again."""
    store = RunStore.open(run_dir, ops=ops)
    store.write_group(*group("g1"))
    store.compact()
    store.write_group(*group("g2"))
    store.compact()


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 9])
def test_killed_before_any_system_call_nothing_is_lost_or_doubled(
    tmp_path: Path, can_exchange: bool, step: int
) -> None:
    n_calls = 0
    while True:
        root = tmp_path / str(n_calls)
        run_dir = _one_group(root)
        ops = _KilledAt(n_calls, can_exchange=can_exchange)
        killed = False
        try:
            _whole_life(run_dir, ops)
        except _Killed:
            killed = True

        reader = RunStore.open(run_dir)
        ids = [a.attempt_id for a in reader.attempts()]
        assert len(ids) == len(set(ids))
        assert {"g0-0", "g0-1"} <= set(ids)
        assert len(reader.samples()) == 2 * len(ids)
        assert len(reader.readings()) >= len(reader.part_ids())
        if can_exchange:
            assert len(pd.read_parquet(run_dir / "cells.parquet")) == len(ids)

        _whole_life(run_dir, _Unsynced())
        assert sorted(a.attempt_id for a in reader.attempts()) == [
            f"g{g}-{i}" for g in range(3) for i in range(2)
        ]
        assert len(reader.samples()) == 12
        assert sorted(r.device for r in reader.readings()) == ["g0", "g1", "g2"]
        assert dataclasses.asdict(reader.read_info()) == dataclasses.asdict(run_info())
        if not killed:
            break
        n_calls += step
    assert n_calls > 60


def test_killed_for_real_at_random_moments_every_group_is_there_once(tmp_path: Path) -> None:
    chance = random.Random(20261129)
    run_dir = RunStore.create(tmp_path, run_info()).run_dir
    reader = RunStore.open(run_dir)
    seen: set[str] = set()
    n_kills = 0
    while n_kills < 10:
        lines_to_wait = chance.randrange(1, 40)
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(run_dir), str(_N_GROUPS)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        ) as writer:
            assert writer.stdout is not None
            for _, _ in zip(range(lines_to_wait), writer.stdout, strict=False):
                pass
            n_kills += writer.poll() is None
            writer.kill()

        ids = [a.attempt_id for a in reader.attempts()]
        assert len(ids) == len(set(ids))
        assert seen <= set(ids), "an attempt that was there has gone"
        assert len(reader.samples()) == 2 * len(ids)
        assert len(pd.read_parquet(run_dir / "cells.parquet")) == len(ids)
        assert ds.dataset(run_dir / "cells.parquet").count_rows() == len(ids)
        seen = set(ids)
        if len(reader.part_ids()) == _N_GROUPS:
            run_dir = RunStore.create(tmp_path / str(n_kills), run_info()).run_dir
            reader, seen = RunStore.open(run_dir), set()

    subprocess.run(
        [sys.executable, "-c", _WRITER, str(run_dir), str(_N_GROUPS)],
        check=True,
        cwd=_ROOT,
        stdout=subprocess.DEVNULL,
    )
    assert sorted(a.attempt_id for a in reader.attempts()) == sorted(
        a.attempt_id for n in range(_N_GROUPS) for a in group(f"g{n}")[1]
    )
    assert len(reader.samples()) == 4 * _N_GROUPS
    assert sorted(r.device for r in reader.readings()) == sorted(f"g{n}" for n in range(_N_GROUPS))
