"""A lock on an open file that the kernel drops when its owner dies. Knows neither what is in the file nor what it guards."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_EVERY_S = 0.02
_FAR_BYTE = 1 << 20
"""Windows locks bytes: one that nobody writes, so that the content stays readable."""


def try_lock(descriptor: int) -> bool:
    """Take the lock without waiting; False where another descriptor holds it. Closing the descriptor lets it go."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  (not on other systems)

            os.lseek(descriptor, _FAR_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl  # noqa: PLC0415  (not on Windows)

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def waited_lock(path: Path, *, patience_s: float) -> Iterator[bool]:
    """Hold the lock of a file, which is made; False where another held it for `patience_s`. Raises OSError.

    The file stays: one that is removed while somebody waits for it would be locked twice.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        end_s = time.monotonic() + patience_s
        while not (is_ours := try_lock(descriptor)) and time.monotonic() < end_s:
            time.sleep(_LOOK_EVERY_S)
        yield is_ours
    finally:
        os.close(descriptor)
