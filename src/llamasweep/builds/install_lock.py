"""One installation at a time per cache: a lock that the children of an installation hold too.

If llamasweep is killed while Ninja still works, the next installation sees the lock held instead of meeting Ninja in the tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from llamasweep.errors import BuildError
from llamasweep.file_lock import try_lock

_LOCK_NAME = ".install.lock"


@contextmanager
def install_lock(folder: Path) -> Iterator[int]:
    """Hold the lock of a folder; gives the descriptor to hand to children. Raises BuildError where another holds it."""
    descriptor = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not try_lock(descriptor):
            owner = os.pread(descriptor, 32, 0) if hasattr(os, "pread") else b""
            by = f" (process {owner.decode('ascii', 'replace')})" if owner.isdigit() else ""
            raise BuildError(
                f"another installation is at work{by}",
                hint="Wait until it is done, or stop it, and try again.",
            )
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield descriptor
    finally:
        os.close(descriptor)
