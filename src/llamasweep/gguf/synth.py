"""Generated models: what can be made, and a cache of those that were, with a cap on its size.

The door to this part of the room: names, plans and `write_model` are passed on from here. The cache
throws out what was used longest ago, but never a model that any running process asked for.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import BinaryIO

from llamasweep.cache import cache_root
from llamasweep.errors import ModelSynthError
from llamasweep.gguf.mixture import QUANTS, canonical_quant
from llamasweep.gguf.shapes import planned_metadata, planned_tensors, read_shape, shape_names
from llamasweep.gguf.writer import (
    FORMAT,
    PARTIAL_SUFFIX,
    Progress,
    planned_file_bytes,
    write_model,
)

__all__ = [
    "QUANTS",
    "cache_cap_bytes",
    "cached_model",
    "cached_models",
    "cached_path",
    "models_dir",
    "planned_file_bytes",
    "planned_metadata",
    "planned_tensors",
    "shape_names",
    "write_model",
]

CAP_VARIABLE = "LLAMASWEEP_MODEL_CACHE_GIB"
_DEFAULT_CAP_BYTES = 64 * 2**30
_ABANDONED_AFTER_S = 24 * 3600.0

_in_use: dict[Path, BinaryIO] = {}
"""Models handed out by this process, each held open under a shared lock until the process ends."""


def models_dir() -> Path:
    """Where generated models are kept. It is not created here."""
    return cache_root() / "models"


def cache_cap_bytes() -> int:
    """`$LLAMASWEEP_MODEL_CACHE_GIB` in bytes, else 64 GiB. Raises ModelSynthError for nonsense."""
    text = os.environ.get(CAP_VARIABLE)
    if not text:
        return _DEFAULT_CAP_BYTES
    try:
        cap_bytes = int(float(text) * 2**30)
    except (ValueError, OverflowError):
        cap_bytes = -1
    if cap_bytes < 0:
        raise ModelSynthError(
            f"{CAP_VARIABLE}={text!r} is no size", hint="Give GiB as a number, such as 64."
        )
    return cap_bytes


def cached_models() -> list[Path]:
    """The generated models that are there, the one used longest ago first."""
    found = [p for p in models_dir().glob("*.gguf") if p.is_file()]
    return sorted(found, key=lambda p: (p.stat().st_atime_ns, p.name))


def cached_path(shape: str, quant: str, *, seed: int = 0) -> Path:
    """Where `cached_model` keeps this one, whether it is there or not. Raises ModelSynthError for unknown names."""
    name = f"{read_shape(shape).name}-{canonical_quant(quant)}-seed{seed}-v{FORMAT}.gguf"
    return models_dir() / name


def cached_model(
    shape: str,
    quant: str,
    *,
    seed: int = 0,
    on_progress: Progress | None = None,
    cap_bytes: int | None = None,
) -> Path:
    """A generated model from the cache, written first if it is not there.

    cap_bytes: None means `cache_cap_bytes()`. Raises ModelSynthError for an unknown shape or
    quantisation, where the disk or the cap has no room, and where the disk refuses.
    """
    path = cached_path(shape, quant, seed=seed)
    n_bytes = planned_file_bytes(shape, quant, seed=seed)
    if not _is_whole(path, n_bytes):
        _drop_abandoned()
        _make_room(path, n_bytes, cache_cap_bytes() if cap_bytes is None else cap_bytes)
        write_model(shape, quant, path, seed=seed, on_progress=on_progress)
    _mark_used(path)
    return path


def _is_whole(path: Path, n_bytes: int) -> bool:
    try:
        return path.stat().st_size == n_bytes
    except OSError:
        return False


def _make_room(path: Path, n_bytes: int, cap_bytes: int) -> None:
    """Evict until n_bytes more stay under the cap, or evict nothing and raise if that cannot be."""
    others = [(p, p.stat().st_size) for p in cached_models() if p != path]
    n_over = sum(size for _, size in others) + n_bytes - cap_bytes
    victims = []
    for other, size in others:
        if n_over > 0 and not _is_in_use(other):
            victims.append(other)
            n_over -= size
    if n_over > 0:
        raise ModelSynthError(
            f"{path.name} takes {n_bytes / 2**30:.2f} GiB, which the cache of generated models "
            f"(cap {cap_bytes / 2**30:.2f} GiB) has no room for",
            hint=f"Raise the cap with {CAP_VARIABLE}, or choose a smaller shape or quantisation.",
        )
    for victim in victims:
        with contextlib.suppress(OSError):
            victim.unlink()


def _mark_used(path: Path) -> None:
    """Note the time of use, leaving the time of change alone: hashes are kept under it. Hold it."""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    held = _in_use.pop(path, None)
    if held is not None:
        held.close()
    file = path.open("rb")
    _lock(file, is_shared=True)
    _in_use[path] = file


def _is_in_use(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return not _lock(file, is_shared=False)
    except OSError:
        return True


def _lock(file: BinaryIO, *, is_shared: bool) -> bool:
    """Whether the lock was got. Windows has none, but refuses to delete files that are open."""
    if os.name != "posix":
        return True
    import fcntl  # noqa: PLC0415  (POSIX only)

    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _drop_abandoned() -> None:
    """Remove what killed writers left behind; what is still being written is younger."""
    for partial in models_dir().glob(f".*{PARTIAL_SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - partial.stat().st_mtime > _ABANDONED_AFTER_S:
                partial.unlink()
