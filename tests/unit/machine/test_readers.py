"""The reading threads read every byte of memory of their own, and say when they cannot."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from dataclasses import replace

import pytest

from llamasweep.machine import readers
from llamasweep.machine.readers import (
    Readers,
    Scanner,
    choose_scanner,
    choose_scanners,
    load_memchr,
    load_memcmp,
    load_numpy,
    page_kinds,
)

MIB = 2**20


class Watched:
    """A scanner that notes what it is asked to read."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []
        self.scanner = Scanner(name="watched", scan=self.scan)

    def scan(self, address: int, n_bytes: int) -> None:
        self.seen.append((threading.current_thread().name, address, n_bytes))


def slow(_: int, __: int) -> None:
    """A byte loop, in effect."""
    sum(range(20_000))


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


@pytest.mark.parametrize("load", [load_memchr, load_memcmp, load_numpy])
def test_scanners_read_zeros_and_notice_the_byte_they_look_for(load: object) -> None:
    assert callable(load)
    scanner = load()
    assert isinstance(scanner, Scanner)
    memory = ctypes.create_string_buffer(4096)
    address = ctypes.addressof(memory)

    scanner.scan(address, 4096)
    memory[4095] = bytes([readers.ABSENT_BYTE])
    scanner.scan(address, 4095)
    with pytest.raises(ValueError, match="not there"):
        scanner.scan(address, 4096)


def test_a_fast_memchr_is_taken_without_importing_anything() -> None:
    fast = Watched().scanner

    assert choose_scanner(fast, other=lambda: pytest.fail("asked")) is fast


def test_a_slow_memchr_gives_way_to_a_faster_scan() -> None:
    byte_loop, vectors = Scanner(name="memchr", scan=slow), Watched().scanner

    assert choose_scanner(byte_loop, other=lambda: vectors) is vectors
    assert choose_scanner(byte_loop, other=lambda: None) is byte_loop


def test_scanners_take_turns_over_the_same_memory() -> None:
    first, second = Watched(), Watched()

    with Readers((first.scanner, second.scanner), n_threads=1, buffer_bytes=MIB) as one:
        readings = one.measure(n_rounds=3, round_s=0.0, limit_s=60.0)

    assert [len(reading.rates) for reading in readings] == [3, 3]
    assert {address for _, address, _ in first.seen} == {address for _, address, _ in second.seen}


def test_a_comparison_of_bytes_one_by_one_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Watched().scanner
    monkeypatch.setattr(readers, "load_memchr", lambda: fast)
    monkeypatch.setattr(readers, "load_memcmp", lambda: Scanner(name="memcmp", scan=slow))
    assert choose_scanners() == (fast,)

    two = replace(fast, name="two streams")
    monkeypatch.setattr(readers, "load_memcmp", lambda: two)
    assert choose_scanners() == (fast, two)


def test_without_a_c_library_numpy_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "load_memchr", lambda: None)
    vectors = Watched().scanner

    assert choose_scanner(other=lambda: vectors) is vectors
    assert choose_scanner(other=lambda: None) is None


@pytest.mark.skipif(sys.platform != "linux", reason="page sizes are asked for on Linux only")
def test_small_pages_are_no_huge_pages() -> None:
    assert page_kinds() == ("huge", "4 KiB")
    with Readers((Watched().scanner,), n_threads=1, buffer_bytes=32 * MIB, pages="4 KiB") as one:
        (reading,) = one.measure(n_rounds=1, round_s=0.0, limit_s=0.0)

    assert reading.huge_fraction is None or reading.huge_fraction < 0.1
