"""This machine as a rig: calibration before specification before measuring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.machine.calibrations import bandwidth, calibration

from llamasweep.ceilings.rig import Rig
from llamasweep.machine.calibration import Calibration
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.gpus import Gpu
from llamasweep.machine.memory_curve import MemoryCurve
from llamasweep.machine.own_rig import own_rig
from llamasweep.machine.spec_bandwidth import SpecFigure

FACTS = MachineFacts(os="Linux", ram_bytes=32 * 2**30, cpu_name="A processor")
UNKNOWN = SpecFigure(of="RAM", bytes_per_s=None, reason="nobody tells")


def must_not_measure(*_: Any, **__: Any) -> None:
    raise AssertionError("nothing had to be measured")


def made(
    facts: MachineFacts = FACTS,
    *,
    stored: Calibration | None = None,
    spec: SpecFigure = UNKNOWN,
    measure: Callable[..., Any] = must_not_measure,
) -> Rig:
    return own_rig(facts, load=lambda _: stored, measure=measure, ram_spec_of=lambda _: spec)


def test_a_calibration_is_taken_with_disk_and_matrices_as_a_reference() -> None:
    host = made(stored=calibration()).processors[0]

    assert (host.bytes_per_s, host.memory_bytes) == (40e9, 32 * 2**30)
    assert host.bandwidth is not None
    assert host.bandwidth.basis == "measured"
    assert "calibrated" in (host.source or "")
    assert host.peak_quantised is not None
    assert (host.peak_quantised.flop_per_s, host.peak_quantised.is_reference) == (4e11, True)
    assert host.disk is not None
    assert [tier.bytes_per_s for tier in host.disk] == [3e9, 6e7]


def test_what_the_calibration_warned_of_stands_beside_its_ceilings() -> None:
    rig = made(stored=calibration(warnings=("the load average was 9.0 on 4 CPUs",)))

    assert made(stored=calibration()).notes == ()
    (note,) = rig.notes
    assert note == "the calibration of this machine warned: the load average was 9.0 on 4 CPUs"
    assert note in [a.text for a in rig.assumptions]


def test_one_thread_is_no_plural() -> None:
    curve = MemoryCurve(points=(bandwidth(9, n_threads=1),))
    host = made(stored=calibration(ram=curve)).processors[0]

    assert (host.source or "").endswith("with 1 thread")


def test_without_one_the_specification_is_taken_with_a_note() -> None:
    spec = SpecFigure(of="RAM", bytes_per_s=51.2e9, source="udev")
    for stored in (None, calibration(ram=None, spec_ram=spec)):
        rig = made(stored=stored, spec=spec)

        assert rig.processors[0].bytes_per_s == 51.2e9
        assert rig.processors[0].bandwidth is not None
        assert rig.processors[0].bandwidth.basis == "spec"
        assert "not calibrated" in rig.notes[0]


def test_without_both_it_is_measured_with_a_note() -> None:
    rig = made(measure=lambda *_, **__: bandwidth(20, median=10.0))

    assert rig.processors[0].bytes_per_s == 20e9
    assert "measured in a second, and varied" in rig.notes[0]


def test_what_cannot_be_measured_has_the_reason() -> None:
    def refuse(_: MachineFacts, *, on_reason: Callable[[str], None]) -> None:
        on_reason("too little RAM is free")

    host = made(measure=refuse).processors[0]

    assert host.bandwidth is None
    assert host.reason == "its bandwidth could not be measured: too little RAM is free"


def test_cards_with_memory_of_their_own_are_accelerators() -> None:
    card = Gpu(
        vendor="nvidia",
        name="NVIDIA GeForce RTX 3060",
        index=0,
        memory_bytes=12 * 2**30,
        memory_bus_bits=192,
        memory_clock_max_mhz=7501,
    )
    shared = Gpu(vendor="intel", name="Graphics", index=1, shares_system_memory=True)
    facts = MachineFacts(os="Linux", ram_bytes=32 * 2**30, gpus=(card, shared))

    (found,) = made(facts, stored=calibration()).accelerators

    assert found.bytes_per_s == 7501 * 2 * 192 / 8 * 1e6
    assert found.memory_bytes == 12 * 2**30
    assert found.peak_quantised is not None
    assert found.peak_quantised.flop_per_s == 101.9e12


def test_a_chip_that_shares_its_memory_has_the_peaks_of_the_table() -> None:
    facts = MachineFacts(os="Darwin", ram_bytes=48 * 2**30, cpu_name="Apple M4 Pro")

    rig = made(facts, stored=calibration())

    assert rig.name == "this machine (Apple M4 Pro (20-core GPU))"
    assert rig.processors[0].peak_quantised is not None
    assert rig.processors[0].peak_quantised.flop_per_s == 9.2e12
