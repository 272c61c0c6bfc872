"""Memory bandwidth by specification: of the RAM and of each GPU, each with its source or a reason.

From the firmware's list of modules, NVML's clock and width, and the device table; measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamasweep.ceilings.devices import Device, match_reported, socs_named_in
from llamasweep.machine import amd_memory, firmware_tables, windows_memory
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.gpus import Gpu
from llamasweep.machine.memory_modules import summarise

AGREES_WITHIN = 0.10
"""Driver and table may differ by this much: makers round, and boards of one name vary a little."""

_APPLE_BY_CORES = {
    ("M3 Max", 10): 300e9,
    ("M3 Max", 12): 400e9,
    ("M4 Max", 10): 410e9,
    ("M4 Max", 12): 546e9,
}
"""(chip, performance cores) -> bytes per second, where one name is sold with two memory widths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecFigure:
    """What the specification allows.

    of: "RAM" or the GPU's name. bytes_per_s: None where it is not known, then `reason` says why.
    source: where it comes from, with the numbers. warning: what does not fit together.
    """

    of: str
    bytes_per_s: float | None
    source: str | None = None
    reason: str | None = None
    warning: str | None = None


def ram_spec(
    facts: MachineFacts,
    *,
    root: Path = Path("/"),
    windows_modules: Callable[[], list[dict[str, str]]] = windows_memory.memory_modules,
) -> SpecFigure:
    """Of the RAM: the firmware's modules, else the device table's figure of a known chip or board.

    root and windows_modules: stand-ins.
    """
    if facts.spec_ram_bandwidth_bytes_per_s is not None:
        about = {
            "ram_type": facts.ram_type,
            "ram_speed_mts": facts.ram_speed_mts,
            "ram_bus_bits": facts.ram_width_bits,
        }
        return _from_modules(about, {}, "the firmware's list of modules (udev)")
    reasons: dict[str, str] = dict(facts.reasons)
    if facts.os == "Linux":
        table = firmware_tables.read_table(root)
        modules = [] if table is None else firmware_tables.memory_modules(table)
        source = "the firmware's list of modules (SMBIOS)"
    elif facts.os == "Windows":
        modules = windows_modules()
        source = "Windows' list of modules (Win32_PhysicalMemory)"
    else:
        modules, source = [], ""
    if modules:
        told = _from_modules(summarise(modules, reasons), reasons, source)
        if told.bytes_per_s is not None:
            return told
    return _of_known_chip(facts, reasons)


def _from_modules(about: dict[str, Any], reasons: dict[str, str], source: str) -> SpecFigure:
    bits, speed = about.get("ram_bus_bits"), about.get("ram_speed_mts")
    if not bits or not speed:
        return _unknown_ram(reasons)
    return SpecFigure(
        of="RAM",
        bytes_per_s=bits / 8 * speed * 1e6,
        source=f"{source}: {about.get('ram_type') or 'RAM'}, {bits} bits / 8 x {speed} MT/s",
    )


def _of_known_chip(facts: MachineFacts, reasons: dict[str, str]) -> SpecFigure:
    """Chips and boards whose memory is soldered on: their name tells the bandwidth."""
    named = socs_named_in(facts.cpu_name or "") or socs_named_in(facts.system_name or "")
    rates = {device.bandwidth_bytes_per_s for device in named}
    if len(rates) > 1:
        rates &= {
            rate
            for (chip, n_fast), rate in _APPLE_BY_CORES.items()
            if chip in (facts.cpu_name or "") and n_fast == facts.n_cores_performance
        }
    fitting = [device for device in named if device.bandwidth_bytes_per_s in rates]
    if len(rates) != 1 or not fitting:
        return _unknown_ram(reasons)
    wide = " (the whole chip; its CPU cores alone may reach less)" if facts.os == "Darwin" else ""
    return SpecFigure(
        of="RAM",
        bytes_per_s=fitting[0].bandwidth_bytes_per_s,
        source=f"device table, {fitting[0].name}: {fitting[0].bandwidth_source}{wide}",
    )


