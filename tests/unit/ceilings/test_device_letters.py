"""Looking at a device's letters first leaves out no device that its words would have found."""

from __future__ import annotations

import pytest

from llamasweep.ceilings import devices as table
from llamasweep.ceilings.devices import devices, find_devices


def as_people_write(name: str) -> list[str]:
    """Words turned round, glued together, left out and added, as in forums and drivers."""
    words = name.split()
    return [
        name,
        " ".join(reversed(words)),
        name.replace(" ", ""),
        name.lower().replace("geforce ", ""),
        f"NVIDIA {name}",
        f"{name} 24 GB",
        " ".join(words[:2]),
        name.replace("PCIe", "PCI-E"),
        name.replace("Ti", "(TM) Ti"),
    ]


def test_the_cheap_look_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [
        written
        for device in devices()
        for name in (device.name, *device.aliases)
        for written in as_people_write(name)
    ]
    with_it = [find_devices(name) for name in asked]
    monkeypatch.setattr(table, "_has_letters_of", lambda *_: True)

    assert sum(map(bool, with_it)) > len(asked) / 2
    assert with_it == [find_devices(name) for name in asked]
