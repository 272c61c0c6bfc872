"""Opens every telemetry source of this machine and says why the others are absent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from llamasweep.telemetry.amd import open_amd
from llamasweep.telemetry.cpu import open_clock, open_thermal
from llamasweep.telemetry.intel import open_intel
from llamasweep.telemetry.nvidia import close_nvml, open_nvml
from llamasweep.telemetry.process_tree import ProcessTree
from llamasweep.telemetry.processes import PsutilSource
from llamasweep.telemetry.rapl import open_rapl
from llamasweep.telemetry.sensors import SensorSource, Source
from llamasweep.telemetry.system import open_proc


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedSources:
    """sources: what can be read, the engine's processes first. absent: source -> why there is none."""

    sources: tuple[Source, ...]
    absent: dict[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Lets vendor libraries go; the sources are of no use afterwards."""
        if any(source.name == "nvml" for source in self.sources):
            close_nvml()


def open_sources(root: Path = Path("/"), *, platform: str = sys.platform) -> OpenedSources:
    """Everything that answers. Never raises for hardware that is not there.

    root: where /proc and /sys are looked for. platform: as `sys.platform`.
    """
    absent: dict[str, str] = {}
    processes, engine_pids = _open_processes(root, platform, absent)
    sources = [processes]
    for name, open_source in _openers(root, engine_pids, platform).items():
        try:
            source, reason = open_source()
        except Exception as error:  # noqa: BLE001  (odd hardware or a vendor's library must not end a sweep)
            source, reason = None, f"{type(error).__name__}: {error}"
        if source is not None:
            sources.append(source)
        if reason is not None:
            absent[name] = reason
    if platform == "darwin":
        absent["apple"] = "power and GPU use of Apple chips can be read by root only (powermetrics)"
    return OpenedSources(sources=tuple(sources), absent=absent)


def _open_processes(
    root: Path, platform: str, absent: dict[str, str]
) -> tuple[Source, Callable[[], frozenset[int]]]:
    tree = ProcessTree(root)
    try:
        return open_proc(tree), lambda: tree.members
    except (OSError, ValueError, AttributeError) as error:
        absent["proc"] = str(error)
        fallback = PsutilSource(platform=platform)
        return fallback, lambda: fallback.members


def _openers(
    root: Path, engine_pids: Callable[[], frozenset[int]], platform: str
) -> dict[str, Callable[[], tuple[SensorSource | None, str | None]]]:
    sysfs: dict[str, Callable[[Path], tuple[SensorSource | None, str | None]]] = {
        "amdgpu": open_amd,
        "intel": open_intel,
        "rapl": open_rapl,
        "cpufreq": open_clock,
        "thermal": open_thermal,
    }
    openers: dict[str, Callable[[], tuple[SensorSource | None, str | None]]] = {
        "nvml": partial(open_nvml, engine_pids)
    }
    for name, open_source in sysfs.items():
        openers[name] = (
            partial(open_source, root)
            if platform.startswith("linux")
            else lambda: (None, f"{platform} has no sysfs")
        )
    return openers
