"""How fast this machine reads its RAM, measured in a second or two with nothing but libc.

`memchr` looks for a byte that is not there, over memory far larger than the caches, one slice per
physical core. ctypes releases the interpreter lock, so the threads scale; against a C kernel with
vector loads the result was 1.00 to 1.01. Pages are written before, or all of them would be the
kernel's one page of zeros, and the caches would be measured.
"""

from __future__ import annotations

import ctypes
import mmap
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llamasweep.machine.facts import MachineFacts, read_facts

MIN_BUFFER_BYTES = 256 * 2**20
MAX_BUFFER_BYTES = 2**30
MIN_ROUNDS = 10
ROUND_S = 0.03
"""Aim for one round: long against the start of threads, short enough for ten rounds."""

NOISY_BELOW = 0.75
"""median / best below this means that something else used the memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bandwidth:
    """Read bandwidth of the RAM.

    best_bytes_per_s: of all rounds, what the memory can do. median_bytes_per_s: what it did.
    n_threads: that read. buffer_bytes: of all slices together.
    """

    best_bytes_per_s: float
    median_bytes_per_s: float
    n_threads: int
    buffer_bytes: int
    n_rounds: int
    method: str = "memchr"

    @property
    def is_noisy(self) -> bool:
        """The median lies far below the best round."""
        return self.median_bytes_per_s < NOISY_BELOW * self.best_bytes_per_s


def measure_quickly(
    facts: MachineFacts | None = None,
    *,
    seconds: float = 1.0,
    n_threads: int | None = None,
    buffer_bytes: int | None = None,
    on_reason: Callable[[str], None] | None = None,
) -> Bandwidth | None:
    """Read bandwidth with all cores that this process may use. None where it cannot be measured.

    seconds: of measuring; writing the memory first takes about as long again. n_threads and
    buffer_bytes: by default one thread per allowed core, and four times the last-level cache
    within 256 MiB to 1 GiB and a quarter of the free RAM. on_reason: told why there is None.
    """
    tell = on_reason or (lambda _: None)
    facts = read_facts() if facts is None else facts
    threads = n_threads or facts.n_cores_allowed or facts.n_cpus_allowed or 1
    size = buffer_bytes or _buffer_bytes(facts)
    if size is None:
        tell(f"less than {4 * MIN_BUFFER_BYTES // 2**20} MiB of RAM are free")
        return None
    scan = _load_memchr()
    if scan is None:
        tell("the C library has no memchr that can be called")
        return None
    slice_bytes = max(mmap.PAGESIZE, size // threads // mmap.PAGESIZE * mmap.PAGESIZE)
    readers = _Readers(threads, slice_bytes, scan)
    try:
        rates = readers.measure(seconds)
    except (MemoryError, OSError, threading.BrokenBarrierError) as problem:
        tell(f"no memory to read could be had: {problem or type(problem).__name__}")
        return None
    finally:
        readers.close()
    return Bandwidth(
        best_bytes_per_s=max(rates),
        median_bytes_per_s=statistics.median(rates),
        n_threads=threads,
        buffer_bytes=slice_bytes * threads,
        n_rounds=len(rates),
    )


def _buffer_bytes(facts: MachineFacts) -> int | None:
    import psutil  # noqa: PLC0415  (heavy, and only measuring needs it)

    free_bytes = psutil.virtual_memory().available
    wanted = max(MIN_BUFFER_BYTES, 4 * (facts.last_level_cache_bytes or 0))
    size = min(wanted, MAX_BUFFER_BYTES, free_bytes // 4)
    return size if size >= MIN_BUFFER_BYTES else None


def _load_memchr() -> Any:
    """libc's memchr with its types set, None where there is none."""
    try:
        library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        function = library.memchr
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    return function


class _Readers:
    """Threads that each write a slice of memory once and then read it as often as told."""

    def __init__(self, n_threads: int, slice_bytes: int, scan: Any) -> None:
        self._scan = scan
        self._slice_bytes = slice_bytes
        self._n_passes = 1
        self._is_over = False
        self._problem: BaseException | None = None
        self._barrier = threading.Barrier(n_threads + 1, timeout=60)
        self._threads = [
            threading.Thread(target=self._work, name=f"bandwidth-{i}", daemon=True)
            for i in range(n_threads)
        ]

    def measure(self, seconds: float) -> list[float]:
        """Bytes per second of each round: MIN_ROUNDS of them or three times `seconds`."""
        for thread in self._threads:
            thread.start()
        self._wait()  # all slices are written
        first_s = self._round()
        self._n_passes = max(1, round(ROUND_S / first_s))
        n_bytes = self._slice_bytes * len(self._threads) * self._n_passes
        rates: list[float] = []
        start_ns = time.monotonic_ns()
        passed_s = 0.0
        while passed_s < (seconds if len(rates) >= MIN_ROUNDS else 3 * seconds) or not rates:
            rates.append(n_bytes / self._round())
            passed_s = (time.monotonic_ns() - start_ns) / 1e9
        return rates

    def close(self) -> None:
        """End the threads, whatever state they are in."""
        self._is_over = True
        self._barrier.abort()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _wait(self) -> None:
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            if self._problem is not None:
                raise MemoryError(str(self._problem)) from self._problem
            raise

    def _round(self) -> float:
        """Seconds from the common start to the last thread's end."""
        self._wait()
        start_ns = time.perf_counter_ns()
        self._wait()
        return max(1, time.perf_counter_ns() - start_ns) / 1e9

    def _work(self) -> None:
        try:
            self._read_slices()
        except threading.BrokenBarrierError:
            return
        except (MemoryError, OSError, ValueError) as problem:
            self._problem = problem
            self._barrier.abort()

    def _read_slices(self) -> None:
        # Each thread makes and writes its own slice, so that it lies on the thread's memory node.
        with mmap.mmap(-1, self._slice_bytes) as memory:
            if hasattr(mmap, "MADV_HUGEPAGE"):
                memory.madvise(mmap.MADV_HUGEPAGE)
            anchor = ctypes.c_char.from_buffer(memory)
            try:
                address = ctypes.addressof(anchor)
                ctypes.memset(address, 0, self._slice_bytes)
                self._barrier.wait()
                while not self._is_over:
                    self._barrier.wait()
                    for _ in range(self._n_passes):
                        if self._scan(address, 1, self._slice_bytes) is not None:
                            raise ValueError("memchr found a byte that is not there")
                    self._barrier.wait()
            finally:
                del anchor  # the mapping cannot be closed while something points into it
