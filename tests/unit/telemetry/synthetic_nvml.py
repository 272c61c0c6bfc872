"""A synthetic NVML library: what `libnvidia-ml` answers, by its documented structures, below the real module `pynvml`.

No such hardware was at hand; the figures are invented. Everything above the C calls is the code that a real machine runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml

SUCCESS = 0


@dataclass(kw_only=True)
class SyntheticGpu:
    """One device. errors: C function -> NVML error code that it answers instead. processes: (pid, bytes) as compute."""

    memory_used: int = 6 * 2**30
    memory_total: int = 24 * 2**30
    gpu_percent: int = 97
    power_mw: int = 215_500
    energy_mj: int = 1_000_000
    sm_mhz: int = 1905
    memory_mhz: int = 10_501
    temperature: int = 71
    throttle_mask: int = 0
    processes: list[tuple[int, int]] = field(default_factory=list)
    graphics_processes: list[tuple[int, int]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)


class SyntheticNvml:
    """Stands where pynvml keeps the loaded C library. unknown: functions that this library's version lacks."""

    def __init__(self, *gpus: SyntheticGpu, unknown: frozenset[str] = frozenset()) -> None:
        self.gpus = gpus
        self.unknown = unknown
        self.calls: list[str] = []
        self.init_code = SUCCESS

    def __getattr__(self, name: str) -> Callable[..., int]:
        answer = _ANSWERS.get(name)
        if name.startswith("__") or name in self.unknown or answer is None:
            raise AttributeError(name)

        def call(*args: Any) -> int:
            self.calls.append(name)
            if name in {"nvmlInitWithFlags", "nvmlShutdown"}:
                return self.init_code
            if name == "nvmlDeviceGetCount_v2":
                args[0]._obj.value = len(self.gpus)
                return SUCCESS
            if name == "nvmlDeviceGetHandleByIndex_v2":
                ctypes.cast(args[1], ctypes.POINTER(ctypes.c_void_p))[0] = args[0].value + 1
                return SUCCESS
            gpu = self.gpus[(ctypes.cast(args[0], ctypes.c_void_p).value or 0) - 1]
            code = gpu.errors.get(name, SUCCESS)
            return code or answer(gpu, *args[1:])

        return call


def _number(attribute: str) -> Callable[..., int]:
    def answer(gpu: SyntheticGpu, ref: Any) -> int:
        ref._obj.value = getattr(gpu, attribute)
        return SUCCESS

    return answer


def _constant(value: int) -> Callable[..., int]:
    def answer(_gpu: SyntheticGpu, *args: Any) -> int:
        args[-1]._obj.value = value
        return SUCCESS

    return answer


def _memory(gpu: SyntheticGpu, ref: Any) -> int:
    ref._obj.total, ref._obj.used = gpu.memory_total, gpu.memory_used
    ref._obj.free = gpu.memory_total - gpu.memory_used
    return SUCCESS


def _utilisation(gpu: SyntheticGpu, ref: Any) -> int:
    ref._obj.gpu, ref._obj.memory = gpu.gpu_percent, 40
    return SUCCESS


def _clock(gpu: SyntheticGpu, kind: Any, ref: Any) -> int:
    ref._obj.value = gpu.sm_mhz if kind.value == pynvml.NVML_CLOCK_SM else gpu.memory_mhz
    return SUCCESS


def _temperature_v(gpu: SyntheticGpu, ref: Any) -> int:
    ref._obj.temperature = gpu.temperature
    return SUCCESS


def _temperature(gpu: SyntheticGpu, _sensor: Any, ref: Any) -> int:
    ref._obj.value = gpu.temperature
    return SUCCESS


def _processes(attribute: str) -> Callable[..., int]:
    def answer(gpu: SyntheticGpu, count: Any, array: Any) -> int:
        listed = getattr(gpu, attribute)
        if array is None:
            count._obj.value = len(listed)
            return pynvml.NVML_ERROR_INSUFFICIENT_SIZE if listed else SUCCESS
        for entry, (pid, used) in zip(array, listed, strict=False):
            entry.pid, entry.usedGpuMemory = pid, used
        count._obj.value = len(listed)
        return SUCCESS

    return answer


_ANSWERS: dict[str, Callable[..., int]] = {
    "nvmlInitWithFlags": _constant(0),
    "nvmlShutdown": _constant(0),
    "nvmlDeviceGetCount_v2": _constant(0),
    "nvmlDeviceGetHandleByIndex_v2": _constant(0),
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetUtilizationRates": _utilisation,
    "nvmlDeviceGetPowerUsage": _number("power_mw"),
    "nvmlDeviceGetTotalEnergyConsumption": _number("energy_mj"),
    "nvmlDeviceGetClockInfo": _clock,
    "nvmlDeviceGetTemperatureV": _temperature_v,
    "nvmlDeviceGetTemperature": _temperature,
    "nvmlDeviceGetCurrentClocksEventReasons": _number("throttle_mask"),
    "nvmlDeviceGetCurrentClocksThrottleReasons": _number("throttle_mask"),
    "nvmlDeviceGetComputeRunningProcesses_v3": _processes("processes"),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _processes("graphics_processes"),
    "nvmlDeviceGetCurrPcieLinkGeneration": _constant(4),
    "nvmlDeviceGetCurrPcieLinkWidth": _constant(16),
    "nvmlDeviceGetPcieThroughput": _constant(2048),
}
