"""Small files of `/proc` and `/sys`, read bounded; what cannot be read is absent."""

from __future__ import annotations

from pathlib import Path

_MAX_BYTES = 2**20  # the kernel refuses larger reads of sysctl files


def read_text(path: Path) -> str:
    """The stripped text, "" where the file is missing, unreadable or empty."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return ""


def read_int(path: Path, base: int = 10) -> int | None:
    """The number in the file, None where there is none."""
    try:
        return int(read_text(path), base)
    except ValueError:
        return None


def read_fields(path: str) -> dict[str, int]:
    """`Name:   12 kB` lines of the file as bytes, {} where there is none."""
    fields: dict[str, int] = {}
    for line in read_text(Path(path)).splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB" and words[1].isdigit():
            fields[words[0].rstrip(":")] = int(words[1]) * 1024
    return fields
