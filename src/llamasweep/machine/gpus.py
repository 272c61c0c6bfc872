"""Which GPUs are here, through NVML and sysfs.

NVML is imported only when asked for, and may be replaced by a stand-in. A GPU that is plugged in
but whose driver does not answer is named in the reasons, because it would go unmeasured.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamasweep.machine.text_files import read_int, read_text

_VENDORS = {0x10DE: "nvidia", 0x1002: "amd", 0x8086: "intel"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One device.

    vendor: nvidia, amd, intel or apple. memory_bytes: of its own, None where it has none or does
    not tell. shares_system_memory: None where that is not known. spec_bandwidth_bytes_per_s: clock
    * 2 * bus width (NVML's memory clock is half the data rate), None where not told.
    """

    vendor: str
    name: str
    index: int
    memory_bytes: int | None = None
    driver: str | None = None
    shares_system_memory: bool | None = None
    memory_bus_bits: int | None = None
    memory_clock_max_mhz: int | None = None
    power_limit_w: float | None = None

    @property
    def spec_bandwidth_bytes_per_s(self) -> float | None:
        """MHz * 2 * bits / 8 * 10^6 (CUDA C++ Best Practices Guide, theoretical bandwidth)."""
        if self.memory_bus_bits is None or self.memory_clock_max_mhz is None:
            return None
        return self.memory_clock_max_mhz * 2 * self.memory_bus_bits / 8 * 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class NvmlLibrary:
    """NVML, initialised (`module`), or why it is not there (`reason`)."""

    module: Any = None
    reason: str | None = None


def open_nvml(load: Callable[[], Any] | None = None) -> NvmlLibrary:
    """Load and initialise NVML. load: what imports the library, by default `pynvml`."""
    try:
        module = load() if load is not None else importlib.import_module("pynvml")
    except ImportError:
        return NvmlLibrary(reason="the Python package nvidia-ml-py is not installed")
    try:
        module.nvmlInit()
    except module.NVMLError as problem:
        return NvmlLibrary(reason=f"NVML does not answer: {problem}")
    return NvmlLibrary(module=module)


def read_gpus(root: Path, nvml: NvmlLibrary, reasons: dict[str, str]) -> tuple[Gpu, ...]:
    """All GPUs. Writes `gpu_nvidia` and the like into reasons where a kind cannot be read."""
    plugged = _plugged_in(root)
    gpus = [*_nvidia(nvml, reasons), *_amd_and_intel(root)]
    if nvml.reason is not None:
        seen = plugged.get("nvidia", 0)
        reasons["gpu_nvidia"] = (
            f"{seen} NVIDIA device(s) on the PCI bus, but {nvml.reason}" if seen else nvml.reason
        )
    for vendor in ("amd", "intel"):
        n_unseen = plugged.get(vendor, 0) - sum(gpu.vendor == vendor for gpu in gpus)
        if n_unseen > 0:
            reasons[f"gpu_{vendor}"] = (
                f"{n_unseen} device(s) on the PCI bus without a kernel driver (no /sys/class/drm)"
            )
    return tuple(gpus)


def _plugged_in(root: Path) -> dict[str, int]:
    """Display controllers (PCI class 3) by vendor, whether or not a driver knows them."""
    counts: dict[str, int] = {}
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor_id, pci_class = (read_int(device / name, 16) for name in ("vendor", "class"))
        if vendor_id is None or pci_class is None:
            continue
        vendor = _VENDORS.get(vendor_id)
        if vendor is not None and pci_class >> 16 == 3:
            counts[vendor] = counts.get(vendor, 0) + 1
    return counts


def _nvidia(nvml: NvmlLibrary, reasons: dict[str, str]) -> list[Gpu]:
    library = nvml.module
    if library is None:
        return []

    def ask(function: str, *arguments: Any) -> Any:
        """The answer, None where this device or this library cannot give it."""
        try:
            return getattr(library, function)(*arguments)
        except (library.NVMLError, AttributeError):
            return None

    driver = _decoded(ask("nvmlSystemGetDriverVersion"))
    gpus = []
    for index in range(ask("nvmlDeviceGetCount") or 0):
        handle = ask("nvmlDeviceGetHandleByIndex", index)
        if handle is None:
            reasons[f"gpu_nvidia_{index}"] = "NVML lists the device but does not open it"
            continue
        memory = ask("nvmlDeviceGetMemoryInfo", handle)
        limit_mw = ask("nvmlDeviceGetEnforcedPowerLimit", handle)
        if memory is None:
            reasons[f"gpu_nvidia_{index}_memory_bytes"] = (
                "NVML does not tell the memory (chips with unified memory answer NOT_SUPPORTED)"
            )
        gpus.append(
            Gpu(
                vendor="nvidia",
                name=_decoded(ask("nvmlDeviceGetName", handle)) or "unnamed NVIDIA device",
                index=index,
                memory_bytes=None if memory is None else int(memory.total),
                driver=driver,
                shares_system_memory=None if memory is None else False,
                memory_bus_bits=ask("nvmlDeviceGetMemoryBusWidth", handle),
                memory_clock_max_mhz=ask(
                    "nvmlDeviceGetMaxClockInfo", handle, getattr(library, "NVML_CLOCK_MEM", 2)
                ),
                power_limit_w=None if limit_mw is None else limit_mw / 1000,
            )
        )
    return gpus


def _decoded(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return None if value is None else str(value)


def _amd_and_intel(root: Path) -> list[Gpu]:
    gpus: list[Gpu] = []
    for card in sorted((root / "sys/class/drm").glob("card[0-9]*")):
        if "-" in card.name:  # card0-HDMI-A-1 is a connector
            continue
        vendor = _VENDORS.get(read_int(card / "device/vendor", 16) or 0)
        if vendor not in ("amd", "intel"):
            continue
        memory_bytes = next(
            (n for n in (read_int(card / file) for file in _MEMORY_FILES[vendor]) if n), None
        )
        # An APU's carve-out is RAM too: amdgpu gives its GTT (system memory) more room than that.
        gtt_bytes = read_int(card / "device/mem_info_gtt_total")
        shares = memory_bytes is None or (gtt_bytes is not None and gtt_bytes > 4 * memory_bytes)
        gpus.append(
            Gpu(
                vendor=vendor,
                name=read_text(card / "device/product_name")
                or f"{vendor.upper()} GPU {read_text(card / 'device/device') or '(no id)'}",
                index=sum(gpu.vendor == vendor for gpu in gpus),
                memory_bytes=memory_bytes,
                driver=(card / "device/driver").resolve().name
                if (card / "device/driver").exists()
                else None,
                shares_system_memory=shares,
            )
        )
    return gpus


_MEMORY_FILES = {
    "amd": ("device/mem_info_vram_total",),
    "intel": ("device/tile0/physical_vram_size_bytes", "lmem_total_bytes"),
}
