"""Readings and repetitions -> the figures of one cell. Pure: the one place where readings are folded, for every vendor.

What a figure needs and what it does without is written at the figure; absent in, absent out, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llamasweep.results.phase_cut import PhaseCut
from llamasweep.results.rates import RateSummary, leading_discards, summarise_rates
from llamasweep.results.records import Reading, TelemetryFigures
from llamasweep.results.timeline import Series, Timeline, make_timeline
from llamasweep.results.used_gpus import UsedGpus, whole

__all__ = ["RateSummary", "fold", "leading_discards", "summarise_rates"]

PROCESS_SOURCES = ("proc", "psutil")


def fold(
    readings: Iterable[Reading] | Timeline,
    *,
    start_ns: int,
    end_ns: int,
    n_tokens: int | None,
    n_cores: int,
    interval_s: float,
    absent: Mapping[str, str] | None = None,
    uses_gpu: bool | None = None,
) -> tuple[TelemetryFigures, dict[str, str]]:
    """Figures of the phase, and figure -> reason where one is None or was got in a way worth telling.

    readings: of the whole group, because the borders are interpolated; make a `Timeline` once where many phases are
    folded. start_ns, end_ns: Unix time of the phase. n_tokens: of all repetitions in it, None where not known. n_cores:
    logical cores of the machine. interval_s: of the sampler. absent: `OpenedSources.absent` and `Sampler.absent`
    together. uses_gpu: False where the engine cannot use one (CPU build, `devices: none`), True where it must, None to
    tell from the readings.

    Raises ValueError for a phase that ends before it starts or a machine without cores.
    """
    if end_ns < start_ns or n_cores < 1:
        raise ValueError(f"phase from {start_ns} to {end_ns} on {n_cores} cores")
    timeline = readings if isinstance(readings, Timeline) else make_timeline(readings)
    cut = PhaseCut(
        timeline=timeline,
        start_ns=start_ns,
        end_ns=end_ns,
        interval_s=interval_s,
        absent=absent or {},
    )
    return _figures(cut, UsedGpus(cut, uses_gpu), n_tokens, n_cores), cut.reasons


def _figures(cut: PhaseCut, gpus: UsedGpus, n_tokens: int | None, n_cores: int) -> TelemetryFigures:
    gpu_energy_j, cpu_energy_j = gpus.energy_j(), _cpu_energy_j(cut)
    per_token_j, scope = _energy_per_token(cut, gpus, gpu_energy_j, cpu_energy_j, n_tokens)
    cpu_use, cpu_other = _cpu_use(cut, n_cores)
    return TelemetryFigures(
        ram_peak_process_bytes=_peak_bytes(cut, "ram_peak_process_bytes", "rss_bytes", "process"),
        ram_peak_pss_bytes=_peak_bytes(cut, "ram_peak_pss_bytes", "pss_bytes", "process"),
        ram_peak_system_bytes=_peak_bytes(cut, "ram_peak_system_bytes", "ram_used_bytes", "system"),
        swap_peak_bytes=_peak_bytes(cut, "swap_peak_bytes", "swap_used_bytes", "system"),
        vram_peak_device_bytes=gpus.peak_bytes("vram_peak_device_bytes", "vram_used_bytes"),
        vram_peak_process_bytes=gpus.peak_bytes("vram_peak_process_bytes", "vram_process_bytes"),
        n_major_faults=_count(cut, "n_major_faults", "major_faults_count"),
        disk_read_bytes=_count(cut, "disk_read_bytes", "disk_read_bytes"),
        cpu_use_fraction=cpu_use,
        cpu_use_other_fraction=cpu_other,
        cpu_clock_mean_mhz=_cpu_clock_mhz(cut),
        cpu_temperature_peak_c=_cpu_temperature_c(cut),
        gpu_use_mean_fraction=gpus.mean("gpu_use_mean_fraction", "use_fraction"),
        gpu_clock_mean_mhz=gpus.mean("gpu_clock_mean_mhz", "sm_clock_mhz"),
        gpu_memory_clock_mean_mhz=gpus.mean("gpu_memory_clock_mean_mhz", "memory_clock_mhz"),
        gpu_temperature_peak_c=gpus.temperature_c(),
        gpu_power_mean_w=gpus.mean("gpu_power_mean_w", "power_w", sum),
        gpu_energy_j=gpu_energy_j,
        cpu_energy_j=cpu_energy_j,
        energy_per_token_j=per_token_j,
        energy_scope=scope,
        throttled_fraction=_throttled_fraction(cut, gpus),
        n_telemetry_readings=_n_readings(cut),
    )


# -- the engine and the machine
def _series(
    cut: PhaseCut, figure: str, metric: str, device: str, sources: tuple[str, ...]
) -> Series | None:
    series = cut.timeline.of(metric, device=device)
    if series is None:
        cut.reasons[figure] = cut.why_absent(metric, sources, device)
    return series


def _peak_bytes(cut: PhaseCut, figure: str, metric: str, device: str) -> int | None:
    series = _series(cut, figure, metric, device, PROCESS_SOURCES)
    if series is None:
        return None
    value = cut.peak(figure, series, may_use_neighbours=True)
    if value is None:
        told = cut.why_absent(metric, PROCESS_SOURCES, device)
        cut.reasons[figure] += f"; {told}" if told != f"no reading of {metric}" else ""
    return whole(value)


def _count(cut: PhaseCut, figure: str, metric: str) -> int | None:
    """A counter of the engine over the phase; may miss the last moments of a process that was gone."""
    series = _series(cut, figure, metric, "process", PROCESS_SOURCES)
    if series is None:
        return None
    difference = cut.difference(figure, series, may_end_early=True)
    return whole(None if difference is None else difference.amount)


def _cpu_use(cut: PhaseCut, n_cores: int) -> tuple[float | None, float | None]:
    """(engine, everything else): CPU seconds / (cores x seconds). Else = all that was busy less the engine, at least 0.

    The machine's counter and the process's tick differently, so that their difference may fall below 0 by a few ms.
    """
    figure, other = "cpu_use_fraction", "cpu_use_other_fraction"
    own_series = _series(cut, figure, "cpu_time_s", "process", PROCESS_SOURCES)
    own = None if own_series is None else cut.difference(figure, own_series, may_end_early=True)
    if own is None:
        cut.reasons[other] = f"CPU time of the engine: {cut.reasons[figure]}"
        return None, None
    fraction = own.amount / (n_cores * own.span_s)
    busy_series = _series(cut, other, "cpu_busy_s", "system", PROCESS_SOURCES)
    busy = None if busy_series is None else cut.difference(other, busy_series)
    if busy is None:
        return fraction, None
    return fraction, max(0.0, busy.amount / (n_cores * busy.span_s) - fraction)


def _cpu_clock_mhz(cut: PhaseCut) -> float | None:
    series = _series(cut, "cpu_clock_mean_mhz", "clock_mhz", "cpu", ("cpufreq",))
    return None if series is None else cut.mean("cpu_clock_mean_mhz", series)


def _cpu_temperature_c(cut: PhaseCut) -> float | None:
    figure = "cpu_temperature_peak_c"
    series = _series(cut, figure, "temperature_c", "cpu", ("thermal",))
    return None if series is None else cut.peak(figure, series, may_use_neighbours=False)


def _n_readings(cut: PhaseCut) -> int | None:
    if not cut.timeline.series:
        cut.reasons["n_telemetry_readings"] = "no reading was taken"
        return None
    return cut.timeline.n_within(cut.start_ns, cut.end_ns)


# -- energy and throttling
def _cpu_energy_j(cut: PhaseCut) -> float | None:
    """Sum over the packages; None if one of them cannot be told."""
    figure = "cpu_energy_j"
    packages = cut.timeline.per_device("energy_j", frozenset({"rapl"}))
    if not packages:
        cut.reasons[figure] = cut.why_absent("energy_j", ("rapl",))
        return None
    differences = [cut.difference(figure, series) for series in packages.values()]
    told = [difference.amount for difference in differences if difference is not None]
    return sum(told) if len(told) == len(packages) else None


def _energy_per_token(
    cut: PhaseCut,
    gpus: UsedGpus,
    gpu_j: float | None,
    cpu_j: float | None,
    n_tokens: int | None,
) -> tuple[float | None, str | None]:
    """(J/token, scope). A used GPU without a figure makes both None: the CPU's share alone would flatter."""
    parts = {
        name: energy_j
        for name, energy_j in (("gpu", gpu_j), ("cpu", cpu_j))
        if energy_j is not None
    }
    scope = "+".join(parts)
    if gpus.used and gpu_j is None:
        why, scope = f"energy of the GPU: {cut.reasons['gpu_energy_j']}", ""
    else:
        why = f"GPU: {cut.reasons.get('gpu_energy_j')}; CPU: {cut.reasons.get('cpu_energy_j')}"
    if scope and n_tokens:
        return sum(parts.values()) / n_tokens, scope
    missing = {"energy_per_token_j": "the number of tokens is not known"}
    if not scope:
        missing = dict.fromkeys(("energy_per_token_j", "energy_scope"), why)
    cut.reasons.update(missing)
    return None, scope or None


def _throttled_fraction(cut: PhaseCut, gpus: UsedGpus) -> float | None:
    """Share of a device's readings with a thermal or power limit; of the CPU and the used GPUs the worst counts."""
    figure = "throttled_fraction"
    shares: list[float | None] = []
    cpu = cut.timeline.of("is_throttled", device="cpu")
    if cpu is not None:
        shares.append(cut.mean(figure, cpu))
    if gpus.used:
        shares.append(gpus.mean(figure, "is_throttled", max))
    if not shares:
        cut.reasons[figure] = cut.why_absent("is_throttled", ("thermal",), "cpu")
    told = [share for share in shares if share is not None]
    return max(told) if told and len(told) == len(shares) else None
