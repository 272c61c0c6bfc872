"""Rigs from names, words and numbers, and which peak bounds a model on them."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import quantised

from llamasweep.ceilings.rig import Rig, rig_of, with_peak, with_sizes
from llamasweep.errors import UsageError
from llamasweep.gguf.facts import ModelFacts


def host_bytes_per_s(rig: Rig) -> float | None:
    assert rig.host is not None
    return rig.host.bytes_per_s


def test_a_card_is_an_accelerator_and_a_chip_is_a_host() -> None:
    card, chip = rig_of(["RTX 4090"]), rig_of(["M4 Pro"])

    assert card.host is None
    assert [p.name for p in card.accelerators] == ["GeForce RTX 4090"]
    assert card.accelerators[0].memory_bytes == 24 * 2**30
    assert chip.accelerators == ()
    assert host_bytes_per_s(chip) == 273e9


@pytest.mark.parametrize(
    ("words", "gb_per_s"),
    [
        ("DDR5-5600x2", 89.6),
        ("DDR4-3200 dual channel", 51.2),
        ("2xDDR5-5600", 89.6),
        ("LPDDR5X-8533x128bit", 136.528),
        ("Raspberry Pi 5", 17.1),
    ],
)
def test_memory_is_a_host_by_its_words(words: str, gb_per_s: float) -> None:
    for rig in (rig_of([words]), rig_of(memory=words)):
        assert host_bytes_per_s(rig) == pytest.approx(gb_per_s * 1e9)


def test_several_devices_are_joined_and_counted() -> None:
    rig = rig_of(["2 x RTX 3090 + RTX 3060 12GB", "DDR5-5600x2"])

    assert rig.name == "2 x GeForce RTX 3090 + GeForce RTX 3060 12GB + DDR5-5600 x2"
    assert rig.processors[0].name == "DDR5-5600 x2"
    assert rig.tensor_split == (24 * 2**30, 24 * 2**30, 12 * 2**30)


def test_a_plus_in_a_name_joins_nothing() -> None:
    assert rig_of(["Ryzen AI Max+ 395"]).name == "Ryzen AI Max+ 395 (Radeon 8060S)"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["H100"], "can be 2 devices"),
        (["RTX 9999"], "no 'RTX 9999'"),
        (["2 x M4 Pro"], "cannot be there several times"),
        (["M4 Pro", "DDR5-5600x2"], "two memories of one host"),
        (["LPDDR5-6400x2"], "width of the whole bus"),
        (["17 x RTX 3090"], "17 accelerators"),
        ([""], "no ''"),
        (["\x1b[2J" * 99], "no "),
    ],
)
def test_what_cannot_be_a_rig_is_refused(names: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words) as why:
        rig_of(names)

    assert "\x1b" not in why.value.message


@pytest.mark.parametrize("number", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bandwidth_is_above_zero(number: float) -> None:
    with pytest.raises(UsageError, match="bandwidth"):
        rig_of(bandwidth_bytes_per_s=number)


def test_sizes_and_peak_can_be_given() -> None:
    rig = with_sizes(rig_of(["RTX 3060 12GB"]), ram_bytes=64 * 2**30, vram_bytes=8 * 2**30)

    assert rig.host is not None
    assert (rig.host.memory_bytes, rig.host.bandwidth) == (64 * 2**30, None)
    assert rig.accelerators[0].memory_bytes == 8 * 2**30
    peak = with_peak(rig, 5e13).accelerators[0].peak_quantised
    assert peak is not None
    assert (peak.flop_per_s, peak.basis, peak.is_reference) == (5e13, "given", False)
    host = with_peak(rig_of(["DDR5-5600x2"]), 1e12).host
    assert host is not None
    assert host.peak_float is not None


@pytest.mark.parametrize(
    ("device", "model", "tera", "is_reference"),
    [
        ("RTX 4090", quantised("Qwen3-4B", "Q4_K_M"), 660.6, False),  # INT8 matrix units
        ("RTX 4090", quantised("Qwen3-4B", "F16"), 330.3, False),  # FP16 summing in FP16
        ("RTX 4090", quantised("gpt-oss-20b", "MXFP4"), 660.6, True),  # FP4 units may be faster
        ("M4 Pro", quantised("Qwen3-4B", "Q4_K_M"), 9.2, True),
        ("Tesla V100 PCIe", quantised("Qwen3-4B", "F16"), 112.0, False),
    ],
)
def test_the_peak_follows_the_types_of_the_weights(
    device: str, model: ModelFacts, tera: float, is_reference: bool
) -> None:
    rig = rig_of([device])
    peak = (rig.accelerators or rig.processors)[0].peak_for(model)

    assert peak is not None
    assert peak.flop_per_s == pytest.approx(tera * 1e12, rel=0.02)
    assert peak.is_reference is is_reference


def test_plain_memory_has_no_peak() -> None:
    host = rig_of(["DDR5-5600x2"]).host
    assert host is not None
    assert host.peak_for(quantised("Qwen3-4B", "Q4_K_M")) is None
