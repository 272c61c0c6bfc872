"""Whether the programs and models of a run are still the files that it looked at when it began.

A rebuilt llama.cpp or a model downloaded again in the middle of a sweep would be measured under the name and the hash of what
was there before. Sees a file's size and time, not its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llamasweep.builds.probe import stamps
from llamasweep.sweep.cell import Group
from llamasweep.sweep.subjects import Build, Model


class FileWatch:
    """Remembers the files of builds (with their libraries) and models (of split ones, the first file)."""

    def __init__(self, builds: Iterable[Build], models: Iterable[Model]) -> None:
        self._builds = {build.path: _build_state(build) for build in builds}
        self._models = {m.source.path: _model_state(m) for m in models if m.source.path is not None}

    def change(self, group: Group) -> str | None:
        """What has changed, as a sentence; None where nothing has, and for a file that is gone, which the engine tells."""
        build, model = group.build, group.model
        if _differs(self._builds.get(build.path), _build_state(build)):
            return f"the build {build.label!r} is another program than when the run began"
        if _differs(self._models.get(model.source.path or ""), _model_state(model)):
            return f"the model {model.source.label!r} is another file than when the run began"
        return None


def _differs(before: Any, now: Any) -> bool:
    return before is not None and now is not None and before != now


def _build_state(build: Build) -> Any:
    try:
        return stamps(Path(build.path))
    except OSError:
        return None


def _model_state(model: Model) -> Any:
    if model.source.path is None:
        return None
    try:
        found = Path(model.source.path).stat()
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns
