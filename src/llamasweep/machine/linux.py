"""Facts of a Linux machine from `/proc`, `/sys` and `/etc/os-release`, all under a given root.

Each reader returns the fields that it found and writes a reason for those that it did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llamasweep.machine.text_files import read_int, read_text

_CPU_FEATURES = frozenset(
    {
        *("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512vl"),
        *("avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16"),
        *("asimd", "asimddp", "fphp", "asimdhp", "i8mm", "bf16", "sve", "sve2", "sme", "sme2"),
    }
)

_HYPERVISOR_WORDS = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("microsoft corporation virtual", "Hyper-V"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute", "Google Compute Engine"),
    ("kvm", "KVM"),
    ("qemu", "KVM or QEMU"),
    ("xen", "Xen"),
    ("parallels", "Parallels"),
)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """`0-3,8` -> (0, 1, 2, 3, 8); parts that make no sense are left out."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part.strip())
        if match:
            cpus.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(cpus)


def read_system(root: Path, reasons: dict[str, str]) -> dict[str, Any]:
    """os_name, kernel, system_name, hypervisor."""
    release = dict(
        line.split("=", 1)
        for line in read_text(root / "etc/os-release").splitlines()
        if "=" in line
    )
    dmi = root / "sys/class/dmi/id"
    product = " ".join(
        text
        for text in (read_text(dmi / "sys_vendor"), read_text(dmi / "product_name"))
        if text and "to be filled" not in text.lower()
    )
    product = product or read_text(root / "proc/device-tree/model").strip("\0")
    if not product:
        reasons["system_name"] = "the firmware's product name is not readable here"
    return {
        "os_name": release.get("PRETTY_NAME", "").strip("\"'") or None,
        "kernel": read_text(root / "proc/sys/kernel/osrelease") or None,
        "system_name": product or None,
        "hypervisor": _hypervisor(root, product),
    }


def _hypervisor(root: Path, product: str) -> str | None:
    """The hypervisor's name, "" where nothing points to one."""
    kind = read_text(root / "sys/hypervisor/type")
    if kind:
        return kind
    if "microsoft" in read_text(root / "proc/sys/kernel/osrelease").lower():
        return "WSL"
    for word, name in _HYPERVISOR_WORDS:
        if word in product.lower():
            return name
    cpuinfo = read_text(root / "proc/cpuinfo")
    if not cpuinfo:
        return None
    is_guest = re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE)
    return "unnamed" if is_guest else ""


def read_cpu(root: Path, reasons: dict[str, str]) -> dict[str, Any]:
    """Name, cores, features, clock and caches of the processor."""
    cpuinfo = read_text(root / "proc/cpuinfo")
    cpus = root / "sys/devices/system/cpu"
    online = parse_cpu_list(read_text(cpus / "online")) or tuple(
        int(n) for n in re.findall(r"^processor\s*:\s*(\d+)", cpuinfo, re.MULTILINE)
    )
    status = read_text(root / "proc/self/status")
    allowed_match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    allowed = set(parse_cpu_list(allowed_match[1])) & set(online) if allowed_match else set(online)
    cores = {cpu: read_text(cpus / f"cpu{cpu}/topology/thread_siblings_list") for cpu in online}
    has_topology = bool(online) and all(cores.values())
    if not has_topology:
        for name in ("n_cores_physical", "n_cores_performance", "n_cores_allowed"):
            reasons[name] = "the CPU topology is not in sysfs"
    fast = _performance_cpus(root, online)
    cpu_name = _cpu_name(cpuinfo)
    if cpu_name is None:
        reasons["cpu_name"] = "/proc/cpuinfo does not name the processor"
    return {
        "cpu_name": cpu_name,
        "n_cores_logical": len(online) or None,
        "n_cpus_allowed": len(allowed) or None,
        "n_cores_physical": len({cores[c] for c in online}) if has_topology else None,
        "n_cores_allowed": len({cores[c] for c in allowed}) if has_topology else None,
        "n_cores_performance": len({cores[c] for c in fast}) if has_topology else None,
        "cpu_quota": _cpu_quota(root),
        "cpu_features": _features(cpuinfo),
        "cpu_max_mhz": _max_mhz(cpus, online, reasons),
        "last_level_cache_bytes": _last_level_cache(cpus, online),
        "n_numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
    }


