"""Walks sysfs below any root: graphics cards of a vendor, hwmon folders, their labelled inputs. Reads no sensor itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from llamasweep.telemetry.sensors import read_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A graphics card. folder: /sys/class/drm/cardN. device: its PCI device folder. driver: None where none is bound."""

    folder: Path
    device: Path
    driver: str | None


def cards_of(root: Path, vendor: int) -> list[Card]:
    """Cards with this PCI vendor number, in the kernel's order; without connectors (card0-DP-1)."""
    found = []
    for folder in (root / "sys/class/drm").glob("card*"):
        if not re.fullmatch(r"card\d+", folder.name) or word(folder / "device/vendor") is None:
            continue
        if int(word(folder / "device/vendor") or "0", 16) == vendor:
            driver = folder / "device/driver"
            found.append(
                Card(
                    folder=folder,
                    device=folder / "device",
                    driver=driver.resolve().name if driver.exists() else None,
                )
            )
    return sorted(found, key=lambda card: int(card.folder.name.removeprefix("card")))


def word(path: Path) -> str | None:
    """A one-line file without its newline; None where it cannot be read."""
    try:
        return read_text(str(path), 256).strip()
    except OSError:
        return None


def hwmon_folders(root: Path, names: frozenset[str]) -> list[Path]:
    """hwmon folders of the machine whose chip has one of these names."""
    folders = sorted((root / "sys/class/hwmon").glob("hwmon*"))
    return [folder for folder in folders if word(folder / "name") in names]


def labelled_inputs(folder: Path, kind: str) -> dict[str, Path]:
    """label -> file of all `<kind>N_input`; a file without a label goes by its own name, such as temp1."""
    found = {}
    for path in sorted(folder.glob(f"{kind}*_input")):
        stem = path.name.removesuffix("_input")
        found[word(folder / f"{stem}_label") or stem] = path
    return found
