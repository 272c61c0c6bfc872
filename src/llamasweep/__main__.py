"""`python -m llamasweep` and the `llamasweep` command."""

from __future__ import annotations

import atexit
import gc

__all__ = ["main"]

_YOUNG_OBJECTS = 50_000
"""Modules are made of objects that stay: with the usual 700, the collector looks through them again and again at the start."""


def main() -> None:
    """Run the command line. Garbage is collected rarely, and not once more while the process ends."""
    gc.set_threshold(_YOUNG_OBJECTS)
    atexit.register(gc.freeze)
    from llamasweep.cli import main as command_line  # noqa: PLC0415  (after the collector is set)

    command_line()


if __name__ == "__main__":
    main()
