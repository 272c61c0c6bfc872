"""What an AMD GPU is called, and the bandwidth that AMD's management library reports.

sysfs knows the memory's clock but not its width, so without the library only a name helps.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llamasweep.machine.text_files import read_int, read_text

_AMD = 0x1002
_NAME_TABLES = ("usr/share/libdrm/amdgpu.ids", "opt/amdgpu/share/libdrm/amdgpu.ids")


def names(root: Path, index: int) -> tuple[str, ...]:
    """Names of the index-th AMD GPU by libdrm's table of device and revision; () where unknown."""
    cards = [
        card / "device"
        for card in sorted((root / "sys/class/drm").glob("card[0-9]*"))
        if "-" not in card.name and read_int(card / "device/vendor", 16) == _AMD
    ]
    if index >= len(cards):
        return ()
    device, revision = (
        read_int(cards[index] / "device", 16),
        read_int(cards[index] / "revision", 16),
    )
    found = []
    for table in _NAME_TABLES:
        for line in read_text(root / table).splitlines():
            words = [word.strip() for word in line.split(",", 2)]
            if len(words) == 3 and (_hex(words[0]), _hex(words[1])) == (device, revision):
                found.append(words[2])
    return tuple(dict.fromkeys(found))


def _hex(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def reported_bandwidth(
    index: int, load: Callable[[], Any] | None = None
) -> tuple[float | None, str]:
    """(bytes per second, source) from amdsmi's vram_max_bandwidth, or (None, reason).

    load: what imports the library, by default `amdsmi`, which comes with ROCm.
    """
    try:
        library = load() if load is not None else importlib.import_module("amdsmi")
    except (ImportError, OSError, KeyError):  # KeyError: it looks for ROCm in the environment
        return None, "sysfs tells no width of the memory, and AMD's library amdsmi is not installed"
    try:
        library.amdsmi_init()
        try:
            handle = library.amdsmi_get_processor_handles()[index]
            memory = library.amdsmi_get_gpu_vram_info(handle)
        finally:
            library.amdsmi_shut_down()
    except (library.AmdSmiException, IndexError, AttributeError) as problem:
        return None, f"amdsmi does not answer: {problem}"
    rate = memory.get("vram_max_bandwidth") if isinstance(memory, dict) else None
    if not isinstance(rate, int | float) or isinstance(rate, bool) or rate <= 0:
        return None, "amdsmi tells no bandwidth (ROCm 6.4 and later do)"
    width = memory.get("vram_bit_width", "?")
    return rate * 1e9, f"amdsmi: {rate:g} GB/s at its present clock, {width} bits wide"
