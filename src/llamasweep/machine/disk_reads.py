"""How fast the disk under a folder reads what is not in memory: in large blocks, and page by page.

Writes a file of bounded size into the folder, reads it past the page cache, and removes it again.
A weight that does not fit in RAM is read somewhere between the two rates. What a hypervisor or a
network keeps in caches of its own cannot be seen from here.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK_BYTES = 4 * 2**20
PAGE_BYTES = 4096
N_IN_FLIGHT = 4
"""Sequential blocks asked for at once: fewer leave a fast SSD idle between them."""

FREE_SHARE = 10
"""At most a tenth of the free room is written."""

MIN_FILE_BYTES = 64 * 2**20
SIZE_BYTES = 2**30
QUICK_SIZE_BYTES = 256 * 2**20
WRITE_LIMIT_S = 20.0
IMPLAUSIBLE_BYTES_PER_S = 16e9
"""Four lanes of PCIe 5.0 carry 15.75 GB/s; a single file faster than that comes from a cache."""

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_NAME = ".llamasweep-disk-trial"


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskReads:
    """Rates of reading a file that is not in memory.

    sequential_bytes_per_s: blocks of 4 MiB, four asked for at once. random_bytes_per_s: 4 KiB at
    random places, one after the other, as page faults do without read-ahead. random_latency_s: the
    median of one such read. method: how the page cache was passed by. filesystem: None where the
    system does not tell. warnings: sentences.
    """

    sequential_bytes_per_s: float
    random_bytes_per_s: float
    random_latency_s: float
    file_bytes: int
    n_random_reads: int
    method: str
    filesystem: str | None = None
    warnings: tuple[str, ...] = ()


def measure_disk(
    folder: Path,
    *,
    is_quick: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
    on_reason: Callable[[str], None] = lambda _: None,
    mounts: str | None = None,
) -> DiskReads | None:
    """Read rates of the disk that holds `folder`; None, with the reason told, where they cannot be had.

    At most 1 GiB (quickly: 256 MiB) and a tenth of the free room is written, for 20 seconds at most.
    mounts: a stand-in for the text of /proc/self/mountinfo.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        filesystem = filesystem_of(folder, _mounts() if mounts is None else mounts)
        if filesystem in _IN_MEMORY:
            on_reason(f"{folder} lies in memory ({filesystem}), not on a disk")
            return None
        status = os.statvfs(folder) if hasattr(os, "statvfs") else None
        wanted = QUICK_SIZE_BYTES if is_quick else SIZE_BYTES
        if status is not None:
            wanted = min(wanted, status.f_bavail * status.f_frsize // FREE_SHARE)
        wanted = wanted // BLOCK_BYTES * BLOCK_BYTES
        if wanted < MIN_FILE_BYTES:
            on_reason(f"less than {FREE_SHARE * MIN_FILE_BYTES // 2**20} MiB are free in {folder}")
            return None
        with _trial_file(folder, wanted, on_step) as (path, n_bytes):
            return _read_both(path, n_bytes, filesystem, 1.0 if is_quick else 4.0, on_step)
    except OSError as problem:
        on_reason(f"the disk under {folder} could not be measured: {problem.strerror or problem}")
        return None


def filesystem_of(folder: Path, mounts: str) -> str | None:
    """Type of the file system that holds the folder, from the text of /proc/self/mountinfo."""
    place, best, kind = str(folder.resolve()), "", None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) < 5 or not after.split():
            continue
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), words[4])
        is_above = place == point or place.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(
            best
        ):  # a later mount on the same point hides the earlier
            best, kind = point, after.split()[0]
    return kind


def _mounts() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    return ""


@contextlib.contextmanager
def _trial_file(
    folder: Path, wanted: int, on_step: Callable[[str], None]
) -> Iterator[tuple[Path, int]]:
    """A written and synced file, removed afterwards; and what an earlier kill left is removed too."""
    path = folder / _NAME
    on_step(f"writing {wanted // 2**20} MiB to read")
    try:
        yield path, _write(path, wanted)
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _write(path: Path, wanted: int) -> int:
    """Bytes written: random ones, because file systems and SSDs may compress; fewer on a slow disk."""
    path.unlink(missing_ok=True)
    block = os.urandom(BLOCK_BYTES)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        start_ns, written = time.monotonic_ns(), 0
        while written < wanted:
            # Another beginning for each block: whole repeats could be stored once.
            view = memoryview(written.to_bytes(16, "little") + block)[:BLOCK_BYTES]
            while view:
                taken = os.write(descriptor, view)
                view, written = view[taken:], written + taken
            if written % (16 * BLOCK_BYTES) == 0:
                os.fsync(descriptor)
            if written >= MIN_FILE_BYTES and time.monotonic_ns() - start_ns > WRITE_LIMIT_S * 1e9:
                break
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return written // BLOCK_BYTES * BLOCK_BYTES


