"""Folding readings into figures: each figure, each absence, and the rules at the borders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import pytest

from llamasweep.results.records import Reading, TelemetryFigures
from llamasweep.results.summary import fold
from llamasweep.results.timeline import make_timeline

T0 = 1_700_000_000_000_000_000
S = 1_000_000_000
GIB = 2**30


def reading(at_s: float, source: str, device: str, metric: str, value: float) -> Reading:
    return Reading(
        time_ns=T0 + round(at_s * S), source=source, device=device, metric=metric, value=value
    )


def full_telemetry(n: int = 21, step_s: float = 0.5) -> list[Reading]:
    """Ten seconds of a machine with everything: every counter rises by a steady rate."""
    found = []
    for index in range(n):
        t = index * step_s
        for source, device, metric, value in (
            ("proc", "process", "rss_bytes", 2 * GIB + index),
            ("proc", "process", "pss_bytes", GIB + index),
            ("proc", "process", "major_faults_count", 100 * t),
            ("proc", "process", "disk_read_bytes", 4096 * t),
            ("proc", "process", "cpu_time_s", 3 * t),
            ("proc", "system", "ram_used_bytes", 5 * GIB + index),
            ("proc", "system", "swap_used_bytes", 7.0),
            ("proc", "system", "cpu_busy_s", 3.4 * t),
            ("cpufreq", "cpu", "clock_mhz", 3000.0),
            ("thermal", "cpu", "temperature_c", 50.0 + index),
            ("thermal", "cpu", "is_throttled", 0.0),
            ("rapl", "package-0", "energy_j", 40 * t),
            ("rapl", "package-1", "energy_j", 10 * t),
            ("nvml", "gpu0", "vram_used_bytes", 9 * GIB),
            ("nvml", "gpu0", "vram_process_bytes", 8 * GIB),
            ("nvml", "gpu0", "use_fraction", 0.9),
            ("nvml", "gpu0", "power_w", 200.0),
            ("nvml", "gpu0", "energy_j", 200 * t),
            ("nvml", "gpu0", "sm_clock_mhz", 1900.0),
            ("nvml", "gpu0", "memory_clock_mhz", 10_000.0),
            ("nvml", "gpu0", "temperature_c", 60.0 + index),
            ("nvml", "gpu0", "is_throttled", float(index % 2)),
            ("nvml", "gpu1", "vram_used_bytes", GIB),
            ("nvml", "gpu1", "use_fraction", 0.0),
            ("nvml", "gpu1", "power_w", 15.0),
        ):
            found.append(reading(t, source, device, metric, value))
    return found


def without(readings: Iterable[Reading], *metrics: str, device: str | None = None) -> list[Reading]:
    return [r for r in readings if r.metric not in metrics or (device and r.device != device)]


def folded(
    readings: list[Reading],
    start_s: float = 2.25,
    end_s: float = 7.25,
    *,
    n_tokens: int | None = 100,
    absent: dict[str, str] | None = None,
    uses_gpu: bool | None = None,
) -> tuple[TelemetryFigures, dict[str, str]]:
    return fold(
        readings,
        start_ns=T0 + round(start_s * S),
        end_ns=T0 + round(end_s * S),
        n_tokens=n_tokens,
        n_cores=4,
        interval_s=0.5,
        absent=absent,
        uses_gpu=uses_gpu,
    )


def test_every_figure_of_a_machine_with_everything() -> None:
    figures, reasons = folded(full_telemetry())
    assert reasons == {}
    assert figures.ram_peak_process_bytes == 2 * GIB + 14
    assert figures.ram_peak_pss_bytes == GIB + 14
    assert figures.ram_peak_system_bytes == 5 * GIB + 14
    assert figures.swap_peak_bytes == 7
    assert figures.vram_peak_device_bytes == 9 * GIB
    assert figures.vram_peak_process_bytes == 8 * GIB
    assert figures.n_major_faults == 500
    assert figures.disk_read_bytes == 5 * 4096
    assert figures.cpu_use_fraction == pytest.approx(0.75)
    assert figures.cpu_use_other_fraction == pytest.approx(0.1)
    assert figures.cpu_clock_mean_mhz == 3000
    assert figures.cpu_temperature_peak_c == 64
    assert figures.gpu_use_mean_fraction == pytest.approx(0.9)
    assert figures.gpu_clock_mean_mhz == 1900
    assert figures.gpu_memory_clock_mean_mhz == 10_000
    assert figures.gpu_temperature_peak_c == 74
    assert figures.gpu_power_mean_w == 200
    assert figures.gpu_energy_j == pytest.approx(1000)
    assert figures.cpu_energy_j == pytest.approx(250)
    assert figures.energy_per_token_j == pytest.approx(12.5)
    assert figures.energy_scope == "gpu+cpu"
    assert figures.throttled_fraction == pytest.approx(0.5)
    assert figures.n_telemetry_readings == 10 * 25


NEEDS = {
    "ram_peak_process_bytes": "rss_bytes",
    "ram_peak_pss_bytes": "pss_bytes",
    "ram_peak_system_bytes": "ram_used_bytes",
    "swap_peak_bytes": "swap_used_bytes",
    "vram_peak_device_bytes": "vram_used_bytes",
    "n_major_faults": "major_faults_count",
    "disk_read_bytes": "disk_read_bytes",
    "cpu_use_fraction": "cpu_time_s",
    "cpu_use_other_fraction": "cpu_busy_s",
    "cpu_clock_mean_mhz": "clock_mhz",
    "gpu_use_mean_fraction": "use_fraction",
    "gpu_clock_mean_mhz": "sm_clock_mhz",
    "gpu_memory_clock_mean_mhz": "memory_clock_mhz",
    "gpu_power_mean_w": "power_w",
    "throttled_fraction": "is_throttled",
    "cpu_energy_j": "energy_j",
}


@pytest.mark.parametrize(("figure", "metric"), NEEDS.items())
def test_absent_in_is_absent_out_with_a_reason(figure: str, metric: str) -> None:
    figures, reasons = folded(without(full_telemetry(), metric))
    assert getattr(figures, figure) is None
    assert reasons[figure]


@pytest.mark.parametrize(
    ("figure", "device"), [("cpu_temperature_peak_c", "cpu"), ("gpu_temperature_peak_c", "gpu0")]
)
def test_an_absent_temperature_is_absent_of_its_own_device_only(figure: str, device: str) -> None:
    figures, reasons = folded(without(full_telemetry(), "temperature_c", device=device))
    assert getattr(figures, figure) is None
    assert set(reasons) == {figure}


def test_absent_memory_of_the_process_leaves_the_device_to_its_utilisation() -> None:
    figures, reasons = folded(without(full_telemetry(), "vram_process_bytes"))
    assert figures.vram_peak_process_bytes is None
    assert figures.vram_peak_device_bytes == 9 * GIB
    assert set(reasons) == {"vram_peak_process_bytes"}


def test_no_readings_at_all_make_every_figure_none_with_a_reason() -> None:
    figures, reasons = folded([])
    names = {field.name for field in fields(TelemetryFigures)}
    assert {name for name in names if getattr(figures, name) is None} == names
    assert reasons.keys() == names


def test_reasons_are_those_that_the_sources_gave() -> None:
    absent = {
        "nvml": "NVML: NVML Shared Library Not Found",
        "amdgpu": "no AMD graphics card in /sys/class/drm",
        "rapl": "only root may read energy_uj",
        "proc/process/pss_bytes": "not read: walking 8.0 GiB",
        "thermal": "no CPU temperature sensor",
    }
    cpu_only = [r for r in full_telemetry() if r.source == "proc" and r.metric != "pss_bytes"]
    _, reasons = folded(cpu_only, absent=absent)
    assert "Shared Library Not Found" in reasons["gpu_power_mean_w"]
    assert "no AMD graphics card" in reasons["gpu_power_mean_w"]
    assert reasons["cpu_energy_j"] == "rapl: only root may read energy_uj"
    assert reasons["ram_peak_pss_bytes"] == "not read: walking 8.0 GiB"
    assert reasons["cpu_temperature_peak_c"] == "thermal: no CPU temperature sensor"
    assert "only root" in reasons["energy_scope"]


def test_unified_memory_keeps_every_figure_but_the_devices_memory() -> None:
    absent = {"nvml/gpu0/vram_used_bytes": "Not Supported"}
    figures, reasons = folded(without(full_telemetry(), "vram_used_bytes"), absent=absent)
    assert reasons == {"vram_peak_device_bytes": "Not Supported"}
    assert figures.gpu_energy_j == pytest.approx(1000)


# -- phases
def test_a_phase_shorter_than_the_interval_has_no_rates_and_says_so() -> None:
    figures, reasons = folded(full_telemetry(), 2.1, 2.22)
    words = "phase of 120 ms is shorter than the telemetry interval"
    for figure in ("cpu_use_fraction", "n_major_faults", "gpu_energy_j", "cpu_energy_j", "gpu_power_mean_w",
                   "cpu_clock_mean_mhz", "throttled_fraction", "disk_read_bytes"):  # fmt: skip
        assert getattr(figures, figure) is None
        assert reasons[figure] == words
    assert figures.energy_per_token_j is None
    assert words in reasons["energy_per_token_j"]


def test_memory_of_a_short_phase_is_the_larger_of_its_neighbours_and_flagged() -> None:
    figures, reasons = folded(full_telemetry(), 2.1, 2.22)
    assert figures.ram_peak_process_bytes == 2 * GIB + 5
    assert "nearest before and after" in reasons["ram_peak_process_bytes"]
    assert figures.cpu_temperature_peak_c is None
    assert "no reading fell into the phase" in reasons["cpu_temperature_peak_c"]


def test_a_reading_far_from_a_short_phase_says_nothing_of_it() -> None:
    figures, reasons = folded([reading(0, "proc", "process", "rss_bytes", 5.0)], 3.0, 3.1)
    assert figures.ram_peak_process_bytes is None
    assert "no reading fell" in reasons["ram_peak_process_bytes"]


def test_a_long_phase_without_a_reading_uses_no_neighbour() -> None:
    readings = [reading(t, "proc", "process", "rss_bytes", 5.0) for t in (0, 10)]
    figures, _ = folded(readings, 2, 8)
    assert figures.ram_peak_process_bytes is None


def test_a_counter_needs_a_reading_before_the_phase() -> None:
    figures, reasons = folded([r for r in full_telemetry() if r.time_ns > T0 + 3 * S])
    assert figures.n_major_faults is None
    assert reasons["n_major_faults"] == "no reading before the phase"
    assert figures.ram_peak_process_bytes is not None


def test_counters_of_a_process_that_is_gone_say_how_much_of_the_phase_they_miss() -> None:
    ended = [r for r in full_telemetry() if r.device != "process" or r.time_ns <= T0 + 7 * S]
    figures, reasons = folded(ended)
    assert figures.n_major_faults == 475
    assert reasons["n_major_faults"] == "without the last 250 ms of the phase"
    assert figures.cpu_use_fraction == pytest.approx(0.75)


def test_counters_of_a_process_that_ended_long_before_are_none() -> None:
    ended = [r for r in full_telemetry() if r.device != "process" or r.time_ns <= T0 + 5 * S]
    figures, reasons = folded(ended)
    assert figures.n_major_faults is None
    assert reasons["n_major_faults"] == "no reading after the phase"


def test_energy_without_a_reading_after_the_phase_is_none() -> None:
    figures, reasons = folded([r for r in full_telemetry() if r.time_ns <= T0 + 7 * S])
    assert figures.cpu_energy_j is None
    assert reasons["cpu_energy_j"] == "no reading after the phase"


def test_a_counter_that_falls_is_none() -> None:
    readings = [reading(t, "proc", "process", "major_faults_count", 100 - t) for t in range(11)]
    figures, reasons = folded(readings)
    assert figures.n_major_faults is None
    assert "fell" in reasons["n_major_faults"]


def test_use_by_others_does_not_go_below_zero_by_clock_granularity() -> None:
    readings = without(full_telemetry(), "cpu_busy_s")
    readings += [reading(t, "proc", "system", "cpu_busy_s", 2.999 * t) for t in range(11)]
    assert folded(readings)[0].cpu_use_other_fraction == 0.0


# -- devices
def test_a_cpu_build_counts_no_gpu_however_busy_it_is() -> None:
    figures, reasons = folded(full_telemetry(), uses_gpu=False)
    assert figures.gpu_energy_j is None
    assert reasons["gpu_energy_j"] == "the engine used no GPU"
    assert figures.energy_scope == "cpu"
    assert figures.energy_per_token_j == pytest.approx(2.5)
    assert figures.throttled_fraction == 0.0


def test_an_idle_gpu_is_not_used() -> None:
    readings = [r for r in full_telemetry() if r.device != "gpu0"]
    figures, reasons = folded(readings)
    assert figures.vram_peak_device_bytes is None
    assert "no GPU was seen at work" in reasons["vram_peak_device_bytes"]
    assert figures.energy_scope == "cpu"


def test_two_used_devices_are_summed_and_one_that_cannot_tell_makes_none() -> None:
    second = [
        Reading(time_ns=r.time_ns, source=r.source, device="gpu2", metric=r.metric, value=r.value)
        for r in full_telemetry()
        if r.device == "gpu0"
    ]
    both = full_telemetry() + second
    figures, _ = folded(both)
    assert figures.vram_peak_device_bytes == 18 * GIB
    assert figures.gpu_power_mean_w == 400
    assert figures.gpu_use_mean_fraction == pytest.approx(0.9)
    absent = {"nvml/gpu2/power_w": "Not Supported"}
    figures, reasons = folded(without(both, "power_w", device="gpu2"), absent=absent)
    assert figures.gpu_power_mean_w is None
    assert reasons["gpu_power_mean_w"] == "Not Supported"


def test_energy_without_a_counter_is_the_area_under_the_power_and_told() -> None:
    figures, reasons = folded(without(full_telemetry(), "energy_j", device="gpu0"))
    assert figures.gpu_energy_j == pytest.approx(1000)
    assert "area under the power" in reasons["gpu_energy_j"]


def test_a_used_gpu_without_energy_leaves_no_energy_per_token() -> None:
    figures, reasons = folded(
        [r for r in full_telemetry() if r.device != "gpu0" or r.metric not in {"energy_j", "power_w"}]
    )  # fmt: skip
    assert figures.cpu_energy_j == pytest.approx(250)
    assert figures.energy_per_token_j is None
    assert figures.energy_scope is None
    assert "energy of the GPU" in reasons["energy_per_token_j"]


def test_energy_without_tokens_keeps_its_scope() -> None:
    figures, reasons = folded(full_telemetry(), n_tokens=None)
    assert figures.energy_per_token_j is None
    assert figures.energy_scope == "gpu+cpu"
    assert "tokens" in reasons["energy_per_token_j"]


def test_one_package_without_a_figure_makes_the_cpus_energy_none() -> None:
    readings = [r for r in full_telemetry() if r.device != "package-1" or r.time_ns <= T0 + 6 * S]
    assert folded(readings)[0].cpu_energy_j is None


def test_a_gpu_whose_sensors_do_not_tell_use_counts_only_if_the_engine_must_use_it() -> None:
    intel = [reading(t / 2, "intel", "gpu0", "energy_j", 10.0 * t) for t in range(21)]
    figures, reasons = folded(intel)
    assert figures.gpu_energy_j is None
    assert "cannot be told" in reasons["gpu_energy_j"]
    assert folded(intel, uses_gpu=True)[0].gpu_energy_j == pytest.approx(100)


def test_a_timeline_made_once_gives_the_same_as_the_readings() -> None:
    timeline = make_timeline(full_telemetry())
    again = fold(
        timeline,
        start_ns=T0 + round(2.25 * S),
        end_ns=T0 + round(7.25 * S),
        n_tokens=100,
        n_cores=4,
        interval_s=0.5,
    )
    assert again == folded(full_telemetry())


@pytest.mark.parametrize(("start", "end", "n_cores"), [(2, 1, 4), (1, 2, 0)])
def test_an_impossible_phase_is_refused(start: int, end: int, n_cores: int) -> None:
    with pytest.raises(ValueError, match="phase"):
        fold([], start_ns=start, end_ns=end, n_tokens=1, n_cores=n_cores, interval_s=0.5)
