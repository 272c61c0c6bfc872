"""Threads that each write memory once and then read it as often as told, and say how fast that was.

The ways of reading are in `scanners`; ctypes and NumPy's BLAS release the interpreter lock, so threads
scale. Pages are written before, or all would be the kernel's one page of zeros.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from llamasweep.machine.scanners import Scanner
from llamasweep.machine.text_files import read_fields

Pages = Literal["huge", "4 KiB", "system"]
"""Asked for: huge pages as for anonymous memory, 4 KiB as for mapped files, or what the system gives."""

_SCAN_LIMIT_S = 60.0
_MADV_POPULATE_WRITE = 23
"""Linux 5.14 on: the kernel makes the pages, without a second write by us."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Rates of the rounds of one scanner in bytes per second.

    huge_fraction: share of the memory that lay on huge pages; None where the system does not tell.
    """

    rates: tuple[float, ...]
    huge_fraction: float | None = None


def page_kinds() -> tuple[Pages, ...]:
    """What can be asked for on this system."""
    return ("huge", "4 KiB") if hasattr(mmap, "MADV_HUGEPAGE") else ("system",)


class Readers:
    """Threads that each write a slice of memory once and then read it as often as told.

    A context manager: inside it the memory is held. Raises MemoryError or OSError on entering
    where the memory cannot be had.
    """

    def __init__(
        self,
        scanners: Sequence[Scanner],
        *,
        n_threads: int,
        buffer_bytes: int,
        pages: Pages = "huge",
    ) -> None:
        unit = 2 * 2**20 if buffer_bytes >= n_threads * 16 * 2**20 else mmap.PAGESIZE
        self.slice_bytes = max(mmap.PAGESIZE, buffer_bytes // n_threads // unit * unit)
        self._scanners = tuple(scanners)
        self._scan = self._scanners[0].scan
        self._pages = pages
        self._n_passes = 1
        self._is_over = False
        self._setup = ExitStack()
        self._problem: BaseException | None = None
        self._spans_ns: list[tuple[int, int]] = [(0, 0)] * n_threads
        self._huge_before = _huge_bytes()
        self._barrier = threading.Barrier(n_threads + 1, timeout=_SCAN_LIMIT_S)
        self._threads = [
            threading.Thread(target=self._work, args=(i,), name=f"bandwidth-{i}", daemon=True)
            for i in range(n_threads)
        ]

    def __enter__(self) -> Readers:
        for scanner in self._scanners:
            self._setup.enter_context(scanner.while_reading())
        try:
            self._start()
            self._wait()  # all slices are written
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def buffer_bytes(self) -> int:
        """Of all slices together."""
        return self.slice_bytes * len(self._threads)

    def measure(self, *, n_rounds: int, round_s: float, limit_s: float) -> tuple[Reading, ...]:
        """One reading per scanner, which take turns: at least one round, at most n_rounds of each.

        None is begun after limit_s; each is about round_s long.
        """
        start_ns = time.monotonic_ns()
        first_s = self.buffer_bytes / self.round()  # warms up and tells how long one pass takes
        self._n_passes = max(1, round(round_s / first_s))
        rates: tuple[list[float], ...] = tuple([] for _ in self._scanners)
        while len(rates[0]) < n_rounds and (
            not rates[0] or time.monotonic_ns() - start_ns < limit_s * 1e9
        ):
            for number, of_scanner in enumerate(rates):
                of_scanner.append(self.round(number))
        huge_fraction = self._huge_fraction()
        return tuple(Reading(rates=tuple(one), huge_fraction=huge_fraction) for one in rates)

    def round(self, number: int = 0) -> float:
        """Bytes per second from the first thread's start to the last thread's end. number: of the scanner."""
        self._scan = self._scanners[number].scan
        self._wait()
        self._wait()
        starts, ends = zip(*self._spans_ns, strict=True)
        passed_ns: int = max(1, max(ends) - min(starts))
        return self.buffer_bytes * self._n_passes / (passed_ns / 1e9)

    def close(self) -> None:
        """End the threads, whatever state they are in."""
        self._is_over = True
        self._barrier.abort()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._setup.close()

    def _start(self) -> None:
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as problem:  # a limit of the system on threads
            raise MemoryError(str(problem)) from problem

    def _huge_fraction(self) -> float | None:
        now = _huge_bytes()
        if now is None or self._huge_before is None:
            return None
        return min(1.0, max(0.0, (now - self._huge_before) / self.buffer_bytes))

    def _wait(self) -> None:
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            problem = self._problem or OSError("the reading threads do not answer")
            raise MemoryError(str(problem) or type(problem).__name__) from problem

    def _work(self, index: int) -> None:
        try:
            self._read_slice(index)
        except threading.BrokenBarrierError:
            return
        except (MemoryError, OSError, ValueError, OverflowError) as problem:
            self._problem = problem
            self._barrier.abort()

    def _read_slice(self, index: int) -> None:
        # Each thread makes and writes its own slice, so that it lies on the thread's memory node.
        with _private_memory(self.slice_bytes) as memory:
            _advise(memory, self._pages)
            anchor = ctypes.c_char.from_buffer(memory)
            try:
                address = ctypes.addressof(anchor)
                _write(address, self.slice_bytes)
                self._barrier.wait()
                while not self._is_over:
                    self._barrier.wait()
                    start_ns = time.perf_counter_ns()
                    for _ in range(self._n_passes):
                        self._scan(address, self.slice_bytes)
                    self._spans_ns[index] = (start_ns, time.perf_counter_ns())
                    self._barrier.wait()
            finally:
                del anchor  # the mapping cannot be closed while something points into it


def _private_memory(n_bytes: int) -> mmap.mmap:
    """Anonymous memory of our own: the default would be shared, which gets no huge pages."""
    if sys.platform == "win32":
        return mmap.mmap(-1, n_bytes)
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _advise(memory: mmap.mmap, pages: Pages) -> None:
    if pages == "huge" and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    elif pages == "4 KiB" and hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)


def _write(address: int, n_bytes: int) -> None:
    """Give every page memory of its own."""
    if sys.platform == "linux":
        populate: Any = getattr(ctypes.CDLL(None), "madvise", None)
        if populate is not None:
            populate.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            if populate(address, n_bytes, _MADV_POPULATE_WRITE) == 0:
                return
    ctypes.memset(address, 0, n_bytes)


def _huge_bytes() -> int | None:
    """Anonymous memory of this process on huge pages; None where the system does not tell."""
    return read_fields("/proc/self/smaps_rollup").get("AnonHugePages")
