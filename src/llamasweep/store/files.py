"""Writing so that a kill or a power cut leaves either the old or the new, never a half.

Knows system calls and their order; knows nothing of what is written. `FileOps` is the seam through which tests
record or break the calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path

from llamasweep.errors import StoreError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileOps:
    """The system calls that durability rests on."""

    def create(self, path: Path) -> int:
        """Descriptor of a new or emptied file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        return os.open(path, flags, 0o666)

    def write(self, descriptor: int, data: memoryview) -> int:
        """How many bytes were taken."""
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Rename over what is there."""
        source.replace(target)

    def sync_folder(self, folder: Path) -> None:
        """Make renames in the folder durable; Windows has no such call and needs none."""
        if os.name == "nt":
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def exchange(self, left: Path, right: Path) -> bool:
        """Swap two names in one step; False where the system cannot."""
        return _exchange(left, right)

    def remove_folder(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)


def _exchange(left: Path, right: Path) -> bool:
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(left), os.fsencode(right)
    if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):  # the filesystem does not know it
        return False
    raise OSError(code, os.strerror(code), str(left), None, str(right))


def temporary(path: Path) -> Path:
    """The name under which `path` is prepared; the leading dot hides it from readers of a folder."""
    return path.with_name(f".{path.name}.new")


def set_aside(path: Path) -> Path:
    """Where the old form stands between two renames, where names cannot be exchanged in one step."""
    return path.with_name(f".{path.name}.old")


def put(path: Path, data: bytes | memoryview, ops: FileOps) -> None:
    """Write a file whole: temporary name, write, fsync, rename, fsync of the folder.

    Raises StoreError; what stood under the name before then still stands.
    """
    try:
        _put(path, data, ops)
    except OSError as problem:
        raise store_error(path, problem) from problem


def put_named(path: Path, data: bytes | memoryview, ops: FileOps | None = None) -> None:
    """Write a file that a user named: whole, in the place that a link leads to; no device or pipe is replaced.

    What is there and is no regular file is opened and written. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    _put(Path(os.path.realpath(path)), data, ops or FileOps())


def _put(path: Path, data: bytes | memoryview, ops: FileOps) -> None:
    draft = temporary(path)
    try:
        _write_synced(draft, memoryview(data), ops)
        ops.rename(draft, path)
        ops.sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _write_synced(path: Path, data: memoryview, ops: FileOps) -> None:
    descriptor = ops.create(path)
    try:
        while data:
            data = data[ops.write(descriptor, data) :]
        ops.fsync(descriptor)
    finally:
        ops.close(descriptor)


def swap_in(prepared: Path, path: Path, ops: FileOps) -> None:
    """Put the prepared form in the place of the other one (a file for a folder or the reverse), then drop the old.

    The path is readable throughout where the system can exchange names; elsewhere the old form stands under
    `set_aside(path)` for a moment, and readers look there.
    """
    if ops.exchange(prepared, path):
        ops.sync_folder(path.parent)
        old = prepared
    else:
        old = set_aside(path)
        ops.rename(path, old)
        ops.rename(prepared, path)
        ops.sync_folder(path.parent)
    discard(old, ops)


def discard(path: Path, ops: FileOps) -> None:
    """Remove a file or folder that nobody reads any more."""
    if path.is_dir():
        ops.remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def named_error(path: Path, problem: OSError, option: str, what: str = "") -> StoreError:
    """The error about a file that a user named; option: where another place is given, what: what it was to be."""
    hint = f"Give another place with {option}."
    if problem.errno in _NO_ROOM:
        hint = f"Free some space, or choose another place with {option}."
    return StoreError(f"cannot write {what}{path}: {problem.strerror or problem}", hint=hint)


def store_error(path: Path, problem: OSError) -> StoreError:
    """The error in words, with what to do about it."""
    hint = "check the folder's permissions, or choose another with --results"
    if problem.errno in _NO_ROOM:
        hint = "free some space and start the same sweep again: finished groups are kept"
    return StoreError(f"cannot write {path}: {problem.strerror or problem}", hint=hint)
