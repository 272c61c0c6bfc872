"""Calibrating asks every instrument once, and goes on where one has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.machine.calibrations import bandwidth, calibration

from llamasweep.machine import calibrate as calibrating
from llamasweep.machine.bandwidth import Bandwidth
from llamasweep.machine.calibrate import Instruments, calibrate, measure_ram
from llamasweep.machine.disk_reads import DiskReads
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.matrix_peak import MatrixPeak
from llamasweep.machine.memory_curve import MemoryCurve
from llamasweep.machine.scanners import Scanner
from llamasweep.machine.spec_bandwidth import SpecFigure

FACTS = MachineFacts(os="Linux", n_cores_allowed=6, n_cpus_allowed=6, n_cores_logical=6)
NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)


def instruments(**changes: Any) -> Instruments:
    """All answer as the made-up calibration has it."""
    made = calibration()
    values: dict[str, Any] = {
        "ram": lambda *_, **__: made.ram,
        "disk": lambda *_, **__: made.disk,
        "matrix": lambda _: made.matrix,
        "spec_ram": lambda _: made.spec_ram,
        "spec_gpus": lambda *_: made.spec_gpus,
        "load_average": lambda: 0.5,
        "now": lambda: NOW,
    }
    return Instruments(**{**values, **changes})


def test_everything_measured_is_in_the_record() -> None:
    found = calibrate(FACTS, disk_folder=Path("/disk"), instruments=instruments())

    expected = calibration(
        fingerprint=FACTS.fingerprint,
        llamasweep_version=found.llamasweep_version,
        disk_folder="/disk",
    )
    assert found == expected


def test_what_cannot_be_measured_leaves_its_reason_and_the_rest_goes_on() -> None:
    def no_ram(*_: object, on_reason: Any, **__: object) -> MemoryCurve | None:
        on_reason("no RAM is free")
        return None

    def no_disk(*_: object, on_reason: Any, **__: object) -> DiskReads | None:
        on_reason("no room")
        return None

    def no_numpy(_: float) -> MatrixPeak:
        raise ImportError("numpy")

    found = calibrate(FACTS, instruments=instruments(ram=no_ram, disk=no_disk, matrix=no_numpy))

    assert (found.ram, found.disk, found.disk_folder, found.matrix) == (None, None, None, None)
    assert dict(found.reasons) == {
        "ram": "no RAM is free",
        "disk": "no room",
        "matrix": "NumPy cannot be used: numpy",
    }


def test_steps_are_told_as_they_begin() -> None:
    steps: list[str] = []

    def ram(*_: object, on_step: Any, **__: object) -> MemoryCurve | None:
        on_step("reading RAM: 1 thread")
        return calibration().ram

    calibrate(FACTS, on_step=steps.append, instruments=instruments(ram=ram))

    assert steps == [
        "asking for the specification",
        "reading RAM: 1 thread",
        "multiplying matrices",
    ]


def test_all_doubts_are_gathered() -> None:
    made = calibration()
    assert made.ram is not None
    assert made.disk is not None
    noisy = MemoryCurve(points=(bandwidth(60, median=20),))
    disk = replace(made.disk, warnings=("a cache answered",))
    card = SpecFigure(of="card", bytes_per_s=1.0, source="x", warning="clock and table do not fit")

    found = calibrate(
        FACTS,
        instruments=instruments(
            ram=lambda *_, **__: noisy,
            disk=lambda *_, **__: disk,
            spec_gpus=lambda *_: (card,),
            load_average=lambda: 9.0,
        ),
    )

    told = "\n".join(found.warnings)
    assert "the load average was 9.0 on 6 CPUs" in told
    assert "33%" in told
    assert "a cache answered" in told
    assert "clock and table do not fit" in told
    assert "117% of the specified bandwidth" in told  # 60 of 51.2 GB/s
    assert len(found.warnings) == 5


@pytest.mark.parametrize("load", [None, 6.0])
def test_no_load_and_no_answer_about_it_are_no_doubt(load: float | None) -> None:
    assert calibrate(FACTS, instruments=instruments(load_average=lambda: load)).warnings == ()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """What the RAM is asked for, by memory whose threads give 10 GB/s each, 40 at most."""
    asked: list[tuple[int, str]] = []

    def once(
        _: Sequence[Scanner], *, n_threads: int, pages: Any, **__: object
    ) -> tuple[Bandwidth, ...]:
        asked.append((n_threads, pages))
        return (bandwidth(min(40.0, 10.0 * n_threads), n_threads=n_threads, pages=pages),)

    monkeypatch.setattr(calibrating, "measure_once", once)
    monkeypatch.setattr(calibrating, "buffer_for", lambda *_, **__: 2**30)
    monkeypatch.setattr(calibrating, "page_kinds", lambda: ("huge", "4 KiB"))
    return asked


def ram(*, is_quick: bool) -> MemoryCurve:
    curve = measure_ram(FACTS, is_quick=is_quick, on_step=lambda _: None, on_reason=pytest.fail)
    assert curve is not None
    return curve


def test_full_calibration_reads_both_kinds_of_pages_at_all_counts(
    settings: list[tuple[int, str]],
) -> None:
    curve = ram(is_quick=False)

    counts = (1, 2, 4, 6)
    all_settings = [(n, pages) for pages in ("huge", "4 KiB") for n in counts]
    assert settings[: 3 * len(all_settings)] == all_settings * 3
    assert settings[3 * len(all_settings) :] == [(3, "huge")] * 3  # between 2 and the knee at 4
    assert curve.knee_threads == 4


def test_quick_calibration_reads_small_pages_once(settings: list[tuple[int, str]]) -> None:
    ram(is_quick=True)

    assert settings == [*((n, "huge") for n in (1, 2, 4, 6)), (6, "4 KiB")]


def test_memory_that_cannot_be_had_is_a_reason(
    settings: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> Bandwidth:
        raise MemoryError

    monkeypatch.setattr(calibrating, "measure_once", none)
    told: list[str] = []

    found = measure_ram(FACTS, is_quick=True, on_step=lambda _: None, on_reason=told.append)

    assert found is None
    assert told == ["no memory to read could be had: MemoryError"]
    assert settings == []


@pytest.mark.parametrize(("best", "n_warnings"), [(31.0, 1), (33.0, 0)])
def test_a_calibration_far_below_the_one_before_says_so(best: float, n_warnings: int) -> None:
    now = MemoryCurve(points=(bandwidth(best),))

    found = calibrate(
        FACTS, before=calibration(), instruments=instruments(ram=lambda *_, **__: now)
    )

    told = [text for text in found.warnings if "calibration before" in text]
    assert len(told) == n_warnings
    assert all("78% of the 40.0 GB/s" in text for text in told)
