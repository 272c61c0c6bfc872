"""Sweep files on disk: reading one with what it extends, and finding the model files that it names.

Relative names, in `extends` and in `models`, start at the folder of the file that was given.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from llamasweep.errors import SweepFileError, SweepProblem
from llamasweep.sweep import schema
from llamasweep.sweep.document import MAX_BYTES
from llamasweep.sweep.sources import labelled, source_templates
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import ModelSource

MAX_GLOB_FILES = 1_000


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


def model_sources(spec: SweepSpec) -> list[ModelSource]:
    """One source per model file that the sweep names, labels made unique.

    A named file that does not exist is kept, so that its cells become rows with that reason. Raises
    SweepFileError where a pattern matches nothing or an environment variable is not set.
    """
    folder = Path(spec.file).parent if spec.file else Path()
    found: list[ModelSource] = []
    problems: list[SweepProblem] = []
    for index, entry in enumerate(spec.models):
        for template in source_templates(entry):
            try:
                paths = _paths(template.path, folder, is_glob=entry.glob is not None)
            except ValueError as fault:
                problems.append(
                    SweepProblem(
                        file=spec.file or "(sweep)",
                        line=None,
                        where=f"models[{index}]",
                        message=str(fault),
                    )
                )
                continue
            found += [replace(template, path=path) for path in paths]
    if problems:
        raise SweepFileError(problems)
    return labelled(found)


def _paths(text: str | None, folder: Path, *, is_glob: bool) -> Sequence[str | None]:
    if text is None:
        return [None]
    expanded = os.path.expanduser(os.path.expandvars(text))  # noqa: PTH111  (variables come first)
    if "$" in expanded and os.path.expandvars(text) == text:
        raise ValueError(f"a variable in {text!r} is not set")
    full = os.path.normpath(folder / expanded)
    if not is_glob:
        return [full]
    matches = sorted(m for m in glob.iglob(full, recursive=True) if Path(m).is_file())  # noqa: PTH207
    shards = [m for m in matches if not _is_later_shard(m)]
    if not shards:
        raise ValueError(f"no file matches {text!r}")
    if len(shards) > MAX_GLOB_FILES:
        raise ValueError(f"{text!r} matches more than {MAX_GLOB_FILES:,} files")
    return shards


def _is_later_shard(path: str) -> bool:
    """Whether the name is that of a shard after the first: name-00002-of-00003.gguf."""
    parts = Path(path).stem.rsplit("-", 3)
    return (
        len(parts) == 4
        and parts[2] == "of"
        and parts[1].isdecimal()
        and parts[3].isdecimal()
        and int(parts[1]) > 1
    )
