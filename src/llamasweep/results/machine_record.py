"""What a run's record of its machine, builds and models tells, read with care: it may be of any version, or edited.

Everything is None where it is absent or of another type. Knows only names and units, never what they mean for a rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_CHANNEL_BYTES = 8
"""A channel of DDR is 64 bits wide (DDR5: two halves of 32)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineRecord:
    """`RunInfo.machine`, asked by name."""

    plain: Mapping[str, Any]

    def number(self, *path: str) -> float | None:
        """A finite number above 0 at this path of keys."""
        return positive_number(_at(self.plain, path))

    def count(self, *path: str) -> int | None:
        """A whole number above 0 at this path of keys."""
        value = _at(self.plain, path)
        return (
            value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
        )

    def word(self, *path: str) -> str | None:
        """A text that is not empty."""
        value = _at(self.plain, path)
        return value if isinstance(value, str) and value else None

    def words(self, *path: str) -> tuple[str, ...]:
        """The texts of a list; () where there is none."""
        return texts(_at(self.plain, path))

    @property
    def gpus(self) -> tuple[MachineRecord, ...]:
        """The GPUs that were found."""
        value = self.plain.get("gpus")
        items = value if isinstance(value, list | tuple) else ()
        return tuple(MachineRecord(plain=item) for item in items if isinstance(item, Mapping))

    @property
    def n_cpus(self) -> int | None:
        """Logical processors that the run could use."""
        return self.count("n_cpus_allowed") or self.count("n_cores_logical")

    @property
    def n_cores(self) -> int | None:
        """Physical cores that the run could use."""
        return self.count("n_cores_allowed") or self.count("n_cores_physical")

    @property
    def knee_threads(self) -> int | None:
        """Fewest threads that reached 95 % of it."""
        return self.count("calibration", "ram", "knee_threads")

    @property
    def spec_ram_bytes_per_s(self) -> float | None:
        """By the calibration's source, else bus width / 8 x transfers per second."""
        told = self.number("calibration", "spec_ram", "bytes_per_s")
        bits, speed_mts = self.number("ram_bus_bits"), self.number("ram_speed_mts")
        if told is not None or bits is None or speed_mts is None:
            return told
        return bits / 8 * speed_mts * 1e6

    @property
    def spec_gpu_bytes_per_s(self) -> float | None:
        """By the calibration's source; None where there are several GPUs or none."""
        value = _at(self.plain, ("calibration", "spec_gpus"))
        if not isinstance(value, list | tuple) or len(value) != 1:
            return None
        told = value[0].get("bytes_per_s") if isinstance(value[0], Mapping) else None
        return positive_number(told)

    @property
    def one_channel_bytes_per_s(self) -> float | None:
        """Specification of a single channel of DDR; None for LPDDR, whose channels have other widths."""
        speed_mts = self.number("ram_speed_mts")
        if speed_mts is None or (self.word("ram_type") or "").upper().startswith("LPDDR"):
            return None
        return _CHANNEL_BYTES * speed_mts * 1e6


def entry_of(entries: Sequence[Any], key: str, value: str | None) -> MachineRecord:
    """The entry of a list of the run (builds, models) whose key has this value; an empty one where there is none."""
    found = next(
        (
            e
            for e in entries
            if isinstance(e, Mapping) and value is not None and e.get(key) == value
        ),
        {},
    )
    return MachineRecord(plain=found)


def positive_number(value: object) -> float | None:
    """The value if it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


def texts(value: object) -> tuple[str, ...]:
    """The texts of a list; () for anything else."""
    items = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in items if isinstance(item, str))


def _at(plain: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = plain
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