def _read_both(
    path: Path,
    n_bytes: int,
    filesystem: str | None,
    limit_s: float,
    on_step: Callable[[str], None],
) -> DiskReads:
    opened = _Opened(path)
    try:
        on_step("reading in large blocks")
        sequential = _sequential(opened, n_bytes, limit_s)
        opened.forget()
        on_step("reading single pages at random places")
        latencies_s = _random(opened, n_bytes, limit_s / 2)
    finally:
        opened.close()
    warnings = []
    if sequential > IMPLAUSIBLE_BYTES_PER_S:
        warnings.append(
            f"the file was read at {sequential / 1e9:.1f} GB/s, faster than any single SSD: "
            "it probably came from a cache, and the disk is slower"
        )
    return DiskReads(
        sequential_bytes_per_s=sequential,
        random_bytes_per_s=PAGE_BYTES * len(latencies_s) / sum(latencies_s),
        random_latency_s=statistics.median(latencies_s),
        file_bytes=n_bytes,
        n_random_reads=len(latencies_s),
        method=opened.method,
        filesystem=filesystem,
        warnings=tuple(warnings),
    )


class _Opened:
    """The file, opened so that reads go to the disk; `method` says how. Raises OSError where none works."""

    def __init__(self, path: Path) -> None:
        self.method = ""
        self._descriptor = self._open(path)
        self.forget()

    def _open(self, path: Path) -> int:
        plain = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        if hasattr(os, "O_DIRECT"):
            with contextlib.suppress(OSError):  # some file systems cannot
                descriptor = os.open(path, plain | os.O_DIRECT)
                try:
                    with mmap.mmap(-1, PAGE_BYTES) as page:
                        os.preadv(descriptor, [page], 0)
                except OSError:
                    os.close(descriptor)
                    raise
                self.method = "direct reads (O_DIRECT)"
                return descriptor
        descriptor = os.open(path, plain)
        if sys.platform == "darwin":
            import fcntl  # noqa: PLC0415  (not on every system)

            fcntl.fcntl(descriptor, fcntl.F_NOCACHE, 1)
            self.method = "reads without cache (F_NOCACHE)"
        elif hasattr(os, "posix_fadvise"):
            self.method = "reads after dropping the file's cache (posix_fadvise)"
        else:
            os.close(descriptor)
            raise OSError("this system gives no way past the page cache")
        return descriptor

    def forget(self) -> None:
        """Drop what the page cache holds of the file."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def is_random(self) -> None:
        """Reads follow no order: read ahead nothing."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def read(self, memory: mmap.mmap, offset: int) -> int:
        """Fill the memory from there on; the bytes that came."""
        return os.preadv(self._descriptor, [memory], offset)

    def close(self) -> None:
        os.close(self._descriptor)


def _sequential(opened: _Opened, n_bytes: int, limit_s: float) -> float:
    """Bytes per second of reading the file once, or as far as the time allows."""
    offsets = iter(range(0, n_bytes, BLOCK_BYTES))
    lock, done, problems = threading.Lock(), [0], list[OSError]()
    start_ns = time.perf_counter_ns()

    def work() -> None:
        with mmap.mmap(-1, BLOCK_BYTES) as memory:
            while time.perf_counter_ns() - start_ns < limit_s * 1e9:
                with lock:
                    offset = next(offsets, None)
                if offset is None or problems:
                    return
                try:
                    n_read = opened.read(memory, offset)
                except OSError as problem:
                    problems.append(problem)
                    return
                with lock:
                    done[0] += n_read

    threads = [
        threading.Thread(target=work, name=f"disk-{i}", daemon=True) for i in range(N_IN_FLIGHT)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed_s = max(1, time.perf_counter_ns() - start_ns) / 1e9
    if problems:
        raise problems[0]
    return done[0] / passed_s


def _random(opened: _Opened, n_bytes: int, limit_s: float) -> list[float]:
    """Seconds of each read of one page, at places that are not read twice."""
    opened.is_random()
    n_pages = n_bytes // PAGE_BYTES
    places = random.Random(0).sample(range(n_pages), min(n_pages, 20_000))  # noqa: S311
    latencies_s: list[float] = []
    start_ns = time.perf_counter_ns()
    with mmap.mmap(-1, PAGE_BYTES) as memory:
        for place in places:
            before_ns = time.perf_counter_ns()
            opened.read(memory, place * PAGE_BYTES)
            after_ns = time.perf_counter_ns()
            latencies_s.append(max(1, after_ns - before_ns) / 1e9)
            if after_ns - start_ns > limit_s * 1e9:
                break
    return latencies_s
