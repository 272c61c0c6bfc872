"""Fake builds: a small launcher per build, so that each has its own path, content hash and settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FAKE = Path(__file__).with_name("llama-bench")

_LAUNCHER = """#!{python} -SE
SETTINGS = {settings!r}
__file__ = {fake!r}
with open(__file__) as source:
    exec(compile(source.read(), __file__, "exec"))
"""


def write_build(folder: Path, **settings: Any) -> Path:
    """Write `folder/llama-bench`, an executable that behaves as one build, and return its path.

    settings: build ("b4748", "b8247", "b11434": whose flags, help and row fields), number, commit, devices (lines of
    `--list-devices`), arches (names it loads, blank-separated), help (path of another help text), order_log (path of
    the log), behaviour (defaults for every model).
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-bench"
    shown = {
        key: str(value) if isinstance(value, Path) else value for key, value in settings.items()
    }
    program.write_text(
        _LAUNCHER.format(python=sys.executable, settings=shown, fake=str(FAKE.resolve()))
    )
    program.chmod(0o755)
    return program


def write_batched_bench(folder: Path) -> Path:
    """Write `folder/llama-batched-bench`, which does what the fake of that name does, and return its path."""
    program = folder / "llama-batched-bench"
    fake = FAKE.with_name("llama-batched-bench")
    program.write_text(_LAUNCHER.format(python=sys.executable, settings={}, fake=str(fake)))
    program.chmod(0o755)
    return program
