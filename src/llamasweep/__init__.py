"""llamasweep: benchmark sweeps for llama.cpp and Ollama. Importing it imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

__all__ = ["__version__", "load_results"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  (only when asked: it scans the environment)

        return version("llamasweep")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_results(path: str | Path) -> pd.DataFrame:
    """All attempts of a run, or of every run in a results folder, as one DataFrame.

    path: a run folder (`results/<run_id>`) or a folder of runs. One row per attempt; columns as in docs/schema.md.
    Runs of several schema versions are united and no column is lost. Raises StoreError where nothing can be read.
    """
    from llamasweep.store.locate import load_frame  # noqa: PLC0415  (imports pandas)

    return load_frame(path)
