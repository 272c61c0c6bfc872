"""Figures over the graphics devices that worked for the engine: which they are, and sums, means and peaks over them.

Vendor-free: every source gives the same metrics. A figure is None if one used device cannot tell it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from llamasweep.results.phase_cut import PhaseCut
from llamasweep.results.timeline import Series

GPU_SOURCES = ("nvml", "amdgpu", "intel")
USED_FROM_FRACTION = 0.10
"""A device whose process memory cannot be read counts as used from this mean utilisation on; a desktop stays below."""

Device = tuple[str, str]
"""source, device."""


class UsedGpus:
    """The used devices, and figures over all of them: None if one used device cannot tell."""

    def __init__(self, cut: PhaseCut, uses_gpu: bool | None) -> None:
        self._cut = cut
        self.used, self._why_none = _used_devices(cut, uses_gpu)

    def _over(
        self,
        figure: str,
        metric: str,
        one: Callable[[Series], float | None],
        combine: Callable[[list[float]], float],
    ) -> float | None:
        if not self.used:
            self._cut.reasons[figure] = self._why_none
            return None
        series = self._cut.timeline.per_device(metric, frozenset(GPU_SOURCES))
        values = []
        for source, device in self.used:
            if (source, device) not in series:
                self._cut.reasons[figure] = self._cut.why_absent(metric, (source,), device)
                return None
            value = one(series[source, device])
            if value is None:
                return None
            values.append(value)
        return combine(values)

    def peak_bytes(self, figure: str, metric: str) -> int | None:
        """Sum of the devices' peaks."""
        return whole(
            self._over(
                figure, metric, lambda s: self._cut.peak(figure, s, may_use_neighbours=True), sum
            )
        )

    def mean(
        self,
        figure: str,
        metric: str,
        combine: Callable[[list[float]], float] = statistics.fmean,
    ) -> float | None:
        return self._over(figure, metric, lambda s: self._cut.mean(figure, s), combine)

    def temperature_c(self) -> float | None:
        figure = "gpu_temperature_peak_c"
        return self._over(
            figure,
            "temperature_c",
            lambda s: self._cut.peak(figure, s, may_use_neighbours=False),
            max,
        )

    def energy_j(self) -> float | None:
        """From the devices' own counters; where one has none, the area under its power readings, and that is told."""
        figure = "gpu_energy_j"
        counters = self._cut.timeline.per_device("energy_j", frozenset(GPU_SOURCES))
        if all(device in counters for device in self.used):
            return self._over(figure, "energy_j", self._energy_of, sum)
        total = self._over(figure, "power_w", lambda s: self._energy_of(s.integral_over_s()), sum)
        if total is not None:
            self._cut.reasons[figure] = "no energy counter; the area under the power readings"
        return total

    def _energy_of(self, counter: Series) -> float | None:
        difference = self._cut.difference("gpu_energy_j", counter)
        return None if difference is None else difference.amount


def _used_devices(cut: PhaseCut, uses_gpu: bool | None) -> tuple[tuple[Device, ...], str]:
    """Devices that worked for the engine, and the reason if there are none.

    Those that hold memory of its processes; if none is seen to, those with a mean utilisation of 10 % or more; if none
    is and there is but one device that the engine must use, that one.
    """
    sources = frozenset(GPU_SOURCES)
    devices = {(source, device) for source, device, _ in cut.timeline.series if source in sources}
    if uses_gpu is False:
        return (), "the engine used no GPU"
    if not devices:
        return (), cut.why_absent("a GPU", GPU_SOURCES)
    memory = cut.timeline.per_device("vram_process_bytes", sources)
    use = cut.timeline.per_device("use_fraction", sources)
    holding = sorted(d for d, series in memory.items() if any(v > 0 for v in cut.near(series)))
    busy = sorted(d for d, series in use.items() if _mean_near(cut, series) >= USED_FROM_FRACTION)
    only = devices if uses_gpu and len(devices) == 1 else ()
    return tuple(holding or busy or only), _why_unused(devices - use.keys() - memory.keys())


def _mean_near(cut: PhaseCut, series: Series) -> float:
    values = cut.near(series)
    return statistics.fmean(values) if values else -1.0


def _why_unused(blind: set[Device]) -> str:
    if blind:
        names = ", ".join(f"{source} {device}" for source, device in sorted(blind))
        return f"whether {names} worked cannot be told from its sensors"
    return "no GPU was seen at work: no memory of the engine in it, use below 10 %"


def whole(value: float | None) -> int | None:
    """Bytes and counts are whole numbers; None stays None."""
    return None if value is None else round(value)
