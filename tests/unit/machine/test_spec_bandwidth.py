"""Bandwidth by specification: the figure with its source, or None with a reason, on made-up machines."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.machine.trees import FakeNvml, laptop_files, write_tree

from llamasweep.machine import firmware_tables, windows_memory
from llamasweep.machine.amd_memory import reported_bandwidth
from llamasweep.machine.facts import MachineFacts, read_facts
from llamasweep.machine.gpus import Gpu, NvmlLibrary, open_nvml
from llamasweep.machine.memory_modules import summarise
from llamasweep.machine.spec_bandwidth import SpecFigure, gpu_specs, ram_spec

NO_NVML = NvmlLibrary(reason="no NVML here")
NO_RAM = SpecFigure(of="RAM", bytes_per_s=None, reason="nobody tells")


def lpddr_files(n_chips: int, width_bits: int) -> dict[str, str]:
    """A laptop whose firmware lists each soldered chip with a channel of its own."""
    files = laptop_files()
    lines = []
    for n in range(n_chips):
        controller, channel = divmod(n, 4)
        lines += [
            f"E:MEMORY_DEVICE_{n}_SIZE=4294967296",
            f"E:MEMORY_DEVICE_{n}_TYPE=LPDDR5",
            f"E:MEMORY_DEVICE_{n}_LOCATOR=Controller{controller}-Channel{'ABCD'[channel]}",
            f"E:MEMORY_DEVICE_{n}_DATA_WIDTH={width_bits}",
            f"E:MEMORY_DEVICE_{n}_CONFIGURED_SPEED_MTS=6400",
        ]
    files["run/udev/data/+dmi:id"] = "\n".join(lines)
    return files


def smbios_module(
    *, size_mib: int, kind: int, speed: int, locator: str, width: int = 64, bank: str = ""
) -> bytes:
    """A type 17 structure of SMBIOS 3.2, 84 bytes long, with its strings."""
    body = bytearray(84)
    struct.pack_into("<BBH", body, 0, 17, 84, 0x1100)
    struct.pack_into("<H", body, 0x0A, width)
    struct.pack_into("<H", body, 0x0C, 0x7FFF if size_mib > 0x7FFE else size_mib)
    body[0x10], body[0x11], body[0x12] = 1, 2 if bank else 0, kind
    struct.pack_into("<H", body, 0x15, speed + 400)
    struct.pack_into("<I", body, 0x1C, size_mib)
    struct.pack_into("<H", body, 0x20, speed)
    return bytes(body) + locator.encode() + b"\0" + (bank.encode() + b"\0" if bank else b"") + b"\0"


BIOS = struct.pack("<BBH", 0, 4, 0) + b"vendor\0\0"
END = struct.pack("<BBH", 127, 4, 1) + b"\0\0"


def test_modules_of_the_firmware_are_the_source(tmp_path: Path) -> None:
    facts = read_facts(write_tree(tmp_path, laptop_files()), os="Linux", nvml=NO_NVML)

    spec = ram_spec(facts, root=tmp_path)

    assert spec.bytes_per_s == 83.2e9
    assert spec.source == "the firmware's list of modules (udev): DDR5, 128 bits / 8 x 5200 MT/s"


def test_channels_of_lpddr_are_not_64_bits_wide(tmp_path: Path) -> None:
    facts = read_facts(write_tree(tmp_path, lpddr_files(8, 16)), os="Linux", nvml=NO_NVML)

    assert (facts.ram_channels, facts.ram_bus_bits) == (8, 128)
    assert ram_spec(facts, root=tmp_path).bytes_per_s == 102.4e9


def test_lpddr_without_a_width_has_no_figure() -> None:
    facts = MachineFacts(os="Linux", ram_type="LPDDR5", ram_channels=8, ram_speed_mts=6400)

    assert facts.spec_ram_bandwidth_bytes_per_s is None


def test_root_reads_the_raw_table_where_udev_has_none(tmp_path: Path) -> None:
    table = BIOS
    table += smbios_module(size_mib=32768, kind=34, speed=4800, locator="DIMM_A1")
    table += smbios_module(size_mib=0, kind=2, speed=0, locator="DIMM_A2")
    table += smbios_module(size_mib=16384, kind=34, speed=4800, locator="DIMM_B1") + END
    path = tmp_path / "sys/firmware/dmi/tables/DMI"
    path.parent.mkdir(parents=True)
    path.write_bytes(table)
    facts = read_facts(tmp_path, os="Linux", nvml=NO_NVML)

    spec = ram_spec(facts, root=tmp_path)

    assert spec.bytes_per_s == 76.8e9
    assert spec.source == "the firmware's list of modules (SMBIOS): DDR5, 128 bits / 8 x 4800 MT/s"


@pytest.mark.parametrize("cut", [0, 1, 3, 5, 12, 30, 60, 95, 100, 130])
def test_a_broken_table_gives_what_is_whole(cut: int) -> None:
    one = smbios_module(size_mib=8192, kind=26, speed=3200, locator="A", bank="P0 CHANNEL A")
    table = BIOS + one + one

    modules = firmware_tables.memory_modules(table[:cut])

    assert len(modules) == (1 if cut >= len(BIOS + one) else 0)
    for module in modules:
        assert module["SIZE"] == str(8 * 2**30)
        assert module["BANK_LOCATOR"] == "P0 CHANNEL A"


@pytest.mark.parametrize("seed", range(30))
def test_any_bytes_are_a_table_that_ends(seed: int) -> None:
    import random

    table = random.Random(seed).randbytes(4000)
    assert isinstance(firmware_tables.memory_modules(bytes([17, 84]) + table), list)


def test_no_modules_and_no_known_chip_is_a_reason(tmp_path: Path) -> None:
    facts = read_facts(tmp_path, os="Linux", nvml=NO_NVML)

    spec = ram_spec(facts, root=tmp_path)

    assert (spec.bytes_per_s, spec.source) == (None, None)
    assert "virtual machines" in (spec.reason or "")


@pytest.mark.parametrize(
    ("cpu_name", "n_fast", "gb_per_s"),
    [
        ("Apple M1", 4, 68),
        ("Apple M4 Pro", 10, 273),
        ("Apple M3 Max", 10, 300),
        ("Apple M3 Max", 12, 400),
        ("Apple M4 Max", 12, 546),
        ("Apple M2 Ultra", 16, 800),
    ],
)
def test_apple_chips_are_in_the_table(cpu_name: str, n_fast: int, gb_per_s: float) -> None:
    facts = MachineFacts(os="Darwin", cpu_name=cpu_name, n_cores_performance=n_fast)

    spec = ram_spec(facts)

    assert spec.bytes_per_s == gb_per_s * 1e9
    assert (spec.source or "").startswith(f"device table, {cpu_name} ")


@pytest.mark.parametrize(("cpu_name", "n_fast"), [("Apple M3 Max", 7), ("Apple M99 Pro", 10)])
def test_an_unclear_apple_chip_has_no_figure(cpu_name: str, n_fast: int) -> None:
    facts = MachineFacts(os="Darwin", cpu_name=cpu_name, n_cores_performance=n_fast)

    assert ram_spec(facts).bytes_per_s is None
    assert ram_spec(facts).reason


def test_a_board_of_known_memory_is_found_by_its_name() -> None:
    facts = MachineFacts(os="Linux", system_name="Raspberry Pi 4 Model B Rev 1.5")

    assert ram_spec(facts, root=Path("/nowhere")).bytes_per_s == 12.8e9


def test_a_processor_with_plugged_in_memory_is_not_taken_for_one() -> None:
    name = "AMD Ryzen 7 8845HS w/ Radeon 780M Graphics"
    assert (
        ram_spec(MachineFacts(os="Linux", cpu_name=name), root=Path("/nowhere")).bytes_per_s is None
    )


def windows(rows: Any) -> list[dict[str, str]]:
    asked: list[Sequence[str]] = []

    def ask(argv: Sequence[str]) -> str:
        asked.append(argv)
        return json.dumps(rows)

    modules = windows_memory.memory_modules(ask)
    (argv,) = asked
    assert argv[0].endswith("powershell.exe")
    assert argv[-2] == "-Command"
    return modules


WINDOWS_ROW = {
    "Capacity": 17179869184, "ConfiguredClockSpeed": 5600, "Speed": 5600, "DataWidth": 64,
    "SMBIOSMemoryType": 34, "DeviceLocator": "Controller0-ChannelA-DIMM0", "BankLabel": "BANK 0",
}  # fmt: skip


def test_windows_lists_its_modules() -> None:
    other = {**WINDOWS_ROW, "DeviceLocator": "Controller1-ChannelA-DIMM0", "BankLabel": None}

    spec = ram_spec(
        MachineFacts(os="Windows"), windows_modules=lambda: windows([WINDOWS_ROW, other])
    )

    assert spec.bytes_per_s == 89.6e9
    assert (spec.source or "").startswith("Windows' list of modules (Win32_PhysicalMemory): DDR5")


def test_windows_with_one_module_and_one_without_a_channel() -> None:
    one = ram_spec(MachineFacts(os="Windows"), windows_modules=lambda: windows(WINDOWS_ROW))
    assert one.bytes_per_s == 44.8e9
    nameless = {**WINDOWS_ROW, "DeviceLocator": "DIMM 0"}
    none = ram_spec(MachineFacts(os="Windows"), windows_modules=lambda: windows([nameless]))
    assert none.bytes_per_s is None
    assert none.reason == "the modules' locators name no channels"


@pytest.mark.parametrize("problem", [OSError("gone"), subprocess.TimeoutExpired("p", 1)])
def test_windows_that_does_not_answer_is_a_reason(problem: Exception) -> None:
    def ask(_: Sequence[str]) -> str:
        raise problem

    assert windows_memory.memory_modules(ask) == []
    spec = ram_spec(MachineFacts(os="Windows"), windows_modules=list)
    assert spec.reason


@pytest.mark.parametrize("answer", ["", "{", "null", "[1, null]", '"x"', "[[]]"])
def test_windows_that_answers_nonsense_has_no_modules(answer: str) -> None:
    assert windows_memory.memory_modules(lambda _: answer) == []


def test_a_list_of_empty_slots_says_nothing() -> None:
    assert summarise([{"LOCATOR": "A1"}, {"SIZE": "0"}], {}) == {}


def nvidia(**device: Any) -> SpecFigure:
    nvml = open_nvml(lambda: FakeNvml(device))
    facts = read_facts(Path("/nowhere"), os="Linux", nvml=nvml)
    (spec,) = gpu_specs(facts, NO_RAM, root=Path("/nowhere"))
    return spec


def test_nvml_clock_and_width_agree_with_the_table() -> None:
    spec = nvidia(name="NVIDIA GeForce RTX 4070", total=12282 * 2**20, bits=192, mhz=10501)

    assert spec.bytes_per_s == pytest.approx(504e9, rel=1e-3)
    assert spec.source == (
        "NVML: 10501 MHz x 2 x 192 bits / 8; the device table says 504 GB/s for GeForce RTX 4070"
    )
    assert spec.warning is None


def test_a_clock_that_is_counted_differently_gives_way_to_the_table() -> None:
    spec = nvidia(name="NVIDIA GeForce RTX 5090", total=32607 * 2**20, bits=512, mhz=28000)

    assert spec.bytes_per_s == 1792e9
    assert "counted differently" in (spec.warning or "")


def test_a_card_that_differs_from_the_table_keeps_its_own_figure_with_a_warning() -> None:
    spec = nvidia(name="NVIDIA GeForce RTX 4070", total=12282 * 2**20, bits=192, mhz=13000)

    assert spec.bytes_per_s == pytest.approx(624e9)
    assert "do not fit" in (spec.warning or "")


def test_a_chip_without_clock_or_width_is_looked_up() -> None:
    spec = nvidia(name="NVIDIA GB10")

    assert spec.bytes_per_s == 273e9
    assert (spec.source or "").startswith("device table, DGX Spark (GB10)")


def test_a_card_that_nobody_knows_has_a_reason() -> None:
    spec = nvidia(name="NVIDIA GeForce RTX 3060 Laptop GPU", total=6144 * 2**20)

    assert spec.bytes_per_s is None
    assert "the device table has no 'NVIDIA GeForce RTX 3060 Laptop GPU'" in (spec.reason or "")


def amd_tree(root: Path, *, device: str = "0x744c", revision: str = "0xc8") -> Path:
    card = "sys/class/drm/card0/device"
    return write_tree(
        root,
        {
            f"{card}/vendor": "0x1002",
            f"{card}/device": device,
            f"{card}/revision": revision,
            f"{card}/mem_info_vram_total": str(24560 * 2**20),
            f"{card}/mem_info_gtt_total": str(32 * 2**30),
            "usr/share/libdrm/amdgpu.ids": "1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n"
            "744C,\tCC,\tAMD Radeon RX 7900 XT\nbroken",
        },
    )


def amd_spec(root: Path, load: Any = None) -> SpecFigure:
    facts = read_facts(root, os="Linux", nvml=NO_NVML)
    (spec,) = gpu_specs(facts, NO_RAM, root=root, load_amdsmi=load)
    return spec


def no_library() -> Any:
    raise ImportError("amdsmi")


def amdsmi(answer: Any) -> Any:
    """A stand-in for AMD's library."""

    def get(_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return SimpleNamespace(
        AmdSmiException=RuntimeError,
        amdsmi_init=lambda: None,
        amdsmi_shut_down=lambda: None,
        amdsmi_get_processor_handles=lambda: ["handle"],
        amdsmi_get_gpu_vram_info=get,
    )


def test_an_amd_card_is_named_by_device_and_revision(tmp_path: Path) -> None:
    spec = amd_spec(amd_tree(tmp_path), no_library)

    assert spec.bytes_per_s == 960e9
    assert (spec.source or "").startswith("device table, Radeon RX 7900 XTX")


def test_an_amd_card_without_a_name_asks_the_library(tmp_path: Path) -> None:
    root = amd_tree(tmp_path, revision="0x00")
    answer = {"vram_max_bandwidth": 960, "vram_bit_width": 384}

    spec = amd_spec(root, lambda: amdsmi(answer))

    assert spec.bytes_per_s == 960e9
    assert spec.source == "amdsmi: 960 GB/s at its present clock, 384 bits wide"
    without = amd_spec(root, no_library)
    assert without.bytes_per_s is None
    assert "amdsmi is not installed" in (without.reason or "")


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("busy"), {}, {"vram_max_bandwidth": "N/A"}, {"vram_max_bandwidth": 0}, None],
)
def test_a_library_without_an_answer_is_a_reason(answer: Any) -> None:
    told, why = reported_bandwidth(0, lambda: amdsmi(answer))

    assert told is None
    assert why.startswith("amdsmi")
    assert reported_bandwidth(1, lambda: amdsmi({"vram_max_bandwidth": 1}))[0] is None


def test_graphics_that_use_the_ram_have_its_bandwidth() -> None:
    apu = Gpu(vendor="amd", name="AMD Radeon 780M", index=0, shares_system_memory=True)
    facts = MachineFacts(os="Linux", gpus=(apu,))

    (known,) = gpu_specs(facts, SpecFigure(of="RAM", bytes_per_s=89.6e9, source="udev"))
    (unknown,) = gpu_specs(facts, NO_RAM)

    assert (known.bytes_per_s, known.source) == (89.6e9, "it uses the RAM; udev")
    assert unknown.bytes_per_s is None
    assert "nobody tells" in (unknown.reason or "")


def test_an_intel_card_is_looked_up_by_name() -> None:
    arc = Gpu(vendor="intel", name="Intel Arc B580", index=0, memory_bytes=12 * 2**30)
    other = Gpu(vendor="intel", name="INTEL GPU 0x1234", index=1, memory_bytes=2**30)

    known, unknown = gpu_specs(MachineFacts(os="Linux", gpus=(arc, other)), NO_RAM)

    assert known.bytes_per_s == 456e9
    assert unknown.reason == (
        "its driver tells no width of the memory, and the device table has no 'INTEL GPU 0x1234'"
    )
