"""How fast this machine reads its RAM just now, in about two seconds.

How much memory must be read so that caches do not answer, and what best and median of the rounds
say. The reading itself is in `readers`; a whole curve over threads and pages is in `memory_curve`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llamasweep.machine.facts import MachineFacts, read_facts
from llamasweep.machine.readers import Pages, Readers
from llamasweep.machine.scanners import Scanner, choose_scanners, load_named
from llamasweep.machine.words import thread_words

MIN_BUFFER_BYTES = 256 * 2**20
QUICK_BUFFER_BYTES = 2**30
"""Enough against ordinary caches, and written in a fraction of a second."""

CACHE_FACTOR = 4
LEAST_CACHE_FACTOR = 2
"""Memory read in a circle: at twice the cache the least recently used rule keeps nothing of use."""

QUICK_ROUNDS = 10
QUICK_ROUND_S = 0.05

NO_SCANNER = "neither the C library's memchr and memcmp nor NumPy can be called"

NOISY_BELOW = 0.75
"""median / best below this means that something else used the memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bandwidth:
    """Read bandwidth of the RAM.

    best_bytes_per_s: of all rounds, what the memory can do. median_bytes_per_s: what it did.
    n_threads: that read. buffer_bytes: of all slices together. method: name of the way of reading
    (`scanners`). pages: as asked for; huge_fraction: share that lay on huge pages, None where
    the system does not tell.
    """

    best_bytes_per_s: float
    median_bytes_per_s: float
    n_threads: int
    buffer_bytes: int
    n_rounds: int
    method: str = "memchr"
    pages: Pages = "huge"
    huge_fraction: float | None = None

    @property
    def is_noisy(self) -> bool:
        """The median lies far below the best round."""
        return self.median_bytes_per_s < NOISY_BELOW * self.best_bytes_per_s


def measure_quickly(
    facts: MachineFacts | None = None,
    *,
    seconds: float = 1.0,
    n_threads: int | None = None,
    method: str | None = None,
    buffer_bytes: int | None = None,
    on_reason: Callable[[str], None] | None = None,
) -> Bandwidth | None:
    """Read bandwidth with the cores that this process may use, by the way of reading that gave the most.

    None where it cannot be measured.

    seconds: of reading at most; writing the memory first takes half a second to a second on a quiet
    machine, and longer on a busy one. n_threads and buffer_bytes: by default one thread per allowed
    core, and what `buffer_for` says. method: only this way of reading, if it is here. on_reason: told why there is None.
    """
    tell = on_reason or (lambda _: None)
    facts = read_facts() if facts is None else facts
    size = buffer_bytes or buffer_for(facts, is_quick=True, on_reason=tell)
    if size is None:
        return None
    known = None if method is None else load_named(method)
    scanners = choose_scanners() if known is None else (known,)
    if not scanners:
        tell(NO_SCANNER)
        return None
    try:
        found = measure_once(
            scanners,
            n_threads=n_threads or thread_words(facts)["physical"],
            buffer_bytes=size,
            round_s=min(QUICK_ROUND_S, seconds / QUICK_ROUNDS),
            limit_s=seconds,
        )
    except (MemoryError, OSError) as problem:
        tell(f"no memory to read could be had: {str(problem) or type(problem).__name__}")
        return None
    return max(found, key=lambda one: one.best_bytes_per_s)


def measure_once(
    scanners: Sequence[Scanner],
    *,
    n_threads: int,
    buffer_bytes: int,
    pages: Pages = "huge",
    n_rounds: int = QUICK_ROUNDS,
    round_s: float = QUICK_ROUND_S,
    limit_s: float = 1.0,
) -> tuple[Bandwidth, ...]:
    """One setting by each scanner in turns, with memory of its own.

    n_rounds: of each. Raises MemoryError or OSError where the memory cannot be had.
    """
    readers = Readers(scanners, n_threads=n_threads, buffer_bytes=buffer_bytes, pages=pages)
    with readers:
        readings = readers.measure(n_rounds=n_rounds, round_s=round_s, limit_s=limit_s)
    return tuple(
        Bandwidth(
            best_bytes_per_s=max(reading.rates),
            median_bytes_per_s=statistics.median(reading.rates),
            n_threads=n_threads,
            buffer_bytes=readers.buffer_bytes,
            n_rounds=len(reading.rates),
            method=scanner.name,
            pages=pages,
            huge_fraction=reading.huge_fraction,
        )
        for scanner, reading in zip(scanners, readings, strict=True)
    )


def buffer_for(
    facts: MachineFacts, *, is_quick: bool, on_reason: Callable[[str], None]
) -> int | None:
    """Bytes to read in each pass: four times the last-level cache and at least 256 MiB.

    The minimum alone where the size of the cache is not known. Quickly: at most 1 GiB as long as that
    is twice the cache. Never more than a quarter of the free RAM; None, with the reason told, where
    that is not enough.
    """
    import psutil  # noqa: PLC0415  (heavy, and only measuring needs it)

    cache_bytes = facts.last_level_cache_bytes
    least = wanted = MIN_BUFFER_BYTES
    if cache_bytes is not None:
        least = max(least, LEAST_CACHE_FACTOR * cache_bytes)
        wanted = max(wanted, CACHE_FACTOR * cache_bytes)
    if is_quick:
        wanted = min(wanted, max(QUICK_BUFFER_BYTES, least))
    size = min(wanted, psutil.virtual_memory().available // 4)
    if size < least:
        on_reason(f"less than {4 * least // 2**20} MiB of RAM are free")
        return None
    return size