def _unknown_ram(reasons: dict[str, str]) -> SpecFigure:
    why = next(
        (
            reasons[key]
            for key in ("ram_channels", "ram_bus_bits", "ram_speed_mts")
            if key in reasons
        ),
        "the system does not tell speed and channels",
    )
    return SpecFigure(of="RAM", bytes_per_s=None, reason=why)


def gpu_specs(
    facts: MachineFacts,
    ram: SpecFigure,
    *,
    root: Path = Path("/"),
    load_amdsmi: Callable[[], Any] | None = None,
) -> tuple[SpecFigure, ...]:
    """Of each GPU, in the order of the facts. root and load_amdsmi: stand-ins."""
    specs = []
    for gpu in facts.gpus:
        if gpu.vendor == "nvidia":
            specs.append(_nvidia(gpu))
            continue
        if gpu.shares_system_memory:
            specs.append(_shared(gpu, ram))
            continue
        names = amd_memory.names(root, gpu.index) if gpu.vendor == "amd" else ()
        device = _known([*names, gpu.name], gpu.memory_bytes)
        if device is not None:
            specs.append(_from_table(gpu, device))
        elif gpu.vendor == "amd":
            specs.append(_amd(gpu, load_amdsmi))
        else:
            specs.append(_unknown_gpu(gpu, "its driver tells no width of the memory"))
    return tuple(specs)


def _known(names: Sequence[str], memory_bytes: int | None) -> Device | None:
    for name in names:
        device = match_reported(name, memory_bytes)
        if device is not None:
            return device
    return None


def _nvidia(gpu: Gpu) -> SpecFigure:
    """NVML's clock and width, checked against the table."""
    told, device = gpu.spec_bandwidth_bytes_per_s, match_reported(gpu.name, gpu.memory_bytes)
    if told is None:
        if device is not None:
            return _from_table(gpu, device)
        return _unknown_gpu(gpu, "NVML tells no clock or no width of the memory")
    source = f"NVML: {gpu.memory_clock_max_mhz} MHz x 2 x {gpu.memory_bus_bits} bits / 8"
    if device is None:
        return SpecFigure(of=gpu.name, bytes_per_s=told, source=source)
    table = device.bandwidth_bytes_per_s
    source += f"; the device table says {table / 1e9:g} GB/s for {device.name}"
    if abs(told / table - 1) <= AGREES_WITHIN:
        return SpecFigure(of=gpu.name, bytes_per_s=told, source=source)
    warning = f"NVML's {told / 1e9:.4g} GB/s and the device table's {table / 1e9:g} GB/s do not fit"
    if any(abs(told / table / factor - 1) <= AGREES_WITHIN for factor in (0.5, 2, 4)):
        return SpecFigure(
            of=gpu.name,
            bytes_per_s=table,
            source=f"device table, {device.name}: {device.bandwidth_source}",
            warning=f"{warning}: its clock is counted differently here, the table's figure is used",
        )
    return SpecFigure(of=gpu.name, bytes_per_s=told, source=source, warning=warning)


def _amd(gpu: Gpu, load_amdsmi: Callable[[], Any] | None) -> SpecFigure:
    told, why = amd_memory.reported_bandwidth(gpu.index, load_amdsmi)
    if told is None:
        return _unknown_gpu(gpu, why)
    return SpecFigure(of=gpu.name, bytes_per_s=told, source=why)


def _from_table(gpu: Gpu, device: Device) -> SpecFigure:
    return SpecFigure(
        of=gpu.name,
        bytes_per_s=device.bandwidth_bytes_per_s,
        source=f"device table, {device.name}: {device.bandwidth_source}",
    )


def _shared(gpu: Gpu, ram: SpecFigure) -> SpecFigure:
    if ram.bytes_per_s is None:
        why = f"it uses the RAM, whose bandwidth is not known: {ram.reason}"
        return SpecFigure(of=gpu.name, bytes_per_s=None, reason=why)
    return SpecFigure(
        of=gpu.name, bytes_per_s=ram.bytes_per_s, source=f"it uses the RAM; {ram.source}"
    )


def _unknown_gpu(gpu: Gpu, why: str) -> SpecFigure:
    return SpecFigure(
        of=gpu.name, bytes_per_s=None, reason=f"{why}, and the device table has no {gpu.name!r}"
    )
