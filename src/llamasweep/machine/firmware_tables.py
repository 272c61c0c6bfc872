"""Memory modules from the firmware's own table (SMBIOS type 17), which Linux shows to root only.

Pure but for one read of a file; anything may stand in it. Offsets are those of the SMBIOS reference
specification (DMTF DSP0134), section "Memory Device (Type 17)".
"""

from __future__ import annotations

import struct
from pathlib import Path

_MEMORY_DEVICE = 17
_END_OF_TABLE = 127
_MAX_TABLE_BYTES = 2**20
_MAX_STRUCTURES = 4096
_UNKNOWN = 0xFFFF
_SEE_EXTENDED_SIZE = 0x7FFF

MEMORY_TYPES = {
    18: "DDR", 19: "DDR2", 24: "DDR3", 26: "DDR4", 27: "LPDDR", 28: "LPDDR2", 29: "LPDDR3", 30: "LPDDR4",
    32: "HBM", 33: "HBM2", 34: "DDR5", 35: "LPDDR5", 36: "HBM3",
}  # fmt: skip
"""Codes of the memory type in SMBIOS, which Windows reports unaltered too."""


def read_table(root: Path) -> bytes | None:
    """The raw table under root, None where it is missing or not ours to read."""
    try:
        with (root / "sys/firmware/dmi/tables/DMI").open("rb") as file:
            return file.read(_MAX_TABLE_BYTES)
    except OSError:
        return None


def memory_modules(table: bytes) -> list[dict[str, str]]:
    """The slots that it lists, with the keys of udev's database; a broken table gives what is whole."""
    modules: list[dict[str, str]] = []
    at = 0
    for _ in range(_MAX_STRUCTURES):
        if at + 4 > len(table):
            break
        kind, length = table[at], table[at + 1]
        if length < 4 or at + length > len(table) or kind == _END_OF_TABLE:
            break
        ends = table.find(b"\0\0", at + length)
        if ends < 0:
            break
        if kind == _MEMORY_DEVICE:
            strings = table[at + length : ends].split(b"\0")
            modules.append(_module(table[at : at + length], strings))
        at = ends + 2
    return modules


def _module(structure: bytes, strings: list[bytes]) -> dict[str, str]:
    """One slot; what an older, shorter structure lacks is left out."""

    def number(offset: int, form: str) -> int:
        if offset + struct.calcsize(form) > len(structure):
            return 0
        (value,) = struct.unpack_from(form, structure, offset)
        return int(value)

    def text(offset: int) -> str:
        index = number(offset, "<B")
        return strings[index - 1].decode("latin-1").strip() if 0 < index <= len(strings) else ""

    def speed(offset: int, extended: int) -> int:
        value = number(offset, "<H")
        return number(extended, "<I") & 0x7FFFFFFF if value == _UNKNOWN else value

    width = number(0x0A, "<H")
    found = {
        "SIZE": _size_bytes(number(0x0C, "<H"), number(0x1C, "<I")),
        "DATA_WIDTH": 0 if width == _UNKNOWN else width,
        "SPEED_MTS": speed(0x15, 0x54),
        "CONFIGURED_SPEED_MTS": speed(0x20, 0x58),
    }
    module = {key: str(value) for key, value in found.items() if value}
    module["TYPE"] = MEMORY_TYPES.get(number(0x12, "<B"), "")
    module["LOCATOR"], module["BANK_LOCATOR"] = text(0x10), text(0x11)
    return module


def _size_bytes(size: int, extended_mib: int) -> int:
    """0 for an empty slot or an unknown size."""
    if size in (0, _UNKNOWN):
        return 0
    if size == _SEE_EXTENDED_SIZE:
        return (extended_mib & 0x7FFFFFFF) * 2**20
    unit = 2**10 if size & 0x8000 else 2**20
    return (size & 0x7FFF) * unit