def _cpu_name(cpuinfo: str) -> str | None:
    for key in ("model name", "Model", "Hardware", "cpu model"):
        match = re.search(rf"^{key}\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
        if match:
            return " ".join(match[1].split())
    return None


def _features(cpuinfo: str) -> tuple[str, ...]:
    match = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return tuple(sorted(_CPU_FEATURES & set(match[1].split()))) if match else ()


def _performance_cpus(root: Path, online: Iterable[int]) -> set[int]:
    """The fast CPUs of a hybrid processor: Intel's cpu_core, or over half the largest capacity."""
    online = set(online)
    intel = set(parse_cpu_list(read_text(root / "sys/devices/cpu_core/cpus"))) & online
    if intel:
        return intel
    capacity = {
        cpu: read_int(root / f"sys/devices/system/cpu/cpu{cpu}/cpu_capacity") for cpu in online
    }
    largest = max((c for c in capacity.values() if c is not None), default=None)
    if largest is None or None in capacity.values():
        return online
    return {cpu for cpu, c in capacity.items() if c is not None and 2 * c > largest}


def _cpu_quota(root: Path) -> float | None:
    words = read_text(root / "sys/fs/cgroup/cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    return None


def _max_mhz(cpus: Path, online: Iterable[int], reasons: dict[str, str]) -> float | None:
    clocks = [read_int(cpus / f"cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in online]
    known = [khz for khz in clocks if khz]
    if not known:
        reasons["cpu_max_mhz"] = "no cpufreq in sysfs (usual in virtual machines)"
        return None
    return max(known) / 1000


def _last_level_cache(cpus: Path, online: Iterable[int]) -> int | None:
    """Sum over the distinct caches of the highest level."""
    caches: dict[tuple[int, str], int] = {}
    for cpu in online:
        for index in (cpus / f"cpu{cpu}/cache").glob("index[0-9]*"):
            level = read_int(index / "level")
            size = re.fullmatch(r"(\d{1,12})([KMG]?)", read_text(index / "size"))
            if level is None or size is None or read_text(index / "type") == "Instruction":
                continue
            n_bytes = int(size[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]]
            caches[(level, read_text(index / "shared_cpu_list"))] = n_bytes
    highest = max((level for level, _ in caches), default=None)
    if highest is None:
        return None
    return sum(n_bytes for (level, _), n_bytes in caches.items() if level == highest)


def read_memory(root: Path, reasons: dict[str, str]) -> dict[str, Any]:
    """ram_bytes: what the kernel manages, a little less than what is plugged in."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", read_text(root / "proc/meminfo"), re.MULTILINE)
    if match is None:
        reasons["ram_bytes"] = "/proc/meminfo is not readable"
        return {}
    return {"ram_bytes": int(match[1]) * 1024}


def read_power(root: Path, reasons: dict[str, str]) -> dict[str, Any]:
    """Governor, frequency driver, energy preference and power source."""
    policies = sorted((root / "sys/devices/system/cpu/cpufreq").glob("policy*"))
    found: dict[str, Any] = {}
    for field, file in (
        ("governor", "scaling_governor"),
        ("frequency_driver", "scaling_driver"),
        ("energy_preference", "energy_performance_preference"),
    ):
        names = sorted({read_text(policy / file) for policy in policies} - {""})
        found[field] = ", ".join(names) or None
        if not names:
            reasons[field] = (
                f"the frequency driver has no {file}"
                if policies
                else "no cpufreq in sysfs (usual in virtual machines)"
            )
    found["power_source"] = _power_source(root, reasons)
    return found


def _power_source(root: Path, reasons: dict[str, str]) -> str | None:
    supplies = sorted((root / "sys/class/power_supply").glob("*"))
    kinds = [(read_text(s / "type"), s) for s in supplies if read_text(s / "scope") != "Device"]
    mains = [s for kind, s in kinds if kind in ("Mains", "USB")]
    batteries = [s for kind, s in kinds if kind == "Battery"]
    if any(read_int(s / "online") for s in mains):
        return "mains"
    if batteries:
        discharging = any(read_text(s / "status") == "Discharging" for s in batteries)
        return "battery" if discharging or mains else "mains"
    reasons["power_source"] = "no power supply in sysfs (usual in desktops and servers)"
    return None
