"""The reading threads read every byte of memory of their own, and say when they cannot."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from llamasweep.machine.readers import Readers, page_kinds
from llamasweep.machine.scanners import Scanner

MIB = 2**20


class Watched:
    """A scanner that notes what it is asked to read."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []
        self.scanner = Scanner(name="watched", scan=self.scan)

    def scan(self, address: int, n_bytes: int) -> None:
        self.seen.append((threading.current_thread().name, address, n_bytes))


def test_every_thread_reads_a_slice_of_its_own() -> None:
    watched = Watched()

    with Readers((watched.scanner,), n_threads=3, buffer_bytes=3 * MIB) as three:
        three.round()

    assert three.buffer_bytes == 3 * MIB
    assert sorted(name for name, _, _ in watched.seen) == [f"bandwidth-{i}" for i in range(3)]
    addresses = sorted(address for _, address, _ in watched.seen)
    assert all(b - a >= MIB for a, b in itertools.pairwise(addresses))
    assert {n_bytes for _, _, n_bytes in watched.seen} == {MIB}


def test_one_round_is_made_even_without_time() -> None:
    with Readers((Watched().scanner,), n_threads=1, buffer_bytes=MIB) as one:
        (reading,) = one.measure(n_rounds=5, round_s=0.0, limit_s=0.0)

    assert len(reading.rates) == 1
    assert reading.rates[0] > 0


def test_the_number_of_rounds_is_the_one_asked_for() -> None:
    with Readers((Watched().scanner,), n_threads=2, buffer_bytes=MIB) as two:
        (reading,) = two.measure(n_rounds=7, round_s=0.0, limit_s=60.0)

    assert len(reading.rates) == 7


def test_a_scan_that_stops_early_is_an_error_and_no_rate() -> None:
    def stopped(_: int, __: int) -> None:
        raise ValueError("memchr found a byte that is not there")

    with (
        pytest.raises(MemoryError, match="not there"),
        Readers((Scanner(name="x", scan=stopped),), n_threads=2, buffer_bytes=MIB) as two,
    ):
        two.round()
    assert not [t for t in threading.enumerate() if t.name.startswith("bandwidth-")]


def test_threads_that_the_system_does_not_allow_are_an_error_and_all_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, n_alive = threading.Thread.start, threading.active_count()

    def limited(thread: threading.Thread) -> None:
        if thread.name == "bandwidth-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    readers = Readers((Watched().scanner,), n_threads=4, buffer_bytes=4 * MIB)
    with pytest.raises(MemoryError, match="can't start new thread"), readers:
        pass

    assert threading.active_count() == n_alive


def test_scanners_take_turns_over_the_same_memory() -> None:
    first, second = Watched(), Watched()

    with Readers((first.scanner, second.scanner), n_threads=1, buffer_bytes=MIB) as one:
        readings = one.measure(n_rounds=3, round_s=0.0, limit_s=60.0)

    assert [len(reading.rates) for reading in readings] == [3, 3]
    assert {address for _, address, _ in first.seen} == {address for _, address, _ in second.seen}


def test_what_a_scanner_needs_holds_while_it_reads_and_no_longer() -> None:
    seen: list[str] = []

    @contextmanager
    def one_thread() -> Iterator[None]:
        seen.append("held")
        yield
        seen.append("let go")

    scanner = Scanner(name="x", scan=lambda _, __: seen.append("read"), while_reading=one_thread)
    with Readers((scanner,), n_threads=1, buffer_bytes=MIB) as one:
        one.round()

    assert seen == ["held", "read", "let go"]


@pytest.mark.skipif(sys.platform != "linux", reason="page sizes are asked for on Linux only")
def test_small_pages_are_no_huge_pages() -> None:
    assert page_kinds() == ("huge", "4 KiB")
    with Readers((Watched().scanner,), n_threads=1, buffer_bytes=32 * MIB, pages="4 KiB") as one:
        (reading,) = one.measure(n_rounds=1, round_s=0.0, limit_s=0.0)

    assert reading.huge_fraction is None or reading.huge_fraction < 0.1
