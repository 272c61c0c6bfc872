"""The disk's rates come from a file that is written, read past the page cache, and gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from llamasweep.machine import disk_reads
from llamasweep.machine.disk_reads import DiskReads, filesystem_of, measure_disk

MIB = 2**20
DISK = "21 1 8:1 / / rw - ext4 /dev/sda1 rw"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few blocks, so that tests are quick."""
    monkeypatch.setattr(disk_reads, "QUICK_SIZE_BYTES", 8 * MIB)
    monkeypatch.setattr(disk_reads, "MIN_FILE_BYTES", 4 * MIB)


def measure(folder: Path, told: list[str] | None = None, mounts: str = DISK) -> DiskReads | None:
    reasons = [] if told is None else told
    return measure_disk(folder, is_quick=True, on_reason=reasons.append, mounts=mounts)


def test_both_rates_are_measured_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"

    reads = measure(folder)

    assert reads is not None
    assert reads.file_bytes == 8 * MIB
    assert reads.sequential_bytes_per_s > 0
    assert reads.random_bytes_per_s > 0
    assert reads.random_latency_s > 0
    assert 1 <= reads.n_random_reads <= 8 * MIB // disk_reads.PAGE_BYTES
    assert reads.filesystem == "ext4"
    assert reads.method
    assert list(folder.iterdir()) == []


def test_a_file_system_without_direct_reads_drops_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_DIRECT", raising=False)

    reads = measure(tmp_path)

    assert reads is not None
    assert "O_DIRECT" not in reads.method


def test_a_folder_in_memory_is_no_disk(tmp_path: Path) -> None:
    told: list[str] = []

    assert measure(tmp_path, told, DISK.replace("ext4", "tmpfs")) is None
    assert told == [f"{tmp_path} lies in memory (tmpfs), not on a disk"]


def test_at_most_a_tenth_of_the_free_room_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    room = SimpleNamespace(f_bavail=50 * MIB, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda _: room)

    reads = measure(tmp_path)
    assert reads is not None
    assert reads.file_bytes == 4 * MIB
    room.f_bavail = 30 * MIB
    assert measure(tmp_path, told) is None
    assert told == [f"less than 40 MiB are free in {tmp_path}"]


def test_a_folder_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "file").write_text("x")

    assert measure(tmp_path / "file", told) is None
    assert told[0].startswith(f"the disk under {tmp_path / 'file'} could not be measured: ")


def test_the_file_is_removed_when_reading_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> float:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk_reads, "_sequential", broken)
    told: list[str] = []

    assert measure(tmp_path, told) is None
    assert told[0].endswith("could not be measured: Input/output error")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_trial_left_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / ".llamasweep-disk-trial").write_bytes(b"left")

    assert measure(tmp_path) is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_a_link_in_the_way_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / ".llamasweep-disk-trial").symlink_to(victim)

    assert measure(folder) is not None
    assert victim.read_text() == "precious"


def test_a_rate_beyond_any_disk_is_doubted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_reads, "_sequential", lambda *_: 40e9)

    reads = measure(tmp_path)

    assert reads is not None
    assert "it probably came from a cache" in reads.warnings[0]


def test_the_file_system_is_that_of_the_longest_mount_point() -> None:
    mounts = "\n".join(
        [
            DISK,
            "30 21 0:5 / /data rw - xfs /dev/sdb rw",
            "31 21 0:6 / /data/models rw shared:1 - btrfs /dev/sdc rw",
            "32 21 0:7 / /data/a\\040b rw - zfs pool rw",
            "33 21 0:8 / /over rw - ext4 /dev/sdd rw",
            "34 33 0:9 / /over rw - overlay overlay rw",
            "broken",
            "1 2 3 - ",
        ]
    )

    assert filesystem_of(Path("/home"), mounts) == "ext4"
    assert filesystem_of(Path("/database"), mounts) == "ext4"
    assert filesystem_of(Path("/data"), mounts) == "xfs"
    assert filesystem_of(Path("/data/models/x"), mounts) == "btrfs"
    assert filesystem_of(Path("/data/a b/c"), mounts) == "zfs"
    assert filesystem_of(Path("/over"), mounts) == "overlay"
    assert filesystem_of(Path("/home"), "") is None
