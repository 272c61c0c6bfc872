"""Energy of the CPU packages from the kernel's powercap files (RAPL), unwrapped into a rising counter.

Only whole packages: the zones below them (core, uncore) are parts of them, and psys holds the packages once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llamasweep.telemetry.sensors import (
    Sensor,
    SensorSource,
    is_file_gone_for_good,
    read_number,
)
from llamasweep.telemetry.sysfs import word

HOW_TO_ALLOW = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"


@dataclass(kw_only=True, slots=True)
class UnwrappedCounter:
    """A counter that goes from `range_ - 1` back to 0, made to rise for ever.

    Right as long as it wraps at most once between two readings: at 300 W and the usual 262 kJ a wrap takes 14 minutes.
    """

    range_: int
    total: int = 0
    _last: int | None = None

    def add(self, raw: int) -> int:
        """Total since the first reading, in the counter's own unit."""
        if self._last is not None:
            step = raw - self._last
            self.total += step if step >= 0 else step + self.range_
        self._last = raw
        return self.total


def open_rapl(root: Path) -> tuple[SensorSource | None, str | None]:
    """The source, or None and the reason (no such zone, or readable by root only)."""
    source = SensorSource(name="rapl", sensors=[], is_permanent=is_file_gone_for_good)
    zones = [
        zone
        for zone in sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
        if re.fullmatch(r"intel-rapl:\d+", zone.name)
        and (word(zone / "name") or "").startswith("package")
    ]
    for zone in zones:
        device = word(zone / "name") or zone.name
        try:
            source.sensors.append(_zone_sensor(zone, device))
        except PermissionError:
            source.absent[f"rapl/{device}/energy_j"] = (
                f"only root may read energy_uj; to allow it until the next start: {HOW_TO_ALLOW}"
            )
        except (OSError, ValueError) as error:
            source.absent[f"rapl/{device}/energy_j"] = str(error)
    if source.sensors:
        return source, None
    if zones:
        return None, next(iter(source.absent.values()))
    return None, "no RAPL package in /sys/class/powercap (virtual machine, ARM or old kernel)"


def _zone_sensor(zone: Path, device: str) -> Sensor:
    path = str(zone / "energy_uj")
    counter = UnwrappedCounter(range_=read_number(str(zone / "max_energy_range_uj")))
    counter.add(read_number(path))

    def read() -> Iterable[tuple[str, float]]:
        return (("energy_j", counter.add(read_number(path)) / 1e6),)

    return Sensor(device=device, metrics=("energy_j",), read=read)
