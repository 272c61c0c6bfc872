"""NVIDIA devices through NVML (module `pynvml`, loaded only when opened). Raw readings, one sensor at a time.

A sensor that a chip does not have (unified memory: no memory figures) is dropped with NVML's own words; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from llamasweep.telemetry.sensors import SLOW_EVERY, Sensor, SensorSource

Pairs = Iterable[tuple[str, float]]


def open_nvml(tree_pids: Callable[[], frozenset[int]]) -> tuple[SensorSource | None, str | None]:
    """The source, or None and the reason. tree_pids: the engine's processes at the time of a reading."""
    try:
        import pynvml  # noqa: PLC0415  (heavy; most machines need it not)
    except ImportError as error:
        return None, f"the Python module pynvml cannot be loaded: {error}"
    try:
        pynvml.nvmlInit()
        n_devices = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return None, f"NVML: {error}"
    source = SensorSource(name="nvml", sensors=[], is_permanent=_permanence(pynvml))
    for index in range(n_devices):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            source.absent[f"nvml/gpu{index}/*"] = f"NVML: {error}"
            continue
        source.sensors += _device_sensors(pynvml, handle, f"gpu{index}", tree_pids)
    if not source.sensors:
        lost = "; ".join(source.absent.values())
        return None, f"NVML answers, but {lost}" if lost else "NVML finds no device"
    return source, None


def close_nvml() -> None:
    """Lets the library go. Harmless where it was never loaded."""
    import sys  # noqa: PLC0415

    pynvml = sys.modules.get("pynvml")
    if pynvml is None:
        return
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return


def _permanence(nvml: ModuleType) -> Callable[[Exception], bool]:
    codes = {
        nvml.NVML_ERROR_NOT_SUPPORTED,
        nvml.NVML_ERROR_NO_PERMISSION,
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        nvml.NVML_ERROR_INVALID_ARGUMENT,
        nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        nvml.NVML_ERROR_DEPRECATED,
        nvml.NVML_ERROR_GPU_IS_LOST,
    }

    def is_permanent(error: Exception) -> bool:
        return isinstance(error, nvml.NVMLError) and error.value in codes

    return is_permanent


def _device_sensors(
    nvml: ModuleType, handle: Any, device: str, tree_pids: Callable[[], frozenset[int]]
) -> list[Sensor]:
    def memory() -> Pairs:
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return ("vram_used_bytes", float(info.used)), ("vram_total_bytes", float(info.total))

    def utilisation() -> Pairs:
        rates = nvml.nvmlDeviceGetUtilizationRates(handle)
        return (
            ("use_fraction", rates.gpu / 100),
            ("memory_controller_use_fraction", rates.memory / 100),
        )

    many: list[tuple[tuple[str, ...], Callable[[], Pairs]]] = [
        (("vram_used_bytes", "vram_total_bytes"), memory),
        (("vram_process_bytes",), lambda: _process_memory(nvml, handle, tree_pids())),
        (("use_fraction", "memory_controller_use_fraction"), utilisation),
        (("throttle_reasons_mask", "is_throttled"), lambda: _throttle(nvml, handle)),
    ]
    return [
        *(Sensor(device=device, metrics=metrics, read=read) for metrics, read in many),
        *(_one(device, metric, call) for metric, call in _single_values(nvml, handle).items()),
        *(_one(device, m, call, SLOW_EVERY) for m, call in _pcie_values(nvml, handle).items()),
    ]


def _one(device: str, metric: str, call: Callable[[], float], every: int = 1) -> Sensor:
    return Sensor(
        device=device, metrics=(metric,), read=lambda: ((metric, float(call())),), every=every
    )


def _single_values(nvml: ModuleType, handle: Any) -> dict[str, Callable[[], float]]:
    return {
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "energy_j": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3,
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "temperature_c": lambda: _temperature(nvml, handle),
    }


def _pcie_values(nvml: ModuleType, handle: Any) -> dict[str, Callable[[], float]]:
    """Read seldom: for its throughput NVML watches the link for 20 ms before it answers."""
    throughput = nvml.nvmlDeviceGetPcieThroughput
    sent, received = nvml.NVML_PCIE_UTIL_TX_BYTES, nvml.NVML_PCIE_UTIL_RX_BYTES
    return {
        "pcie_link_generation": lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_link_width_lanes": lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        "pcie_sent_bytes_per_s": lambda: throughput(handle, sent) * 1024,
        "pcie_received_bytes_per_s": lambda: throughput(handle, received) * 1024,
    }


def _process_memory(nvml: ModuleType, handle: Any, pids: frozenset[int]) -> Pairs:
    """Device memory of the engine; nothing where NVML does not list it (not there, or other pid namespace).

    A process with both a compute and a graphics context stands in both lists with the same figure.
    """
    used: dict[int, int] = {}
    if not pids:
        return ()
    for list_processes in (
        nvml.nvmlDeviceGetComputeRunningProcesses,
        nvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        for process in list_processes(handle):
            if process.pid in pids and process.usedGpuMemory is not None:
                used[process.pid] = max(used.get(process.pid, 0), process.usedGpuMemory)
    return (("vram_process_bytes", float(sum(used.values()))),) if used else ()


def _temperature(nvml: ModuleType, handle: Any) -> float:
    """The call that NVML recommends since 2025, else the older one."""
    try:
        return float(nvml.nvmlDeviceGetTemperatureV(handle, nvml.NVML_TEMPERATURE_GPU))
    except (AttributeError, nvml.NVMLError):
        return float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))


def _throttle(nvml: ModuleType, handle: Any) -> Pairs:
    try:
        mask = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except (AttributeError, nvml.NVMLError):  # drivers before 535 know only the older name
        mask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    limits = (
        nvml.nvmlClocksThrottleReasonSwPowerCap
        | nvml.nvmlClocksThrottleReasonHwSlowdown
        | nvml.nvmlClocksThrottleReasonSwThermalSlowdown
        | nvml.nvmlClocksThrottleReasonHwThermalSlowdown
        | nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
        | nvml.nvmlClocksThrottleReasonBoardLimit
    )
    return ("throttle_reasons_mask", float(mask)), ("is_throttled", float(bool(mask & limits)))
