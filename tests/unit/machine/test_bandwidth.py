"""The measured RAM bandwidth is a plausible figure or None with a reason."""

from __future__ import annotations

import pytest

from llamasweep.machine import bandwidth
from llamasweep.machine.bandwidth import Bandwidth, measure_quickly
from llamasweep.machine.facts import MachineFacts

FACTS = MachineFacts(os="Linux", n_cores_allowed=2)


def test_reading_is_measured_with_every_allowed_core() -> None:
    measured = measure_quickly(FACTS, seconds=0.05, buffer_bytes=8 * 2**20)

    assert measured is not None
    assert measured.n_threads == 2
    assert measured.buffer_bytes == 8 * 2**20
    assert measured.n_rounds >= 1
    assert 1e8 < measured.median_bytes_per_s <= measured.best_bytes_per_s < 1e13


def test_threads_do_not_outlive_the_measurement() -> None:
    import threading

    measure_quickly(FACTS, seconds=0.01, buffer_bytes=2**20)

    assert not [t for t in threading.enumerate() if t.name.startswith("bandwidth-")]


def test_without_memory_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_buffer_bytes", lambda _: None)
    told: list[str] = []

    assert measure_quickly(FACTS, on_reason=told.append) is None
    assert told == ["less than 1024 MiB of RAM are free"]


def test_a_buffer_that_cannot_be_had_is_a_reason() -> None:
    told: list[str] = []

    assert measure_quickly(FACTS, buffer_bytes=2**62, on_reason=told.append) is None
    assert told[0].startswith("no memory to read could be had")


def test_without_memchr_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_load_memchr", lambda: None)
    told: list[str] = []

    assert measure_quickly(FACTS, buffer_bytes=2**20, on_reason=told.append) is None
    assert told == ["the C library has no memchr that can be called"]


def test_a_median_far_below_the_best_is_noisy() -> None:
    noisy = Bandwidth(
        best_bytes_per_s=40e9,
        median_bytes_per_s=20e9,
        n_threads=2,
        buffer_bytes=2**28,
        n_rounds=10,
    )

    assert noisy.is_noisy
