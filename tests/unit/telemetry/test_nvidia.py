"""NVML readings, through the real pynvml over a synthetic library."""

from __future__ import annotations

from collections.abc import Callable

import pynvml
import pytest
from tests.unit.telemetry.synthetic_nvml import SyntheticGpu, SyntheticNvml

from llamasweep.results.records import Reading
from llamasweep.telemetry.nvidia import close_nvml, open_nvml
from llamasweep.telemetry.sensors import MAX_FAILURES_IN_A_ROW, SensorSource

Install = Callable[..., SyntheticNvml]
EVERY_METRIC = {
    "vram_used_bytes", "vram_total_bytes", "vram_process_bytes", "use_fraction", "memory_controller_use_fraction",
    "power_w", "energy_j", "sm_clock_mhz", "memory_clock_mhz", "temperature_c", "throttle_reasons_mask", "is_throttled",
    "pcie_link_generation", "pcie_link_width_lanes", "pcie_sent_bytes_per_s", "pcie_received_bytes_per_s",
}  # fmt: skip


def opened(pids: frozenset[int] = frozenset({4242})) -> SensorSource:
    source, reason = open_nvml(lambda: pids)
    assert source is not None, reason
    return source


def by_metric(readings: list[Reading], device: str = "gpu0") -> dict[str, float]:
    return {r.metric: r.value for r in readings if r.device == device}


def test_every_sensor_of_a_full_device_is_read_in_its_unit(install_nvml: Install) -> None:
    install_nvml(SyntheticGpu(processes=[(4242, 5 * 2**30), (17, 2**30)]))
    values = by_metric(opened().read(4242))
    assert set(values) == EVERY_METRIC
    assert values["vram_used_bytes"] == 6 * 2**30
    assert values["vram_process_bytes"] == 5 * 2**30
    assert values["use_fraction"] == pytest.approx(0.97)
    assert values["power_w"] == pytest.approx(215.5)
    assert values["energy_j"] == pytest.approx(1000.0)
    assert (values["sm_clock_mhz"], values["memory_clock_mhz"]) == (1905, 10_501)
    assert values["temperature_c"] == 71
    assert values["pcie_sent_bytes_per_s"] == 2048 * 1024


def test_unified_memory_loses_its_memory_sensor_and_nothing_else(install_nvml: Install) -> None:
    code = pynvml.NVML_ERROR_NOT_SUPPORTED
    install_nvml(SyntheticGpu(errors={"nvmlDeviceGetMemoryInfo": code}, processes=[(4242, 2**30)]))
    source = opened()
    values = by_metric(source.read(4242))
    assert set(values) == EVERY_METRIC - {"vram_used_bytes", "vram_total_bytes"}
    assert source.absent["nvml/gpu0/vram_used_bytes"] == "Not Supported"


@pytest.mark.parametrize(
    ("function", "lost"),
    [
        ("nvmlDeviceGetUtilizationRates", {"use_fraction", "memory_controller_use_fraction"}),
        ("nvmlDeviceGetPowerUsage", {"power_w"}),
        ("nvmlDeviceGetTotalEnergyConsumption", {"energy_j"}),
        ("nvmlDeviceGetClockInfo", {"sm_clock_mhz", "memory_clock_mhz"}),
        ("nvmlDeviceGetComputeRunningProcesses_v3", {"vram_process_bytes"}),
        (
            "nvmlDeviceGetPcieThroughput",
            {"pcie_sent_bytes_per_s", "pcie_received_bytes_per_s"},
        ),
    ],
)
def test_a_failing_sensor_is_absent_with_a_reason_and_never_zero(
    install_nvml: Install, function: str, lost: set[str]
) -> None:
    install_nvml(
        SyntheticGpu(errors={function: pynvml.NVML_ERROR_NO_PERMISSION}, processes=[(4242, 2**30)])
    )
    source = opened()
    assert set(by_metric(source.read(4242))) == EVERY_METRIC - lost
    assert {source.absent[f"nvml/gpu0/{metric}"] for metric in lost} == {"Insufficient Permissions"}


