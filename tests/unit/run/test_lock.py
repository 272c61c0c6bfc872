from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from llamasweep.errors import LockedError, StoreError
from llamasweep.file_lock import try_lock
from llamasweep.run import lock as lock_room
from llamasweep.run.lock import SweepLock, current_run, lock_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "sweep.lock"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that would outlive its runner."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield child
    child.kill()
    child.wait()


def content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_lock_lies_in_the_users_cache() -> None:
    with SweepLock("quick"):
        assert lock_path().exists()
        assert current_run() == "quick"
    assert current_run() is None


def test_the_owner_is_written_down_and_wiped_out(path: Path) -> None:
    with SweepLock("quick", path=path) as lock:
        assert content(path) == {"pid": psutil.Process().pid, "run_id": "quick", "engine": None}
        lock.name_run("20261129-quick")
        lock.name_engine(4711, 12.5)
        assert content(path)["run_id"] == "20261129-quick"
        assert content(path)["engine"] == {"pid": 4711, "started_at_s": 12.5}
        lock.name_engine(None, None)
        assert content(path)["engine"] is None
    assert path.read_text() == ""


def test_a_second_sweep_is_refused_with_the_owner_named(path: Path) -> None:
    with SweepLock("first", path=path):
        with pytest.raises(LockedError) as refused, SweepLock("second", path=path):
            pass
        assert f"process {psutil.Process().pid}, run first" in refused.value.message
        assert refused.value.hint
        assert content(path)["run_id"] == "first"  # the refused one left it alone
    with SweepLock("third", path=path):
        assert content(path)["run_id"] == "third"


def test_a_second_process_is_refused_and_a_dead_owner_holds_nobody_up(path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from llamasweep.run.lock import SweepLock\n"
        "lock = SweepLock('other', path=Path(sys.argv[1])); lock.__enter__(); print(os.getpid(), flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        with pytest.raises(LockedError, match=f"process {pid}, run other"):
            SweepLock("mine", path=path).__enter__()
        assert current_run(path) == "other"
        owner.kill()
    assert current_run(path) is None
    with SweepLock("mine", path=path) as lock:
        assert not lock.orphan_ended
        assert content(path)["run_id"] == "mine"


def test_an_orphan_of_a_dead_owner_is_ended(path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    path.parent.mkdir()
    started_at_s = psutil.Process(sleeper.pid).create_time()
    engine = {"pid": sleeper.pid, "started_at_s": started_at_s}
    path.write_text(json.dumps({"pid": 1, "run_id": "dead", "engine": engine}))
    with SweepLock("mine", path=path) as lock:
        assert lock.orphan_ended
    assert not psutil.pid_exists(sleeper.pid)


def test_another_process_with_the_orphans_number_is_left_alone(
    path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path.parent.mkdir()
    started_at_s = psutil.Process(sleeper.pid).create_time() - 3600
    engine = {"pid": sleeper.pid, "started_at_s": started_at_s}
    path.write_text(json.dumps({"pid": 1, "run_id": "dead", "engine": engine}))
    with SweepLock("mine", path=path) as lock:
        assert not lock.orphan_ended
    assert sleeper.poll() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "\x00\x00",
        '{"engine": 3}',
        '{"engine": {"pid": "x", "started_at_s": 1.0}}',
        '{"engine": {"pid": 4711}}',
        '{"engine": {"pid": 4711, "started_at_s": "soon"}}',
        '{"engine": {"pid": 4711, "started_at_s": true}}',
        '{"engine": {"pid": -1, "started_at_s": 1.0}}',
        '{"engine": {"pid": 0, "started_at_s": 1.0}}',
        '{"engine": {"pid": true, "started_at_s": 1.0}}',
        '{"engine": {"pid": 99999999999999999999, "started_at_s": 1.0}}',
    ],
)
def test_a_damaged_lock_holds_nobody_up(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with SweepLock("mine", path=path) as lock:
        assert not lock.orphan_ended
        assert content(path)["run_id"] == "mine"


def test_an_owner_that_has_not_written_yet_is_unknown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_room, "_PATIENCE_S", 0.0)
    with SweepLock("first", path=path):
        path.write_text("")
        with pytest.raises(LockedError, match="process unknown, run unknown"):
            SweepLock("second", path=path).__enter__()
        assert current_run(path) is None


def test_somebody_who_only_looks_is_not_taken_for_a_sweep(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`llamasweep status` holds the lock for a moment while it looks."""
    real, calls = try_lock, []

    def busy_at_first(descriptor: int) -> bool:
        calls.append(1)
        return len(calls) > 2 and real(descriptor)

    monkeypatch.setattr(lock_room, "try_lock", busy_at_first)
    with SweepLock("mine", path=path):
        assert content(path)["run_id"] == "mine"
    assert len(calls) == 3


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="lock"):
        SweepLock("mine", path=tmp_path / "file" / "sweep.lock").__enter__()


def test_no_lock_no_run(tmp_path: Path) -> None:
    assert current_run(tmp_path / "none") is None


def test_a_lock_without_a_name_tells_no_run(path: Path) -> None:
    with SweepLock("mine", path=path):
        path.write_text('{"run_id": 3}')
        assert current_run(path) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
def test_a_full_disk_is_said_before_the_sweep_and_borne_during_it(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="cannot write the lock"), SweepLock("quick", path=path):
        pass
    path.unlink()
    with SweepLock("quick", path=path) as lock, Path("/dev/full").open("w") as full:
        lock._file, kept = full, lock._file
        lock.name_engine(4711, 12.5)
        lock.name_engine(None, None)
        lock._file = kept
    assert path.read_text() == ""
