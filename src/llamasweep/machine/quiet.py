"""Is the machine quiet? Watches for a second what others do, and looks at power and heat.

The load average is not asked: it remembers our own last group. What cannot be seen on this system
is None with a reason and never counts as quiet or as noisy.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.gpus import NvmlLibrary, open_nvml
from llamasweep.machine.text_files import read_int, read_text

BUSY_CORES = 0.25
"""CPU time of others, in cores, from which a measurement with all cores is doubtful."""

OWN_CORES = 0.10
"""CPU time of ours, in cores, from which tasks that wait may be waiting for us: then pressure tells nothing of others."""

PRESSURE_FRACTION = 0.10
"""Share of the time in which some task waited for a CPU."""

STEAL_FRACTION = 0.02
"""Share of CPU time that the hypervisor gave to somebody else."""

_SLOW_GOVERNORS = frozenset({"powersave", "conservative"})
_SELF_GOVERNING_DRIVERS = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose `powersave` is the normal mode; there the energy preference decides."""

_SLOW_PREFERENCES = frozenset({"power", "balance_power"})


@dataclass(frozen=True, kw_only=True, slots=True)
class QuietReport:
    """What was seen.

    findings: sentences. flags: one short word for each finding, in the same order: busy, cpu_pressure, stolen_cpu,
    swapping, slow_governor, on_battery, gpu_busy, throttled, hot. cpu_use_other_cores: CPU time of
    everybody but us, in cores. cpu_pressure_fraction: "some" of `/proc/pressure/cpu`, None too where
    we worked meanwhile. None: not visible here, see reasons.
    """

    findings: tuple[str, ...]
    flags: tuple[str, ...]
    cpu_use_other_cores: float | None = None
    cpu_pressure_fraction: float | None = None
    cpu_steal_fraction: float | None = None
    n_swapped_pages: int | None = None
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Nothing was found."""
        return not self.flags


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """Counters at one moment; None where the system has none."""

    busy_ticks: int | None
    steal_ticks: int | None
    all_ticks: int | None
    own_ticks: int
    pressure_us: int | None
    swapped_pages: int | None
    throttle_count: int | None


@dataclass(slots=True)
class QuietWatch:
    """A look at the machine that has begun; other work of ours may go on until `finish`.

    own_pids: processes that count as ours. seconds: to watch at least. root and wait: stand-ins.
    """

    own_pids: frozenset[int]
    seconds: float
    root: Path
    wait: Callable[[float], None]
    _before: _Look
    _start_ns: int

    @classmethod
    def begin(
        cls,
        *,
        seconds: float = 1.0,
        own_pids: frozenset[int] = frozenset(),
        root: Path = Path("/"),
        wait: Callable[[float], None] = time.sleep,
    ) -> QuietWatch:
        """Read the counters for the first time. own_pids: processes that count as ours, besides this one."""
        own = own_pids | {os.getpid()}
        return cls(
            own_pids=own,
            seconds=seconds,
            root=root,
            wait=wait,
            _before=_look(root, own),
            _start_ns=time.monotonic_ns(),
        )

    def finish(self, facts: MachineFacts, *, nvml: NvmlLibrary | None = None) -> QuietReport:
        """Wait for what is left of the time, and report. nvml: a stand-in."""
        left_s = self.seconds - self._watched_s()
        if left_s > 0:
            self.wait(left_s)
        watched_s = max(self.seconds, self._watched_s())
        before, after = self._before, _look(self.root, self.own_pids)
        found: list[tuple[str, str]] = []
        reasons: dict[str, str] = {}
        other_cores, steal_fraction = _cpu_use(before, after, facts, reasons)
        pressure = _pressure(before, after, watched_s, reasons)
        if _own_cores(before, after, facts) > OWN_CORES:
            reasons["cpu_pressure_fraction"] = "we used the CPU ourselves while watching"
            pressure = None
        swapped = _rise(before.swapped_pages, after.swapped_pages)
        throttled = _rise(before.throttle_count, after.throttle_count)
        found += _cpu_findings(other_cores, steal_fraction, pressure, swapped, throttled)
        found += _power_findings(facts)
        found += _heat_findings(self.root)
        found += _gpu_findings(open_nvml() if nvml is None else nvml, self.own_pids)
        return QuietReport(
            findings=tuple(sentence for _, sentence in found),
            flags=tuple(flag for flag, _ in found),
            cpu_use_other_cores=other_cores,
            cpu_pressure_fraction=pressure,
            cpu_steal_fraction=steal_fraction,
            n_swapped_pages=swapped,
            reasons=tuple(sorted(reasons.items())),
        )

    def _watched_s(self) -> float:
        return (time.monotonic_ns() - self._start_ns) / 1e9


def check(
    facts: MachineFacts,
    *,
    seconds: float = 1.0,
    own_pids: frozenset[int] = frozenset(),
    root: Path = Path("/"),
    nvml: NvmlLibrary | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> QuietReport:
    """Watch for `seconds` and report.

    own_pids: processes that count as ours, besides this one. root, nvml and wait: stand-ins.
    """
    watch = QuietWatch.begin(seconds=seconds, own_pids=own_pids, root=root, wait=wait)
    return watch.finish(facts, nvml=nvml)


def _look(root: Path, own: Iterable[int]) -> _Look:
    ticks = _cpu_ticks(root)
    vmstat = read_text(root / "proc/vmstat")
    pressure = re.search(
        r"^some .*total=(\d+)", read_text(root / "proc/pressure/cpu"), re.MULTILINE
    )
    swaps = re.findall(r"^pswp(?:in|out) (\d+)", vmstat, re.MULTILINE)
    counters = [
        read_int(file)
        for file in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_count")
    ]
    known = [count for count in counters if count is not None]
    return _Look(
        busy_ticks=ticks[0] if ticks else None,
        steal_ticks=ticks[1] if ticks else None,
        all_ticks=ticks[2] if ticks else None,
        own_ticks=sum(_process_ticks(root, pid) for pid in own),
        pressure_us=int(pressure[1]) if pressure else None,
        swapped_pages=sum(map(int, swaps)) if swaps else None,
        throttle_count=sum(known) if known else None,
    )


def _cpu_ticks(root: Path) -> tuple[int, int, int] | None:
    """(busy, stolen, all) ticks of all CPUs since boot. Guest time is part of user time already."""
    match = re.search(r"^cpu\s+((?:\d+\s*){7,})", read_text(root / "proc/stat"), re.MULTILINE)
    if match is None:
        return None
    user, nice, system, idle, iowait, irq, softirq, *rest = map(int, match[1].split())
    steal = rest[0] if rest else 0
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + steal + idle + iowait


def _process_ticks(root: Path, pid: int) -> int:
    """User and system ticks of one process, 0 once it is gone. Its name may hold spaces and ')'."""
    after_name = read_text(root / f"proc/{pid}/stat").rpartition(")")[2].split()
    if len(after_name) < 13 or not (after_name[11] + after_name[12]).isdigit():
        return 0
    return int(after_name[11]) + int(after_name[12])


def _rise(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _cpu_use(
    before: _Look, after: _Look, facts: MachineFacts, reasons: dict[str, str]
) -> tuple[float | None, float | None]:
    """(cores used by others, fraction stolen), from the ticks that passed on all CPUs."""
    all_ticks = _rise(before.all_ticks, after.all_ticks)
    busy = _rise(before.busy_ticks, after.busy_ticks)
    steal = _rise(before.steal_ticks, after.steal_ticks)
    if not all_ticks or busy is None or steal is None or facts.n_cores_logical is None:
        reasons["cpu_use_other_cores"] = "no CPU times in /proc/stat"
        return None, None
    other = max(0, busy - max(0, after.own_ticks - before.own_ticks))
    return other / all_ticks * facts.n_cores_logical, steal / all_ticks


def _own_cores(before: _Look, after: _Look, facts: MachineFacts) -> float:
    """CPU time of our processes, in cores; 0 where the system keeps no count."""
    all_ticks = _rise(before.all_ticks, after.all_ticks)
    if not all_ticks:
        return 0.0
    own = max(0, after.own_ticks - before.own_ticks)
    return own / all_ticks * (facts.n_cores_logical or 1)


def _pressure(
    before: _Look, after: _Look, watched_s: float, reasons: dict[str, str]
) -> float | None:
    waited_us = _rise(before.pressure_us, after.pressure_us)
    if waited_us is None:
        reasons["cpu_pressure_fraction"] = "this kernel keeps no /proc/pressure/cpu"
        return None
    return min(1.0, waited_us / 1e6 / watched_s)


def _cpu_findings(
    other_cores: float | None,
    steal_fraction: float | None,
    pressure: float | None,
    swapped: int | None,
    throttled: int | None,
) -> Iterable[tuple[str, str]]:
    if other_cores is not None and other_cores >= BUSY_CORES:
        yield "busy", f"other programs use {other_cores:.1f} CPU cores"
    if pressure is not None and pressure >= PRESSURE_FRACTION:
        yield "cpu_pressure", f"tasks waited for a CPU in {pressure:.0%} of the time"
    if steal_fraction is not None and steal_fraction >= STEAL_FRACTION:
        yield (
            "stolen_cpu",
            f"the hypervisor gave {steal_fraction:.0%} of the CPU time to another machine",
        )
    if swapped:
        yield "swapping", f"{swapped} pages were swapped while watching"
    if throttled:
        yield "throttled", f"the CPU was throttled for heat {throttled} times while watching"


def _power_findings(facts: MachineFacts) -> Iterable[tuple[str, str]]:
    if facts.power_source == "battery":
        yield "on_battery", "the machine runs on battery; clocks are usually lower then"
    governors = set((facts.governor or "").split(", "))
    if facts.frequency_driver in _SELF_GOVERNING_DRIVERS:
        slow = _SLOW_PREFERENCES & set((facts.energy_preference or "").split(", "))
        what = "energy preference"
    else:
        slow, what = _SLOW_GOVERNORS & governors, "governor"
    if slow:
        yield "slow_governor", f"the CPU's {what} is {', '.join(sorted(slow))}"


def _heat_findings(root: Path) -> Iterable[tuple[str, str]]:
    """Zones at or above their own passive or hot trip point."""
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        temperature_mc = read_int(zone / "temp")
        if temperature_mc is None:
            continue
        for kind_file in sorted(zone.glob("trip_point_*_type")):
            limit_mc = read_int(zone / kind_file.name.replace("_type", "_temp"))
            is_limit = read_text(kind_file) in ("passive", "hot")
            if is_limit and limit_mc and 0 < limit_mc <= temperature_mc:
                kind = read_text(zone / "type") or zone.name
                yield (
                    "hot",
                    f"thermal zone {kind} is at {temperature_mc / 1000:.0f} °C, "
                    f"its limit is {limit_mc / 1000:.0f} °C",
                )
                break


def _gpu_findings(nvml: NvmlLibrary, own: Iterable[int]) -> Iterable[tuple[str, str]]:
    library = nvml.module
    if library is None:
        return
    ours = set(own)
    for index in range(library.nvmlDeviceGetCount()):
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            processes = library.nvmlDeviceGetComputeRunningProcesses(handle)
        except library.NVMLError:
            continue
        others = [process for process in processes if process.pid not in ours]
        if others:
            yield "gpu_busy", f"{len(others)} other process(es) compute on GPU {index}"
