"""What this computer is: processor, memory, GPUs, system. Reads, never changes and never guesses.

What the system does not tell is None, and `reasons` says why. No host name, no user name and no
serial number is read. Readers take a root folder, so that another `/proc` and `/sys` can stand in.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from llamasweep.machine import linux, other_systems
from llamasweep.machine.gpus import Gpu, NvmlLibrary, open_nvml, read_gpus
from llamasweep.machine.memory_modules import read_memory_modules


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFacts:
    """The facts of a machine; None is "the system does not tell", with its reason in `reasons`.

    os: Linux, Darwin or Windows. os_name: "Debian GNU/Linux 12 (bookworm)". system_name: maker and
    product, such as "LENOVO 21HD". n_cores_physical, n_cores_logical, n_cores_performance: of the
    whole machine; performance cores are all of them where the cores are equal. n_cores_allowed,
    n_cpus_allowed: physical cores and logical CPUs that this process may use (affinity). cpu_quota:
    CPUs that the control group grants, None if unlimited. cpu_features: vector and matrix
    extensions. ram_speed_mts: configured speed in megatransfers per second. ram_channels: distinct
    channels named by the modules' locators. ram_bus_bits: width of all channels. hypervisor: name,
    "" on bare metal. governor: of the CPU frequency, all that are in use. power_source: mains or
    battery.
    """

    os: str
    os_name: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    system_name: str | None = None
    cpu_name: str | None = None
    n_cores_physical: int | None = None
    n_cores_logical: int | None = None
    n_cores_performance: int | None = None
    n_cores_allowed: int | None = None
    n_cpus_allowed: int | None = None
    cpu_quota: float | None = None
    cpu_features: tuple[str, ...] = ()
    cpu_max_mhz: float | None = None
    last_level_cache_bytes: int | None = None
    n_numa_nodes: int | None = None
    ram_bytes: int | None = None
    ram_type: str | None = None
    ram_speed_mts: int | None = None
    ram_channels: int | None = None
    ram_bus_bits: int | None = None
    hypervisor: str | None = None
    governor: str | None = None
    frequency_driver: str | None = None
    energy_preference: str | None = None
    power_source: str | None = None
    gpus: tuple[Gpu, ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `reasons` becomes an object, and the fingerprint stands beside."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        plain["reasons"] = dict(self.reasons)
        plain["fingerprint"] = self.fingerprint
        return plain

    @property
    def fingerprint(self) -> str:
        """16 hex digits over what makes this machine as fast as it is.

        Hardware, operating system and hypervisor. Not in it: what changes from day to day on one
        machine (kernel, driver, governor, power source, affinity), which is recorded beside it so
        that a comparison can show it. RAM counts in whole GiB, because the kernel's share of it
        differs from boot to boot.
        """
        about = {name: getattr(self, name) for name in _FINGERPRINT_FIELDS}
        about["ram_gib"] = None if self.ram_bytes is None else round(self.ram_bytes / 2**30)
        about["gpus"] = [(gpu.vendor, gpu.name, gpu.memory_bytes) for gpu in self.gpus]
        text = json.dumps(about, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def ram_width_bits(self) -> int | None:
        """Of all channels: as told, else 64 bits a channel; None where neither is known.

        LPDDR has narrower channels, and is not counted. A module of DDR5 has two 32-bit sub-channels, which together
        are the same 64 bits.
        """
        is_narrow = (self.ram_type or "").upper().startswith("LPDDR")
        if self.ram_bus_bits is not None or self.ram_channels is None or is_narrow:
            return self.ram_bus_bits
        return self.ram_channels * 64

    @property
    def spec_ram_bandwidth_bytes_per_s(self) -> float | None:
        """bus width / 8 * transfers per second; None where either is unknown."""
        bits = self.ram_width_bits
        if bits is None or self.ram_speed_mts is None:
            return None
        return bits / 8 * self.ram_speed_mts * 1e6


_FINGERPRINT_FIELDS = (
    "os",
    "architecture",
    "system_name",
    "cpu_name",
    "n_cores_physical",
    "n_cores_logical",
    "n_cores_performance",
    "cpu_features",
    "last_level_cache_bytes",
    "n_numa_nodes",
    "ram_type",
    "ram_speed_mts",
    "ram_channels",
    "hypervisor",
)


def read_facts(
    root: Path = Path("/"), *, os: str | None = None, nvml: NvmlLibrary | None = None
) -> MachineFacts:
    """The facts of this machine. root: where `/proc`, `/sys` and `/run` are.

    os: as `platform.system()` names it, by default this one. nvml: a stand-in for the library.
    """
    os = platform.system() if os is None else os
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    if os == "Linux":
        for part in (linux.read_system, linux.read_cpu, linux.read_memory, linux.read_power):
            values.update(part(root, reasons))
        values.update(read_memory_modules(root, reasons))
    else:
        values.update(other_systems.read(os, reasons))
    values.setdefault("architecture", platform.machine() or None)
    values["gpus"] = read_gpus(root, open_nvml() if nvml is None else nvml, reasons)
    known = {field.name for field in fields(MachineFacts)}
    for name in sorted(known - {"os", "gpus", "reasons", "cpu_quota", "cpu_features"}):
        if values.get(name) is None:
            reasons.setdefault(name, "the system does not tell")
    return MachineFacts(os=os, reasons=tuple(sorted(reasons.items())), **values)