def test_a_dropped_sensor_is_not_asked_again(install_nvml: Install) -> None:
    library = install_nvml(
        SyntheticGpu(errors={"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_NOT_SUPPORTED})
    )
    source = opened()
    source.read(None)
    source.read(None)
    assert library.calls.count("nvmlDeviceGetPowerUsage") == 1


def test_a_passing_failure_costs_its_readings_only(install_nvml: Install) -> None:
    gpu = SyntheticGpu(errors={"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_TIMEOUT})
    install_nvml(gpu)
    source = opened()
    assert "power_w" not in by_metric(source.read(None))
    assert source.absent["nvml/gpu0/power_w"] == "Timeout"
    gpu.errors.clear()
    assert by_metric(source.read(None))["power_w"] == pytest.approx(215.5)
    assert "nvml/gpu0/power_w" not in source.absent


def test_a_sensor_that_never_answers_is_dropped_in_the_end(install_nvml: Install) -> None:
    gpu = SyntheticGpu(errors={"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_UNKNOWN})
    install_nvml(gpu)
    source = opened()
    for _ in range(MAX_FAILURES_IN_A_ROW):
        source.read(None)
    gpu.errors.clear()
    assert "power_w" not in by_metric(source.read(None))
    assert source.absent["nvml/gpu0/power_w"] == "Unknown Error"


def test_older_drivers_answer_by_their_older_names(install_nvml: Install) -> None:
    install_nvml(
        SyntheticGpu(throttle_mask=0x40),
        unknown=frozenset({"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV"}),
    )
    values = by_metric(opened().read(None))
    assert values["temperature_c"] == 71
    assert values["is_throttled"] == 1.0


@pytest.mark.parametrize(
    ("mask", "is_throttled"),
    [(0x0, 0.0), (0x1, 0.0), (0x2, 0.0), (0x4, 1.0), (0x8, 1.0), (0x20, 1.0), (0x40, 1.0), (0x80, 1.0), (0x100, 0.0)],
)  # fmt: skip
def test_only_thermal_and_power_reasons_count_as_throttling(
    install_nvml: Install, mask: int, is_throttled: float
) -> None:
    install_nvml(SyntheticGpu(throttle_mask=mask))
    values = by_metric(opened().read(None))
    assert values["is_throttled"] == is_throttled
    assert values["throttle_reasons_mask"] == mask


def test_memory_of_a_process_in_both_lists_counts_once(install_nvml: Install) -> None:
    install_nvml(
        SyntheticGpu(processes=[(4242, 2**30)], graphics_processes=[(4242, 2**30), (4243, 2**20)])
    )
    values = by_metric(opened(frozenset({4242, 4243})).read(4242))
    assert values["vram_process_bytes"] == 2**30 + 2**20


def test_memory_of_a_process_that_is_not_listed_is_absent_not_zero(install_nvml: Install) -> None:
    install_nvml(SyntheticGpu(processes=[(17, 2**30)]))
    assert "vram_process_bytes" not in by_metric(opened().read(4242))


def test_memory_that_windows_does_not_tell_is_absent(install_nvml: Install) -> None:
    install_nvml(SyntheticGpu(processes=[(4242, 2**64 - 1)]))
    assert "vram_process_bytes" not in by_metric(opened().read(4242))


def test_several_devices_go_by_their_index_and_fail_alone(install_nvml: Install) -> None:
    install_nvml(
        SyntheticGpu(errors={"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_GPU_IS_LOST}),
        SyntheticGpu(power_mw=90_000),
    )
    readings = opened().read(None)
    assert "power_w" not in by_metric(readings, "gpu0")
    assert by_metric(readings, "gpu1")["power_w"] == pytest.approx(90.0)


def test_no_device_and_no_driver_are_told_apart(install_nvml: Install) -> None:
    library = install_nvml()
    assert open_nvml(frozenset) == (None, "NVML finds no device")
    library.init_code = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert open_nvml(frozenset) == (None, "NVML: Driver Not Loaded")


def test_closing_shuts_the_library_down(install_nvml: Install) -> None:
    library = install_nvml(SyntheticGpu())
    opened()
    close_nvml()
    assert library.calls[-1] == "nvmlShutdown"
