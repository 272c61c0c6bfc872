"""The device table is whole, and a device is found by what people and drivers call it."""

from __future__ import annotations

import re

import pytest

from llamasweep.ceilings.devices import (
    devices,
    find_device,
    find_devices,
    match_reported,
    nearest_names,
)
from llamasweep.errors import UsageError

GIB = 2**30


def test_every_figure_has_its_source() -> None:
    assert len(devices()) == 194
    for device in devices():
        assert device.source, device.name
        assert device.bandwidth_source, device.name
        is_tensor = (
            device.fp16_tensor_fp16_accumulate_flop_per_s
            or device.fp16_tensor_fp32_accumulate_flop_per_s
        )
        assert not is_tensor or device.tensor_source, device.name


def test_absent_figures_are_none_and_present_ones_plausible() -> None:
    for device in devices():
        rates = (
            device.fp16_tensor_fp16_accumulate_flop_per_s,
            device.fp16_tensor_fp32_accumulate_flop_per_s,
            device.fp32_flop_per_s,
            device.fp16_vector_flop_per_s,
            device.int8_op_per_s,
        )
        assert all(rate is None or 1e10 < rate < 1e16 for rate in rates), device.name
        assert 1e10 < device.bandwidth_bytes_per_s < 1e13, device.name
        assert device.memory_bytes is None or GIB <= device.memory_bytes <= 512 * GIB


def test_names_and_aliases_are_unique_and_found_by_themselves() -> None:
    names = [name.casefold() for d in devices() for name in (d.name, *d.aliases)]
    assert len(set(names)) == len(names)
    for device in devices():
        for name in (device.name, device.name.upper(), *device.aliases):
            assert find_device(name) is device


def test_platforms_are_channels_times_eight_bytes_times_transfers() -> None:
    platforms = [d for d in devices() if d.device_class == "cpu platform"]
    assert len(platforms) == 34
    for device in platforms:
        match = re.fullmatch(r"(\d+) x 64-bit @ (\d+) MT/s", device.memory_type or "")
        assert match is not None, device.name
        computed = int(match[1]) * 8 * int(match[2]) * 1e6
        assert device.bandwidth_bytes_per_s == pytest.approx(computed, abs=0.05e9), device.name


def test_a_row_by_hand() -> None:
    card = find_device("GeForce RTX 4090")

    assert card.bandwidth_bytes_per_s == 1008e9
    assert card.memory_bytes == 24 * GIB
    assert card.fp16_tensor_fp16_accumulate_flop_per_s == 330.3e12
    assert card.fp16_tensor_fp32_accumulate_flop_per_s == 165.2e12
    assert card.int8_op_per_s == 660.6e12
    assert (card.vendor, card.device_class, card.memory_type) == ("NVIDIA", "gpu", "GDDR6X")
    assert find_device("Tesla P40").fp16_tensor_fp16_accumulate_flop_per_s is None


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("rtx4090", "GeForce RTX 4090"),
        ("4090", "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("4070ti", "GeForce RTX 4070 Ti"),
        ("4070 ti super", "GeForce RTX 4070 Ti SUPER"),
        ("M4 Pro", "Apple M4 Pro (20-core GPU)"),
        ("m4pro", "Apple M4 Pro (20-core GPU)"),
        ("Apple M4", "Apple M4 (10-core GPU)"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM 80GB"),
        ("NVIDIA H200", "H200 SXM 141GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("Tesla V100-PCIE-32GB", "Tesla V100 PCIe 32GB"),
        ("NVIDIA GB10", "DGX Spark (GB10)"),
        ("DGX Spark", "DGX Spark (GB10)"),
        ("Strix Halo", "Ryzen AI Max+ 395 (Radeon 8060S)"),
        ("AMD Ryzen AI Max+ 395", "Ryzen AI Max+ 395 (Radeon 8060S)"),
        ("7900xtx", "Radeon RX 7900 XTX"),
        ("Intel(R) Arc(TM) A770 Graphics", "Arc A770 16GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("A6000", "RTX A6000"),
    ],
)
def test_a_device_is_found_as_people_and_drivers_write_it(asked: str, name: str) -> None:
    assert find_device(asked).name == name


@pytest.mark.parametrize(
    "asked",
    [
        "NVIDIA GeForce RTX 3060 Laptop GPU",
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA H200 NVL",
        "Quadro RTX 5000",
        "Apple M1 Max (24-core GPU)",
        "Radeon RX 7900",
        "",
        "GPU",
        "()",
        "x" * 100_000,
    ],
)
def test_another_device_is_never_taken_for_it(asked: str) -> None:
    assert find_devices(asked) == ()


def test_a_name_of_several_devices_asks_which() -> None:
    with pytest.raises(UsageError, match="'M3 Max' can be 2 devices") as problem:
        find_device("M3 Max")

    assert "'Apple M3 Max (30-core GPU)', 'Apple M3 Max (40-core GPU)'" in (
        problem.value.hint or ""
    )


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(UsageError, match="no 'RTX 4900'") as problem:
        find_device("RTX 4900")

    assert "'GeForce RTX 4090'" in (problem.value.hint or "")
    assert len(nearest_names("RTX 4900")) <= 3


def test_hostile_names_are_shown_escaped_and_cut() -> None:
    with pytest.raises(UsageError) as problem:
        find_device("\x1b[2J" + "?" * 500)

    assert "\x1b" not in problem.value.message
    assert len(problem.value.message) < 150


def test_memory_tells_variants_of_one_name_apart() -> None:
    small = match_reported("NVIDIA GeForce RTX 4060 Ti", 8188 * 2**20)
    large = match_reported("NVIDIA GeForce RTX 4060 Ti", 16380 * 2**20)

    assert small is not None
    assert large is not None
    assert (small.name, large.name) == ("GeForce RTX 4060 Ti 8GB", "GeForce RTX 4060 Ti 16GB")
    assert match_reported("NVIDIA GeForce RTX 4060 Ti", None) is None


def test_error_correction_costs_memory_but_not_the_name() -> None:
    card = match_reported("NVIDIA L4", 23034 * 2**20)
    assert card is not None
    assert card.name == "L4"


def test_a_variant_with_other_memory_is_not_in_the_table() -> None:
    assert match_reported("NVIDIA GeForce RTX 3060", 8192 * 2**20) is None
