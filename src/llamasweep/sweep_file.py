"""Sweep files on disk: reading one, and what it extends, within bounds.

The name in `extends` starts at the folder of the file that says it. Model files are found by `run.resolve`.
"""

from __future__ import annotations

import os
from pathlib import Path

from llamasweep.errors import SweepFileError, SweepProblem
from llamasweep.sweep import schema
from llamasweep.sweep.document import MAX_BYTES
from llamasweep.sweep.spec import SweepSpec


def load(path: str | Path) -> SweepSpec:
    """The sweep in a file. Raises SweepFileError where it cannot be read or holds faults."""
    try:
        text = _read(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = SweepProblem(
            file=str(path), line=None, where="(file)", message=f"cannot be read: {reason}"
        )
        raise SweepFileError([problem]) from None
    return schema.parse(text, str(path), _load_base)


def _load_base(name: str, named_in: str) -> tuple[str, str]:
    path = Path(os.path.normpath(Path(named_in).parent / Path(name).expanduser()))
    return _read(path), str(path)


def _read(path: Path) -> str:
    """Text of a regular file within the size bound, a byte order mark taken off."""
    if not path.exists():
        raise FileNotFoundError(2, "there is no such file")
    if not path.is_file():
        raise ValueError("it is not a regular file")
    with path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
