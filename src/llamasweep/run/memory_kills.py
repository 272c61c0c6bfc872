"""Did the kernel end a process for lack of memory? Counters of Linux, read before and after."""

from __future__ import annotations

from pathlib import Path


def oom_kill_count(root: Path = Path("/")) -> int | None:
    """A number that grows with every kill, on the machine or in our control group; None where neither tells.

    Only its growth means something: a kill in our group counts twice where the machine counts it too.
    """
    counts = [_field(root / "proc/vmstat", "oom_kill"), _field(_own_cgroup(root), "oom_kill")]
    known = [c for c in counts if c is not None]
    return sum(known) if known else None


def _own_cgroup(root: Path) -> Path:
    """`memory.events` of our group in the unified hierarchy, else of its root."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    return root / "sys/fs/cgroup" / group.lstrip("/") / "memory.events"


def _field(path: Path, name: str) -> int | None:
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        return None
    return None
