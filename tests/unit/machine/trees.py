"""Stand-ins for a machine: files under another root, and an NVML library. All synthetic.

The layouts follow the kernel's documentation (sysfs ABI, procfs), systemd's dmi_memory_id and
NVML's API; no such hardware was at hand.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Core(TM)  i7-13700H
flags\t\t: fpu sse4_2 avx2 fma f16c avx_vnni
"""


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """Write each text to its path under root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return root


def laptop_files() -> dict[str, str]:
    """A hybrid laptop: two fast cores with two threads each, and two slow ones."""
    cpus = "sys/devices/system/cpu"
    files = {
        "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
        "proc/sys/kernel/osrelease": "6.12.1-amd64",
        "proc/cpuinfo": CPUINFO,
        "proc/meminfo": "MemTotal:       32594788 kB\nMemFree:        1000 kB",
        "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-5",
        "sys/class/dmi/id/sys_vendor": "LENOVO",
        "sys/class/dmi/id/product_name": "21HD",
        "sys/class/dmi/id/product_serial": "SECRET-SERIAL",
        "proc/sys/kernel/hostname": "secret-host",
        f"{cpus}/online": "0-5",
        "sys/devices/cpu_core/cpus": "0-3",
        "sys/devices/cpu_atom/cpus": "4-5",
        "sys/devices/system/node/node0/cpulist": "0-5",
        "sys/class/power_supply/AC/type": "Mains",
        "sys/class/power_supply/AC/online": "1",
        "sys/class/power_supply/BAT0/type": "Battery",
        "sys/class/power_supply/BAT0/status": "Charging",
        "sys/class/power_supply/mouse/type": "Battery",
        "sys/class/power_supply/mouse/scope": "Device",
        "sys/class/power_supply/mouse/status": "Discharging",
        "run/udev/data/+dmi:id": (
            "E:MEMORY_ARRAY_NUM_DEVICES=2\n"
            "E:MEMORY_DEVICE_0_SIZE=17179869184\nE:MEMORY_DEVICE_0_TYPE=DDR5\n"
            "E:MEMORY_DEVICE_0_LOCATOR=Controller0-ChannelA-DIMM0\n"
            "E:MEMORY_DEVICE_0_SPEED_MTS=5600\nE:MEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=5200\n"
            "E:MEMORY_DEVICE_1_SIZE=17179869184\nE:MEMORY_DEVICE_1_TYPE=DDR5\n"
            "E:MEMORY_DEVICE_1_LOCATOR=Controller1-ChannelA-DIMM0\n"
            "E:MEMORY_DEVICE_1_SPEED_MTS=5600\nE:MEMORY_DEVICE_1_CONFIGURED_SPEED_MTS=5200\n"
            "E:MEMORY_DEVICE_2_PRESENT=0\nE:MEMORY_DEVICE_2_LOCATOR=Controller1-ChannelB-DIMM0"
        ),
    }
    for cpu, siblings in enumerate(("0-1", "0-1", "2-3", "2-3", "4", "5")):
        one = f"{cpus}/cpu{cpu}"
        files[f"{one}/topology/thread_siblings_list"] = siblings
        files[f"{one}/cpufreq/cpuinfo_max_freq"] = "5000000" if cpu < 4 else "3700000"
        files[f"{cpus}/cpufreq/policy{cpu}/scaling_governor"] = "powersave"
        files[f"{cpus}/cpufreq/policy{cpu}/scaling_driver"] = "intel_pstate"
        files[f"{cpus}/cpufreq/policy{cpu}/energy_performance_preference"] = "balance_performance"
        for index, level, size, shared in ((0, "1", "48K", siblings), (3, "3", "24M", "0-5")):
            cache = f"{one}/cache/index{index}"
            files[f"{cache}/level"] = level
            files[f"{cache}/size"] = size
            files[f"{cache}/type"] = "Unified"
            files[f"{cache}/shared_cpu_list"] = shared
    return files


class NvmlError(Exception):
    """As pynvml raises it."""


class FakeNvml:
    """As much of pynvml as is asked; what a device lacks raises, as the library does."""

    NVMLError = NvmlError
    NVML_CLOCK_MEM = 2

    def __init__(self, *devices: dict[str, Any], is_broken: bool = False) -> None:
        self._devices = devices
        self._is_broken = is_broken

    def nvmlInit(self) -> None:  # noqa: N802
        if self._is_broken:
            raise NvmlError("Driver/library version mismatch")

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.10"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self._devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:  # noqa: N802
        if "lost" in self._devices[index]:
            raise NvmlError("GPU is lost")
        return self._devices[index]

    def _of(self, handle: dict[str, Any], key: str) -> Any:
        if key not in handle:
            raise NvmlError("Not Supported")
        return handle[key]

    def nvmlDeviceGetName(self, handle: dict[str, Any]) -> Any:  # noqa: N802
        return self._of(handle, "name")

    def nvmlDeviceGetMemoryInfo(self, handle: dict[str, Any]) -> Any:  # noqa: N802
        return SimpleNamespace(total=self._of(handle, "total"))

    def nvmlDeviceGetMemoryBusWidth(self, handle: dict[str, Any]) -> Any:  # noqa: N802
        return self._of(handle, "bits")

    def nvmlDeviceGetMaxClockInfo(self, handle: dict[str, Any], clock: int) -> Any:  # noqa: N802
        assert clock == self.NVML_CLOCK_MEM
        return self._of(handle, "mhz")

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: dict[str, Any]) -> Any:  # noqa: N802
        return self._of(handle, "limit_mw")

    def nvmlDeviceGetComputeRunningProcesses(self, handle: dict[str, Any]) -> Any:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self._of(handle, "pids")]
