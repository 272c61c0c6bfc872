"""Clock, temperature and thermal throttling of the CPU, from Linux's sysfs. Raw readings only; device is "cpu".

Systems without these files give none: psutil's clock on macOS and Windows is the nominal one, not the present one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from llamasweep.telemetry.sensors import (
    Sensor,
    SensorSource,
    is_file_gone_for_good,
    read_number,
)
from llamasweep.telemetry.sysfs import hwmon_folders, labelled_inputs, word

MAX_CORES_READ = 16
"""Older kernels interrupt a core to learn its clock, so of many cores only some are asked, evenly spread."""

_CHIPS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal"})
_PREFERRED_LABELS = ("Package id", "Tdie", "Tctl")
_ZONE_TYPES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc-thermal", "soc_thermal")


def open_clock(root: Path) -> tuple[SensorSource | None, str | None]:
    """Mean clock of at most 16 cores, or None and the reason."""
    files = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))
    if not files:
        return None, "the kernel gives no current clock (no cpufreq; usual in a virtual machine)"
    step = max(1, len(files) / MAX_CORES_READ)
    paths = [str(files[int(i * step)]) for i in range(min(len(files), MAX_CORES_READ))]

    def read() -> Iterable[tuple[str, float]]:
        return (("clock_mhz", sum(read_number(p) for p in paths) / len(paths) / 1e3),)

    sensor = Sensor(device="cpu", metrics=("clock_mhz",), read=read)
    return SensorSource(name="cpufreq", sensors=[sensor], is_permanent=is_file_gone_for_good), None


def open_thermal(root: Path) -> tuple[SensorSource | None, str | None]:
    """Hottest CPU sensor, and whether a package throttled since the last reading; or None and the reason."""
    source = SensorSource(name="thermal", sensors=[], is_permanent=is_file_gone_for_good)
    temperatures = [str(path) for path in _temperature_files(root)]
    if temperatures:
        source.sensors.append(_hottest(temperatures))
    else:
        source.absent["thermal/cpu/temperature_c"] = "no CPU temperature sensor in sysfs"
    counters = _throttle_files(root)
    if counters:
        source.sensors.append(_throttle_sensor([str(path) for path in counters]))
    else:
        source.absent["thermal/cpu/is_throttled"] = "the kernel counts no package throttling here"
    if not source.sensors:
        return None, "no CPU temperature sensor and no throttle counter in sysfs"
    return source, None


def _temperature_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder in hwmon_folders(root, _CHIPS):
        inputs = labelled_inputs(folder, "temp")
        for wanted in _PREFERRED_LABELS:
            preferred = [path for label, path in inputs.items() if label.startswith(wanted)]
            if preferred:
                found += preferred
                break
        else:
            found += inputs.values()
    if found:
        return found
    zones = sorted((root / "sys/class/thermal").glob("thermal_zone*"))
    return [zone / "temp" for zone in zones if (word(zone / "type") or "") in _ZONE_TYPES]


def _hottest(paths: list[str]) -> Sensor:
    def read() -> Iterable[tuple[str, float]]:
        return (("temperature_c", max(read_number(path) for path in paths) / 1e3),)

    return Sensor(device="cpu", metrics=("temperature_c",), read=read)


def _throttle_files(root: Path) -> list[Path]:
    """One package_throttle_count per package (Intel only)."""
    by_package: dict[str, Path] = {}
    cores = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle")
    for folder in sorted(cores):
        package = word(folder.parent / "topology/physical_package_id") or "0"
        path = folder / "package_throttle_count"
        if path.exists():
            by_package.setdefault(package, path)
    return list(by_package.values())


def _throttle_sensor(paths: list[str]) -> Sensor:
    last: list[int] = []

    def read() -> Iterable[tuple[str, float]]:
        now = [read_number(path) for path in paths]
        is_throttled = [n > before for n, before in zip(now, last, strict=False)]
        last[:] = now
        return (("is_throttled", float(any(is_throttled))),) if is_throttled else ()

    return Sensor(device="cpu", metrics=("is_throttled",), read=read)
