"""Between two groups: the pause that the sweep asks for, and the wait until device memory is free again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from llamasweep.results.records import Reading
from llamasweep.run.progress import Progress
from llamasweep.run.stop import StopSignals
from llamasweep.sweep.spec import Cooldown
from llamasweep.telemetry.sensors import Source

_MEMORY_METRIC = "vram_used_bytes"
_TEMPERATURE_METRIC = "temperature_c"
_SLACK_BYTES = 256 << 20
_MEMORY_WAIT_S = 20.0
_LOOK_EVERY_S = 0.5


@dataclass(slots=True)
class Cooler:
    """Waits after groups. baseline: (source, device) -> bytes in use before the first group; empty where nothing tells."""

    cooldown: Cooldown
    sources: Sequence[Source]
    baseline: dict[tuple[str, str], float] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.baseline = self._device_memory()

    def after_group(self, stop: StopSignals, progress: Progress) -> tuple[str, ...]:
        """Wait as asked; the flags that the next group must carry."""
        flags = () if self._memory_is_back(stop) else ("contaminated_memory",)
        self._cool(stop, progress)
        return flags

    def _device_memory(self) -> dict[tuple[str, str], float]:
        return {(r.source, r.device): r.value for r in self._read() if r.metric == _MEMORY_METRIC}

    def _read(self) -> list[Reading]:
        found: list[Reading] = []
        for source in self.sources:
            if source.name not in {"proc", "psutil"}:
                found += list(source.read(None))
        return found

    def _memory_is_back(self, stop: StopSignals) -> bool:
        """A look in which a device tells nothing proves nothing; one that never tells again is not accused."""
        if not self.baseline:
            return True
        end_s = time.monotonic() + _MEMORY_WAIT_S
        seen: dict[tuple[str, str], float] = {}
        while True:
            now = self._device_memory()
            seen |= now
            is_back = all(
                seen.get(device, before) <= before + _SLACK_BYTES
                for device, before in self.baseline.items()
            )
            if is_back and now.keys() >= self.baseline.keys():
                return True
            if time.monotonic() >= end_s or stop.is_over:
                return is_back
            stop.wait(_LOOK_EVERY_S)

    def _cool(self, stop: StopSignals, progress: Progress) -> None:
        wish = self.cooldown
        if wish.wait_s <= 0:
            return
        limits = [x for x in (wish.until_gpu_below_c, wish.until_cpu_below_c) if x is not None]
        if not limits:
            progress.waiting("cooling down", wish.wait_s)
            stop.wait(wish.wait_s)
            return
        end_s = time.monotonic() + wish.wait_s
        while not stop.is_over and time.monotonic() < end_s:
            hot = self._too_hot(progress)
            if not hot:
                return
            progress.waiting(hot, end_s - time.monotonic())
            stop.wait(min(2.0, max(end_s - time.monotonic(), 0.0)))

    def _too_hot(self, progress: Progress) -> str | None:
        """Why to wait on, None when everything that has a limit is below it. Without a sensor: the cap is waited for."""
        readings = [r for r in self._read() if r.metric == _TEMPERATURE_METRIC]
        gpu = [r.value for r in readings if r.device.startswith("gpu")]
        cpu = [r.value for r in readings if not r.device.startswith("gpu")]
        reasons = []
        for name, values, limit in (
            ("GPU", gpu, self.cooldown.until_gpu_below_c),
            ("CPU", cpu, self.cooldown.until_cpu_below_c),
        ):
            if limit is not None and not values:
                reasons.append(f"no {name} temperature sensor")
                self._say_missing(name, progress)
            elif limit is not None and max(values) >= limit:
                reasons.append(f"{name} at {max(values):.0f} °C, waiting for {limit:.0f} °C")
        return "; ".join(reasons) or None

    def _say_missing(self, name: str, progress: Progress) -> None:
        if name not in self._said:
            self._said.add(name)
            progress.note(
                f"no {name} temperature can be read here; the whole cooldown is waited instead"
            )
