"""Speed, type, channels and width of the RAM from what the firmware lists of its modules.

Read from udev's database, which needs no root: systemd's `dmi_memory_id` writes MEMORY_DEVICE_<n>_…
there from the firmware's tables. Virtual machines often have none. Other sources hand in their
lists with the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llamasweep.machine.text_files import read_text

_FIELDS = ("ram_type", "ram_speed_mts", "ram_channels", "ram_bus_bits")
_PROPERTY = re.compile(r"^E:MEMORY_DEVICE_(\d{1,3})_([A-Z_]+)=(.*)$", re.MULTILINE)
_CHANNEL = re.compile(r"(?:channel|chan|ch)[ _-]?([a-z0-9])(?![a-z0-9])", re.IGNORECASE)
_LETTERED_SLOT = re.compile(r"(?:dimm|slot)?[ _-]?([A-H])[0-9]", re.IGNORECASE)


def read_memory_modules(root: Path, reasons: dict[str, str]) -> dict[str, Any]:
    """ram_type, ram_speed_mts, ram_channels and ram_bus_bits, as far as the firmware tells."""
    modules: dict[int, dict[str, str]] = {}
    for number, key, value in _PROPERTY.findall(read_text(root / "run/udev/data/+dmi:id")):
        modules.setdefault(int(number), {})[key] = value.strip()
    found = summarise(list(modules.values()), reasons)
    if not found:
        for field in _FIELDS:
            reasons[field] = (
                "udev's database holds no memory modules (usual in virtual machines and containers; "
                "elsewhere `dmidecode -t 17` as root tells)"
            )
    return found


def summarise(modules: Sequence[dict[str, str]], reasons: dict[str, str]) -> dict[str, Any]:
    """The same from a list of slots; {} where none of them holds a module.

    Keys as udev names them: SIZE, TYPE, SPEED_MTS, CONFIGURED_SPEED_MTS, DATA_WIDTH (bits),
    LOCATOR, BANK_LOCATOR.
    """
    plugged = [module for module in modules if _number(module.get("SIZE"))]
    if not plugged:
        return {}
    speeds = [
        _number(m.get("CONFIGURED_SPEED_MTS")) or _number(m.get("SPEED_MTS")) for m in plugged
    ]
    types = {m["TYPE"] for m in plugged if m.get("TYPE")}
    channels = _n_channels(plugged)
    if channels is None:
        reasons["ram_channels"] = "the modules' locators name no channels"
    bus_bits = _bus_bits(plugged, types, channels)
    if bus_bits is None:
        reasons["ram_bus_bits"] = "neither channels nor the width of the chips are told"
    # Modules of different speed all run at the slowest.
    speed = min((s for s in speeds if s), default=None)
    return {
        "ram_type": ", ".join(sorted(types)) or None,
        "ram_speed_mts": speed,
        "ram_channels": channels,
        "ram_bus_bits": bus_bits,
    }


def _bus_bits(
    modules: Sequence[dict[str, str]], types: set[str], channels: int | None
) -> int | None:
    """Width of all channels together.

    A channel of DDR is 64 bits wide (DDR5: two halves of 32). LPDDR is listed chip by chip or half
    channel by half channel, so its widths are added up instead.
    """
    if not any(kind.upper().startswith("LPDDR") for kind in types):
        return None if channels is None else channels * 64
    widths = [_number(module.get("DATA_WIDTH")) for module in modules]
    known = [width for width in widths if width]
    return sum(known) if len(known) == len(widths) else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,18}", text) else None


def _n_channels(modules: Sequence[dict[str, str]]) -> int | None:
    """Distinct channels named by the locators; None as soon as one module names none."""
    channels: set[tuple[str, str]] = set()
    for module in modules:
        bank, slot = module.get("BANK_LOCATOR", ""), module.get("LOCATOR", "")
        match = _CHANNEL.search(bank) or _CHANNEL.search(slot) or _LETTERED_SLOT.fullmatch(slot)
        if match is None:
            return None
        # Sockets and controllers number their channels anew: "P0_Node0_Channel1".
        place = (bank if match.string == bank else slot)[: match.start(1)]
        channels.add((place.lower(), match[1].lower()))
    return len(channels) or None
