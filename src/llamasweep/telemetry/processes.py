"""The same figures as `system`, from psutil, for systems without /proc.

Only what the system's own counter really means is passed on: Windows counts soft page faults and all I/O, so neither
"major faults" nor "disk reads" are known there.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llamasweep.results.records import Reading
from llamasweep.telemetry.sensors import SLOW_EVERY

if TYPE_CHECKING:
    import psutil


@dataclass(kw_only=True)
class PsutilSource:
    """device "process" is the engine's tree, "system" the machine. platform: as `sys.platform`.

    Children are looked for at every tenth reading only: psutil lists all processes of the machine for it.
    """

    platform: str = sys.platform
    name: str = "psutil"
    absent: dict[str, str] = field(default_factory=dict)
    _root: psutil.Process | None = None
    _children: list[psutil.Process] = field(default_factory=list)
    _n_reads: int = 0

    def __post_init__(self) -> None:
        gone = f"{self.name}/process/"
        self.absent[gone + "pss_bytes"] = f"{self.platform} has no proportional set size"
        if self.platform == "win32":
            self.absent[gone + "major_faults_count"] = "Windows counts all page faults together"
            self.absent[gone + "disk_read_bytes"] = "Windows counts all input together, not disk"
        elif self.platform == "darwin":
            self.absent[gone + "disk_read_bytes"] = "macOS has no disk counter per process"

    @property
    def members(self) -> frozenset[int]:
        """Processes of the engine as of the last reading."""
        root = () if self._root is None else (self._root,)
        return frozenset(process.pid for process in (*root, *self._children))

    def read(self, pid: int | None) -> list[Reading]:
        """Machine and, if pid is given and alive, its tree."""
        import psutil  # noqa: PLC0415  (heavy, and not needed on Linux)

        memory, swap, cpu = psutil.virtual_memory(), psutil.swap_memory(), psutil.cpu_times()
        idle_s = cpu.idle + getattr(cpu, "iowait", 0.0)
        guest_s = getattr(cpu, "guest", 0.0) + getattr(cpu, "guest_nice", 0.0)
        values = {
            ("system", "ram_used_bytes"): float(memory.total - memory.available),
            ("system", "swap_used_bytes"): float(swap.used),
            ("system", "cpu_busy_s"): sum(cpu) - idle_s - guest_s,
        }
        if pid is not None:
            try:
                values |= {("process", m): v for m, v in self._read_tree(pid).items()}
            except psutil.NoSuchProcess:
                self._root = None
            except psutil.AccessDenied as error:
                self.absent[f"{self.name}/process/rss_bytes"] = str(error)
        now_ns = time.time_ns()
        return [
            Reading(time_ns=now_ns, source=self.name, device=device, metric=metric, value=value)
            for (device, metric), value in values.items()
        ]

    def _read_tree(self, pid: int) -> dict[str, float]:
        import psutil  # noqa: PLC0415

        if self._root is None or self._root.pid != pid or not self._root.is_running():
            self._root, self._children, self._n_reads = psutil.Process(pid), [], 0
        if self._n_reads % SLOW_EVERY == 0:
            self._children = self._root.children(recursive=True)
        self._n_reads += 1
        sums: dict[str, float] = {}
        for process in (self._root, *self._children):
            try:
                for metric, value in self._read_process(process).items():
                    sums[metric] = sums.get(metric, 0.0) + value
            except psutil.NoSuchProcess:
                if process is self._root:
                    raise
        return sums

    def _read_process(self, process: psutil.Process) -> dict[str, float]:
        with process.oneshot():
            memory, cpu = process.memory_info(), process.cpu_times()
        values = {"rss_bytes": float(memory.rss), "cpu_time_s": cpu.user + cpu.system}
        if self.platform == "darwin":
            values["major_faults_count"] = float(getattr(memory, "pageins"))  # noqa: B009  (macOS only)
        return values
