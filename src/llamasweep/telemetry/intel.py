"""Intel graphics from the i915 and xe drivers' sysfs files: energy, clock, temperature, throttling. Raw readings only.

Neither driver has a file for utilisation or memory in use, so whether the card worked cannot be told from here.
"""

from __future__ import annotations

from pathlib import Path

from llamasweep.telemetry.sensors import Sensor, SensorSource, file_sensor, is_file_gone_for_good
from llamasweep.telemetry.sysfs import Card, cards_of, labelled_inputs

PCI_VENDOR = 0x8086
_ENERGY_LABELS = ("card", "energy1", "pkg")
_TEMPERATURE_LABELS = ("pkg", "temp1")
_CLOCK_FILES = ("gt_act_freq_mhz", "gt/gt0/rps_act_freq_mhz", "device/tile0/gt0/freq0/act_freq")
_THROTTLE_FILES = (
    "gt/gt0/throttle_reason_status",
    "device/tile0/gt0/freq0/throttle/status",
)
_NO_FILE = ("use_fraction", "vram_used_bytes", "vram_process_bytes", "memory_clock_mhz")


def open_intel(root: Path) -> tuple[SensorSource | None, str | None]:
    """The source, or None and the reason."""
    cards = cards_of(root, PCI_VENDOR)
    if not cards:
        return None, "no Intel graphics card in /sys/class/drm"
    source = SensorSource(name="intel", sensors=[], is_permanent=is_file_gone_for_good)
    for index, card in enumerate(cards):
        device = f"gpu{index}"
        sensors = _card_sensors(card, device)
        source.sensors += sensors
        given = {metric for sensor in sensors for metric in sensor.metrics}
        wanted = ("energy_j", "sm_clock_mhz", "temperature_c", "is_throttled", *_NO_FILE)
        for metric in wanted:
            if metric not in given:
                source.absent[f"intel/{device}/{metric}"] = (
                    f"driver {card.driver or 'none'} gives no file for it"
                )
    if not source.sensors:
        return None, "an Intel card is there, but its driver gives no sensor file"
    return source, None


def _card_sensors(card: Card, device: str) -> list[Sensor]:
    sensors = []
    for hwmon in sorted((card.device / "hwmon").glob("hwmon*"))[:1]:
        for kind, labels, metric, per_unit in (
            ("energy", _ENERGY_LABELS, "energy_j", 1e6),
            ("temp", _TEMPERATURE_LABELS, "temperature_c", 1e3),
        ):
            inputs = labelled_inputs(hwmon, kind)
            path = next((inputs[label] for label in labels if label in inputs), None)
            if path is not None:
                sensors.append(
                    file_sensor(str(path), device=device, metric=metric, per_unit=per_unit)
                )
    for names, metric in ((_CLOCK_FILES, "sm_clock_mhz"), (_THROTTLE_FILES, "is_throttled")):
        path = next((card.folder / name for name in names if (card.folder / name).exists()), None)
        if path is not None:
            sensors.append(file_sensor(str(path), device=device, metric=metric))
    return sensors
