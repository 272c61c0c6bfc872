"""Where llamasweep keeps what it can make again: generated models, builds, hashes, calibrations."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "LLAMASWEEP_CACHE"


def cache_root() -> Path:
    """The folder for everything cached: `$LLAMASWEEP_CACHE`, else the user's cache directory.

    It is not created here.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs  # noqa: PLC0415  (only where no folder was chosen)

    return Path(platformdirs.user_cache_dir("llamasweep", appauthor=False))
