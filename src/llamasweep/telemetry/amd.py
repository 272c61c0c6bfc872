"""AMD graphics from the amdgpu driver's sysfs files. Raw readings only.

Not read: the binary gpu_metrics table (energy, throttle status), whose layout changes per chip, and memory per process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from llamasweep.telemetry.sensors import (
    Sensor,
    SensorSource,
    file_sensor,
    is_file_gone_for_good,
    read_text,
)
from llamasweep.telemetry.sysfs import Card, cards_of, labelled_inputs

PCI_VENDOR = 0x1002
_TEMPERATURE_LABELS = ("junction", "edge")
"""The hottest spot first; a card without it tells its edge."""


def open_amd(root: Path) -> tuple[SensorSource | None, str | None]:
    """The source, or None and the reason."""
    cards = cards_of(root, PCI_VENDOR)
    if not cards:
        return None, "no AMD graphics card in /sys/class/drm"
    source = SensorSource(name="amdgpu", sensors=[], is_permanent=is_file_gone_for_good)
    for index, card in enumerate(cards):
        device = f"gpu{index}"
        source.sensors += _card_sensors(card, device)
        given = {m for s in source.sensors if s.device == device for m in s.metrics}
        wanted = {"vram_used_bytes", "use_fraction", "power_w", "sm_clock_mhz", "memory_clock_mhz"}
        for metric in sorted((wanted | {"temperature_c"}) - given):
            source.absent[f"amdgpu/{device}/{metric}"] = (
                f"driver {card.driver or 'none'} gives no file for it"
            )
        source.absent[f"amdgpu/{device}/vram_process_bytes"] = "not read: amdgpu has no plain file"
        source.absent[f"amdgpu/{device}/is_throttled"] = "not read: amdgpu tells it in binary only"
    if not source.sensors:
        return None, "an AMD card is there, but its driver gives no sensor file"
    return source, None


def _card_sensors(card: Card, device: str) -> list[Sensor]:
    sensors = [
        file_sensor(str(card.device / name), device=device, metric=metric, per_unit=per_unit)
        for name, metric, per_unit in (
            ("gpu_busy_percent", "use_fraction", 100.0),
            ("mem_info_vram_used", "vram_used_bytes", 1.0),
            ("mem_info_vram_total", "vram_total_bytes", 1.0),
            ("mem_info_gtt_used", "gtt_used_bytes", 1.0),
        )
        if (card.device / name).exists()
    ]
    for name, metric in (("pp_dpm_sclk", "sm_clock_mhz"), ("pp_dpm_mclk", "memory_clock_mhz")):
        if (card.device / name).exists():
            sensors.append(_clock_sensor(card.device / name, device, metric))
    for hwmon in sorted((card.device / "hwmon").glob("hwmon*"))[:1]:
        sensors += _hwmon_sensors(hwmon, device)
    return sensors


def _hwmon_sensors(hwmon: Path, device: str) -> list[Sensor]:
    sensors = []
    for name in ("power1_average", "power1_input"):
        if (hwmon / name).exists():
            path = str(hwmon / name)
            sensors.append(file_sensor(path, device=device, metric="power_w", per_unit=1e6))
            break
    temperatures = labelled_inputs(hwmon, "temp")
    for label in (*_TEMPERATURE_LABELS, "temp1"):
        if label in temperatures:
            path = str(temperatures[label])
            sensors.append(file_sensor(path, device=device, metric="temperature_c", per_unit=1e3))
            break
    return sensors


def _clock_sensor(path: Path, device: str, metric: str) -> Sensor:
    def read() -> Iterable[tuple[str, float]]:
        clock_mhz = active_clock_mhz(read_text(str(path), 4096))
        return () if clock_mhz is None else ((metric, clock_mhz),)

    return Sensor(device=device, metrics=(metric,), read=read)


def active_clock_mhz(table: str) -> float | None:
    """The starred line of a pp_dpm table, such as `1: 1500Mhz *`; None where no line is starred."""
    for line in table.splitlines():
        match = re.fullmatch(r"\s*[0-9S]+:\s*(\d+)\s*Mhz\s*\*\s*", line, re.IGNORECASE)
        if match:
            return float(match[1])
    return None
