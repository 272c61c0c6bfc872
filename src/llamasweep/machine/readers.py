"""Threads that read memory as fast as they can, with nothing but libc, and say how fast that was.

`memchr` looks for a byte that is not there: one stream per thread. `memcmp` compares two halves: two
streams, which read up to a third more where one stream does not keep a core's prefetchers busy. ctypes
releases the interpreter lock, so threads scale. Where the library's are slow (byte loops), NumPy's
maximum reads. Pages are written before, or all would be the kernel's one page of zeros.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from llamasweep.machine.text_files import read_fields

Pages = Literal["huge", "4 KiB", "system"]
"""Asked for: huge pages as for anonymous memory, 4 KiB as for mapped files, or what the system gives."""

_SCAN_LIMIT_S = 60.0
_TRIAL_BYTES = 256 * 1024
_TRIAL_CALLS = 8
_TRIALS = 12
_FAST_IN_CACHE_BYTES_PER_S = 20e9
"""A scan below this within the cache computes more than it reads, and something else is tried."""

_MADV_POPULATE_WRITE = 23
"""Linux 5.14 on: the kernel makes the pages, without a second write by us."""

ABSENT_BYTE = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Scanner:
    """One way to read every byte. scan(address, n_bytes) raises ValueError if it stopped early."""

    name: str
    scan: Callable[[int, int], None]


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


def choose_scanners() -> tuple[Scanner, ...]:
    """What reads well here: with one stream per thread, and with two. Empty where nothing can read."""
    one, two = choose_scanner(), load_memcmp()
    if two is not None and _rate_in_cache(two) < _FAST_IN_CACHE_BYTES_PER_S:
        two = None
    return tuple(scanner for scanner in (one, two) if scanner is not None)


def choose_scanner(
    memchr: Scanner | None = None, other: Callable[[], Scanner | None] | None = None
) -> Scanner | None:
    """One stream: memchr, or NumPy's maximum where memchr is missing or slow and that is faster; None: neither.

    memchr and other: stand-ins.
    """
    first = memchr or load_memchr()
    first_rate = 0.0 if first is None else _rate_in_cache(first)
    if first_rate >= _FAST_IN_CACHE_BYTES_PER_S:
        return first
    second = (other or load_numpy)()
    if second is None or _rate_in_cache(second) <= first_rate:
        return first
    return second


def load_memchr() -> Scanner | None:
    """libc's memchr, None where it cannot be called."""
    function = _c_function("memchr", (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t))
    if function is None:
        return None

    def scan(address: int, n_bytes: int) -> None:
        if function(address, ABSENT_BYTE, n_bytes):
            raise ValueError("memchr found a byte that is not there")

    return Scanner(name="memchr", scan=scan)


def load_memcmp() -> Scanner | None:
    """libc's memcmp over two halves, None where it cannot be called."""
    function = _c_function("memcmp", (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t))
    if function is None:
        return None

    def scan(address: int, n_bytes: int) -> None:
        half = n_bytes // 2
        if function(address, address + half, half):
            raise ValueError("memcmp found a byte that is not there")

    return Scanner(name="memcmp", scan=scan)


def _c_function(name: str, argument_types: tuple[Any, ...]) -> Callable[..., int | None] | None:
    try:
        library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        function: Any = getattr(library, name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p if name == "memchr" else ctypes.c_int
    function.argtypes = argument_types
    return function  # type: ignore[no-any-return]


def load_numpy() -> Scanner | None:
    """NumPy's maximum over bytes, None without NumPy."""
    try:
        import numpy as np  # noqa: PLC0415  (heavy, and only slow C libraries need it)
    except ImportError:
        return None

    def scan(address: int, n_bytes: int) -> None:
        memory = memoryview((ctypes.c_uint8 * n_bytes).from_address(address))
        if np.frombuffer(memory, dtype=np.uint8).max() == ABSENT_BYTE:
            raise ValueError("NumPy found a byte that is not there")

    return Scanner(name="numpy max", scan=scan)


def _rate_in_cache(scanner: Scanner) -> float:
    """Bytes per second over memory that stays in the cache; the best of some short trials."""
    memory = ctypes.create_string_buffer(_TRIAL_BYTES)
    address = ctypes.addressof(memory)
    best_ns = min(_timed_ns(scanner, address) for _ in range(_TRIALS))
    return _TRIAL_CALLS * _TRIAL_BYTES / (best_ns / 1e9)


def _timed_ns(scanner: Scanner, address: int) -> int:
    start_ns = time.perf_counter_ns()
    for _ in range(_TRIAL_CALLS):
        scanner.scan(address, _TRIAL_BYTES)
    return max(1, time.perf_counter_ns() - start_ns)


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
        self._problem: BaseException | None = None
        self._spans_ns: list[tuple[int, int]] = [(0, 0)] * n_threads
        self._huge_before = _huge_bytes()
        self._barrier = threading.Barrier(n_threads + 1, timeout=_SCAN_LIMIT_S)
        self._threads = [
            threading.Thread(target=self._work, args=(i,), name=f"bandwidth-{i}", daemon=True)
            for i in range(n_threads)
        ]

    def __enter__(self) -> Readers:
        for thread in self._threads:
            thread.start()
        try:
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
