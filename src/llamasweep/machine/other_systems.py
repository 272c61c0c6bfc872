"""Facts of macOS and Windows machines, from sysctl, psutil and the standard library."""

from __future__ import annotations

import platform
import subprocess
from typing import Any

_TIMEOUT_S = 5.0


def read(os: str, reasons: dict[str, str]) -> dict[str, Any]:
    """What these systems tell; psutil's answers first, sysctl's on macOS over them."""
    values = _portable(reasons)
    if os == "Darwin":
        values.update({k: v for k, v in _darwin(reasons).items() if v is not None})
    else:
        for name in ("ram_type", "ram_speed_mts", "ram_channels"):
            reasons[name] = "not read on this system"
        values["cpu_name"] = platform.processor() or None
    return values


def _portable(reasons: dict[str, str]) -> dict[str, Any]:
    import psutil  # noqa: PLC0415  (heavy, and only these systems need it)

    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is None:
        reasons["power_source"] = "no battery found"
    n_physical = psutil.cpu_count(logical=False)
    return {
        "os_name": platform.platform(aliased=True, terse=True) or None,
        "kernel": platform.release() or None,
        "n_cores_logical": psutil.cpu_count(logical=True),
        "n_cores_physical": n_physical,
        "n_cores_performance": n_physical,
        "n_cores_allowed": n_physical,
        "n_cpus_allowed": psutil.cpu_count(logical=True),
        "ram_bytes": psutil.virtual_memory().total,
        "power_source": None if battery is None else _source(battery.power_plugged),
    }


def _source(is_plugged: bool | None) -> str | None:
    if is_plugged is None:
        return None
    return "mains" if is_plugged else "battery"


def _darwin(reasons: dict[str, str]) -> dict[str, Any]:
    performance = _sysctl("hw.perflevel0.physicalcpu")
    is_guest = _sysctl("kern.hv_vmm_present")
    for name in ("ram_speed_mts", "ram_channels", "ram_type"):
        reasons[name] = "macOS does not tell; the chip's memory bandwidth is in the device table"
    return {
        "cpu_name": _sysctl("machdep.cpu.brand_string"),
        "system_name": _sysctl("hw.model"),
        "n_cores_performance": _int(performance),
        "last_level_cache_bytes": _int(_sysctl("hw.perflevel0.l2cachesize")),
        "ram_bytes": _int(_sysctl("hw.memsize")),
        "n_numa_nodes": 1,
        "hypervisor": None if is_guest is None else ("unnamed" if is_guest == "1" else ""),
    }


def _sysctl(key: str) -> str | None:
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", key],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
