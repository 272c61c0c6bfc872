"""What installations leave that is no longer needed: source trees, object files, interrupted builds.

It tells sizes, and deletes on request; builds that can be used stay usable.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from llamasweep.builds.install import TREE_NAME
from llamasweep.builds.install_lock import install_lock
from llamasweep.builds.records import RECORD_NAME
from llamasweep.builds.registry import Registry


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftover:
    """A folder or file that can go. what: a sentence for people. n_bytes: as the files say, holes not counted as less."""

    path: Path
    what: str
    n_bytes: int


def find_leftovers(registry: Registry) -> list[Leftover]:
    """Everything below the cache that an installed build works without; deleting it costs time when `--with` comes later."""
    found = []
    sources = registry.folder.parent / "sources"
    for path in sorted(sources.iterdir()) if sources.is_dir() else []:
        found.append(_leftover(path, f"source of llama.cpp {path.name}"))
    commits = registry.folder.parent / "git"
    for path in sorted(commits.iterdir()) if commits.is_dir() else []:
        found.append(_leftover(path, "commits that bisect compiled"))
    folders = sorted(registry.folder.iterdir()) if registry.folder.is_dir() else []
    for folder in folders:
        if not folder.is_dir():
            continue
        if not (folder / RECORD_NAME).is_file():
            found.append(_leftover(folder, f"interrupted installation of {folder.name}"))
        elif (folder / TREE_NAME).is_dir():
            found.append(_leftover(folder / TREE_NAME, f"object files of {folder.name}"))
    return found


def delete_leftovers(registry: Registry, leftovers: list[Leftover]) -> int:
    """Delete them and return the number of bytes. Raises BuildError while an installation is at work."""
    if not leftovers:
        return 0
    with install_lock(registry.folder):
        for leftover in leftovers:
            if leftover.path.is_dir() and not leftover.path.is_symlink():
                shutil.rmtree(leftover.path)
            else:
                leftover.path.unlink(missing_ok=True)
    return sum(leftover.n_bytes for leftover in leftovers)


def n_bytes_below(path: Path) -> int:
    """Bytes of all files below a path, links not followed; files that vanish meanwhile are left out."""
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    total = 0
    for file in path.rglob("*"):
        try:
            total += file.lstat().st_size if file.is_file() and not file.is_symlink() else 0
        except OSError:
            continue
    return total


def _leftover(path: Path, what: str) -> Leftover:
    return Leftover(path=path, what=what, n_bytes=n_bytes_below(path))
