"""Which processes belong to the engine: the root and its descendants, from /proc, cheaply.

Only processes that are new since the last look are opened, and nothing at all is listed while the kernel has made no
new process. Linux only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from llamasweep.telemetry.sensors import read_text


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessStat:
    """The part of /proc/PID/stat that we use (proc(5)). Ticks are of SC_CLK_TCK."""

    state: str
    parent_pid: int
    n_major_faults: int
    cpu_ticks: int
    start_ticks: int
    rss_pages: int


def read_stat(proc: str, pid: int) -> ProcessStat:
    """Raises OSError where the process is gone, ValueError where the line is no stat line."""
    text = read_text(f"{proc}/{pid}/stat", 4096)
    # The command name stands in brackets and may hold anything, brackets and blanks included.
    fields = text[text.rindex(")") + 2 :].split()
    if len(fields) < 22:
        raise ValueError(f"{proc}/{pid}/stat has {len(fields)} fields after the name, not 22")
    return ProcessStat(
        state=fields[0],
        parent_pid=int(fields[1]),
        n_major_faults=int(fields[9]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        start_ticks=int(fields[19]),
        rss_pages=int(fields[21]),
    )


class ProcessTree:
    """The engine's processes. `members` is as of the last `refresh`."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.proc = str(root / "proc")
        self.members: frozenset[int] = frozenset()
        self._root_pid: int | None = None
        self._parent_of: dict[int, int] = {}
        self._last_pid: str | None = None

    def refresh(self, pid: int | None) -> frozenset[int]:
        """Look again. pid: root, None for no engine. A child whose parent has died stays a member."""
        if pid != self._root_pid:
            self._root_pid, self._parent_of, self._last_pid = pid, {}, None
            self.members = frozenset() if pid is None else frozenset({pid})
        if pid is None or not self._has_new_process():
            return self.members
        alive = {int(name) for name in os.listdir(self.proc) if name.isdigit()}  # noqa: PTH208  (half the time of Path.iterdir)
        self._parent_of = {p: parent for p, parent in self._parent_of.items() if p in alive}
        for new in alive - self._parent_of.keys():
            try:
                self._parent_of[new] = read_stat(self.proc, new).parent_pid
            except (OSError, ValueError):
                continue
        self.members = self._descendants(pid, alive)
        return self.members

    def _has_new_process(self) -> bool:
        """The last field of /proc/loadavg is the newest pid: unchanged means nothing was started."""
        try:
            last_pid = read_text(f"{self.proc}/loadavg", 256).split()[-1]
        except (OSError, IndexError):
            return True
        is_new = last_pid != self._last_pid
        self._last_pid = last_pid
        return is_new

    def _descendants(self, pid: int, alive: set[int]) -> frozenset[int]:
        members = (set(self.members) & alive) | {pid}
        while True:
            more = {p for p, parent in self._parent_of.items() if parent in members} - members
            if not more:
                return frozenset(members)
            members |= more
