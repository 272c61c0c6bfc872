"""What a telemetry source is, and the plain one: a list of sensors, each read and dropped on its own.

Knows no vendor and no file. A value that cannot be had is left out and its reason kept; nothing is ever written as 0.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llamasweep.results.records import Reading

MAX_FAILURES_IN_A_ROW = 20
"""Five seconds at four readings a second: long enough for a sleeping GPU to wake, then the sensor is dropped."""

SLOW_EVERY = 10
"""Sensors that cost much or change seldom are read at every tenth reading."""


class Source(Protocol):
    """Something that can be read beside the engine.

    name: as in `Reading.source`. absent: "source/device/metric" -> why that sensor gives nothing (now or for good).
    """

    name: str

    @property
    def absent(self) -> Mapping[str, str]: ...

    def read(self, pid: int | None) -> Iterable[Reading]:
        """Readings of now. pid: root of the engine's process tree, None while no engine runs."""
        ...


@dataclass(kw_only=True, slots=True)
class Sensor:
    """One call that gives one or more values of one device.

    metrics: what it gives when it works (used to say what is missing). read: (metric, value) pairs; an empty answer means "no
    value at this time". every: 1 = at each reading, n = at each n-th.
    """

    device: str
    metrics: tuple[str, ...]
    read: Callable[[], Iterable[tuple[str, float]]]
    every: int = 1
    n_failures: int = 0


@dataclass(kw_only=True, slots=True)
class SensorSource:
    """A source made of sensors. is_permanent: tells errors that will never go away from passing ones."""

    name: str
    sensors: list[Sensor]
    is_permanent: Callable[[Exception], bool]
    absent: dict[str, str] = field(default_factory=dict)
    _n_reads: int = 0

    def read(self, pid: int | None) -> list[Reading]:  # noqa: ARG002  (the machine's sensors do not depend on it)
        """All values that can be had now; a failing sensor is dropped, the others go on."""
        found: list[Reading] = []
        for sensor in list(self.sensors):
            if self._n_reads % sensor.every == 0:
                found += self._read_one(sensor)
        self._n_reads += 1
        return found

    def _read_one(self, sensor: Sensor) -> list[Reading]:
        try:
            values = list(sensor.read())
        except Exception as error:  # noqa: BLE001  (a vendor's library may raise anything; the sweep goes on)
            self._note_failure(sensor, error)
            return []
        if sensor.n_failures:
            sensor.n_failures = 0
            for metric in sensor.metrics:
                self.absent.pop(self._key(sensor, metric), None)
        now_ns = time.time_ns()
        return [
            Reading(
                time_ns=now_ns, source=self.name, device=sensor.device, metric=metric, value=value
            )
            for metric, value in values
        ]

    def _note_failure(self, sensor: Sensor, error: Exception) -> None:
        sensor.n_failures += 1
        reason = str(error) or type(error).__name__
        for metric in sensor.metrics:
            self.absent[self._key(sensor, metric)] = reason
        if self.is_permanent(error) or sensor.n_failures >= MAX_FAILURES_IN_A_ROW:
            self.sensors.remove(sensor)

    def _key(self, sensor: Sensor, metric: str) -> str:
        return f"{self.name}/{sensor.device}/{metric}"


def read_text(path: str, n_max: int = 65_536) -> str:
    """Start of a kernel file that comes in one piece, in as few calls as possible. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        return os.read(handle, n_max).decode("utf-8", "replace")
    finally:
        os.close(handle)


def read_number(path: str) -> int:
    """The whole number that a one-value kernel file holds. Raises OSError or ValueError."""
    return int(read_text(path, 64))


def file_sensor(
    path: str, *, device: str, metric: str, per_unit: float = 1.0, every: int = 1
) -> Sensor:
    """A sensor on a one-value file; value = number / per_unit."""

    def read() -> Sequence[tuple[str, float]]:
        return ((metric, read_number(path) / per_unit),)

    return Sensor(device=device, metrics=(metric,), read=read, every=every)


def is_file_gone_for_good(error: Exception) -> bool:
    """Whether reading a kernel file again is useless: not there, or not ours to read."""
    return isinstance(error, (FileNotFoundError, PermissionError)) and error.filename is not None
