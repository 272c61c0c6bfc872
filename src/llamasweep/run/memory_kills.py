"""Did the kernel end a process for lack of memory? Counters of Linux, read before and after."""

from __future__ import annotations

from pathlib import Path


def oom_kill_count(root: Path = Path("/")) -> int | None:
    """Kills so far, of the machine and of our control group, whichever says more; None where neither tells."""
    counts = [_field(root / "proc/vmstat", "oom_kill"), _field(_own_cgroup(root), "oom_kill")]
    known = [c for c in counts if c is not None]
    return sum(known) if known else None


def _own_cgroup(root: Path) -> Path:
    try:
        line = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return root / "sys/fs/cgroup/memory.events"
    return root / "sys/fs/cgroup" / line.rpartition(":")[2].lstrip("/") / "memory.events"


def _field(path: Path, name: str) -> int | None:
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        return None
    return None
