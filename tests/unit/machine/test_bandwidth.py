"""The measured RAM bandwidth is a plausible figure or None with a reason."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from llamasweep.machine import bandwidth
from llamasweep.machine.bandwidth import Bandwidth, buffer_for, measure_quickly
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.scanners import VECTOR_MATRIX

FACTS = MachineFacts(os="Linux", n_cores_allowed=2, n_cpus_allowed=2, n_cores_logical=2)
MIB = 2**20


def ignore(_: str) -> None:
    """Nobody wants to know the reason."""


@pytest.fixture
def free_gib(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how much RAM is free."""

    def setting(gib: float) -> None:
        monkeypatch.setattr(
            psutil, "virtual_memory", lambda: SimpleNamespace(available=int(gib * 2**30))
        )

    return setting


def test_reading_is_measured_with_every_allowed_core() -> None:
    measured = measure_quickly(FACTS, seconds=0.05, buffer_bytes=8 * MIB)

    assert measured is not None
    assert measured.n_threads == 2
    assert measured.buffer_bytes == 8 * MIB
    assert 1 <= measured.n_rounds <= bandwidth.QUICK_ROUNDS
    assert 1e7 < measured.median_bytes_per_s <= measured.best_bytes_per_s < 1e13
    assert measured.method in ("memchr", "memcmp", "numpy max", VECTOR_MATRIX)


def test_threads_do_not_outlive_the_measurement() -> None:
    measure_quickly(FACTS, seconds=0.01, buffer_bytes=MIB)

    assert not [t for t in threading.enumerate() if t.name.startswith("bandwidth-")]


def test_a_quota_of_the_control_group_bounds_the_threads() -> None:
    facts = MachineFacts(os="Linux", n_cores_allowed=8, n_cpus_allowed=8, cpu_quota=1.5)

    measured = measure_quickly(facts, seconds=0.01, buffer_bytes=MIB)

    assert measured is not None
    assert measured.n_threads == 1


@pytest.mark.parametrize(
    ("cache_mib", "is_quick", "wanted_mib"),
    [
        (None, True, 256),
        (32, True, 256),
        (128, True, 512),
        (128, False, 512),
        (300, True, 1024),  # at least three times the cache, and quickly written
        (300, False, 1200),
        (768, True, 1536),  # never below twice the cache
        (768, False, 3072),
    ],
)
def test_the_buffer_outgrows_the_cache(
    free_gib: Any, cache_mib: int | None, is_quick: bool, wanted_mib: int
) -> None:
    free_gib(64)
    facts = MachineFacts(os="Linux", last_level_cache_bytes=cache_mib and cache_mib * MIB)

    assert buffer_for(facts, is_quick=is_quick, on_reason=ignore) == wanted_mib * MIB


def test_a_quarter_of_the_free_memory_is_the_most(free_gib: Any) -> None:
    facts = MachineFacts(os="Linux", last_level_cache_bytes=300 * MIB)
    told: list[str] = []

    free_gib(4)
    assert buffer_for(facts, is_quick=False, on_reason=told.append) == 1024 * MIB
    free_gib(2)
    assert buffer_for(facts, is_quick=False, on_reason=told.append) is None
    assert told == ["less than 2400 MiB of RAM are free"]


def test_without_memory_there_is_a_reason(free_gib: Any) -> None:
    free_gib(0.5)
    told: list[str] = []

    assert measure_quickly(FACTS, on_reason=told.append) is None
    assert told == ["less than 1024 MiB of RAM are free"]


def test_a_buffer_that_cannot_be_had_is_a_reason() -> None:
    told: list[str] = []

    assert measure_quickly(FACTS, buffer_bytes=2**62, on_reason=told.append) is None
    assert told[0].startswith("no memory to read could be had")


def test_without_a_way_to_read_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "choose_scanners", tuple)
    told: list[str] = []

    assert measure_quickly(FACTS, buffer_bytes=MIB, on_reason=told.append) is None
    assert told == [bandwidth.NO_SCANNER]


def test_a_median_far_below_the_best_is_noisy() -> None:
    noisy = Bandwidth(
        best_bytes_per_s=40e9,
        median_bytes_per_s=20e9,
        n_threads=2,
        buffer_bytes=2**28,
        n_rounds=10,
    )

    assert noisy.is_noisy
