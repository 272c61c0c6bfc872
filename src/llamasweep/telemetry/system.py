"""The engine's processes and the machine around them: memory, faults, disk reads, CPU time.

On Linux from /proc, read directly because psutil's way costs several times more; elsewhere from psutil. RSS counts
mapped weights; a system's "RAM in use" does not, they are page cache. Raw readings only.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from llamasweep.results.records import Reading
from llamasweep.telemetry.process_tree import ProcessStat, ProcessTree, read_stat
from llamasweep.telemetry.sensors import read_text

PSS_MAX_CPU_S = 0.010
"""A read of smaps_rollup that would take longer is not made: the kernel walks every page of the engine."""

PSS_MAX_CPU_FRACTION = 0.002
"""Share of one core that PSS may use: the next read waits for cost / share."""

PSS_FIRST_GUESS_S_PER_BYTE = 0.012 / 2**30
"""12 ms per GiB of 4 KiB pages (measured on an AMD EPYC virtual machine); replaced by what the reads cost here."""


@dataclass(kw_only=True, slots=True)
class _Counters:
    """Totals of one process; kept after its end, so that sums over the tree never fall."""

    n_major_faults: int = 0
    cpu_ticks: int = 0
    disk_read_bytes: int | None = None


@dataclass(slots=True)
class _PssBudget:
    """Decides when a read of PSS is affordable."""

    s_per_byte: float = PSS_FIRST_GUESS_S_PER_BYTE
    next_at_s: float = 0.0

    def refusal(self, rss_bytes: int) -> str | None:
        expected_s = rss_bytes * self.s_per_byte
        if expected_s <= PSS_MAX_CPU_S:
            return None
        return (
            f"not read: walking {rss_bytes / 2**30:.1f} GiB of pages would take about "
            f"{expected_s * 1e3:.0f} ms of CPU time beside the engine"
        )

    def spent(self, cpu_s: float, rss_bytes: int, now_s: float) -> None:
        self.s_per_byte = max(cpu_s / max(rss_bytes, 2**20), PSS_FIRST_GUESS_S_PER_BYTE / 8)
        self.next_at_s = now_s + cpu_s / PSS_MAX_CPU_FRACTION


@dataclass(kw_only=True)
class ProcSource:
    """Linux: /proc. device "process" is the engine's tree, "system" the machine.

    Counters (major_faults_count, disk_read_bytes, cpu_time_s, cpu_busy_s) only rise while the engine runs. cpu_busy_s counts
    stolen time too: to a measurement it is the same whether another process or another guest took it.
    """

    tree: ProcessTree
    page_bytes: int
    ticks_per_s: int
    name: str = "proc"
    absent: dict[str, str] = field(default_factory=dict)
    _root: tuple[int, int] | None = None
    _counters: dict[tuple[int, int], _Counters] = field(default_factory=dict)
    _pss: _PssBudget = field(default_factory=_PssBudget)

    def read(self, pid: int | None) -> list[Reading]:
        """Machine and, if pid is given and alive (a zombie counts), its tree."""
        return [*self._read_system(), *self._read_tree(pid)]

    def _reading(self, device: str, metric: str, value: float) -> Reading:
        return Reading(
            time_ns=time.time_ns(), source=self.name, device=device, metric=metric, value=value
        )

    # -- machine
    def _read_system(self) -> list[Reading]:
        found = []
        for metrics, read in (
            (("ram_used_bytes", "swap_used_bytes"), self._read_memory),
            (("cpu_busy_s",), self._read_busy),
        ):
            try:
                found += [
                    self._reading("system", m, v) for m, v in zip(metrics, read(), strict=True)
                ]
            except (OSError, ValueError, KeyError, IndexError) as error:
                for metric in metrics:
                    self.absent[f"{self.name}/system/{metric}"] = repr(error)
        return found

    def _read_memory(self) -> tuple[float, ...]:
        fields = {}
        for line in read_text(f"{self.tree.proc}/meminfo", 8192).splitlines():
            key, _, rest = line.partition(":")
            if key in {"MemTotal", "MemAvailable", "SwapTotal", "SwapFree"}:
                fields[key] = int(rest.split()[0]) * 1024
        return (
            float(fields["MemTotal"] - fields["MemAvailable"]),
            float(fields["SwapTotal"] - fields["SwapFree"]),
        )

    def _read_busy(self) -> tuple[float, ...]:
        # user nice system idle iowait irq softirq steal guest guest_nice; guest is contained in user.
        words = read_text(f"{self.tree.proc}/stat", 512).split(maxsplit=9)
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, words[1:9])
        busy = user + nice + system + irq + softirq + steal
        return (busy / self.ticks_per_s,)

    # -- the engine
    def _read_tree(self, pid: int | None) -> list[Reading]:
        if pid is None:
            self._root = None
            return []
        members = self.tree.refresh(pid)
        stats: dict[int, ProcessStat] = {}
        for member in sorted(members):
            try:
                stats[member] = read_stat(self.tree.proc, member)
            except (OSError, ValueError):
                continue
        if pid not in stats:
            return []
        self._begin(pid, stats[pid])
        for member, stat in stats.items():
            self._count(member, stat)
        return [*self._read_sums(), *self._read_resident(stats)]

    def _begin(self, pid: int, stat: ProcessStat) -> None:
        root = (pid, stat.start_ticks)
        if root != self._root:
            self._root, self._counters, self._pss = root, {}, _PssBudget()

    def _count(self, pid: int, stat: ProcessStat) -> None:
        counters = self._counters.setdefault((pid, stat.start_ticks), _Counters())
        counters.n_major_faults = stat.n_major_faults
        counters.cpu_ticks = stat.cpu_ticks
        try:
            for line in read_text(f"{self.tree.proc}/{pid}/io", 1024).splitlines():
                if line.startswith("read_bytes:"):
                    counters.disk_read_bytes = int(line.split()[1])
        except (OSError, ValueError) as error:
            if counters.disk_read_bytes is None:
                self.absent[f"{self.name}/process/disk_read_bytes"] = str(error)

    def _read_sums(self) -> list[Reading]:
        all_of_them = self._counters.values()
        sums = [
            ("major_faults_count", float(sum(c.n_major_faults for c in all_of_them))),
            ("cpu_time_s", sum(c.cpu_ticks for c in all_of_them) / self.ticks_per_s),
        ]
        disk = [c.disk_read_bytes for c in all_of_them if c.disk_read_bytes is not None]
        if len(disk) == len(all_of_them):
            sums.append(("disk_read_bytes", float(sum(disk))))
        return [self._reading("process", metric, value) for metric, value in sums]

    def _read_resident(self, stats: dict[int, ProcessStat]) -> list[Reading]:
        alive = {p: s for p, s in stats.items() if s.state not in {"Z", "X"}}
        if not alive:
            return []
        rss_bytes = sum(s.rss_pages for s in alive.values()) * self.page_bytes
        found = [self._reading("process", "rss_bytes", float(rss_bytes))]
        pss_bytes = self._affordable_pss(list(alive), rss_bytes)
        if pss_bytes is not None:
            found.append(self._reading("process", "pss_bytes", float(pss_bytes)))
        return found

    def _affordable_pss(self, pids: list[int], rss_bytes: int) -> int | None:
        key = f"{self.name}/process/pss_bytes"
        now_s = time.monotonic()
        if now_s < self._pss.next_at_s:
            return None
        refusal = self._pss.refusal(rss_bytes)
        if refusal is not None:
            self.absent[key] = refusal
            return None
        cpu_s = time.thread_time()
        try:
            pss_bytes = sum(read_pss_bytes(self.tree.proc, pid) for pid in pids)
        except (OSError, ValueError) as error:
            self.absent[key] = str(error)
            return None
        finally:
            self._pss.spent(time.thread_time() - cpu_s, rss_bytes, now_s)
        self.absent.pop(key, None)
        return pss_bytes


def read_pss_bytes(proc: str, pid: int) -> int:
    """Proportional set size. Raises OSError, or ValueError where the kernel gives none."""
    for line in read_text(f"{proc}/{pid}/smaps_rollup", 4096).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{proc}/{pid}/smaps_rollup has no Pss")


def open_proc(tree: ProcessTree) -> ProcSource:
    """Raises OSError where there is no /proc with a stat file (not Linux)."""
    read_text(f"{tree.proc}/stat", 64)
    return ProcSource(
        tree=tree, page_bytes=os.sysconf("SC_PAGE_SIZE"), ticks_per_s=os.sysconf("SC_CLK_TCK")
    )
