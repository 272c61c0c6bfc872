"""A harmless name for a model file whose own name would break a command line.

llama-bench splits `-m` at commas and destroys bytes outside ASCII in its output, and old
builds die of such names in their working folder. Such a file is given to the engine through a link with a plain name.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

_PLAIN = re.compile(r"/[A-Za-z0-9_./+@=:~ -]*")
_SHARD = re.compile(r"-[0-9]{5}-of-([0-9]{5})\.gguf$")
_CAN_LINK = os.name != "nt"


def scratch_parent() -> str | None:
    """Where temporary folders go: the system's place if its name is harmless, else a plain one. None = the system's."""
    usual = tempfile.gettempdir()
    if os.name == "nt" or _PLAIN.fullmatch(usual):
        return None
    return next((place for place in ("/tmp", "/var/tmp") if os.access(place, os.W_OK)), None)  # noqa: S108


def plain_path(model: Path, folder: Path, name: str) -> str:
    """The absolute path to give to the engine: the model's own if it is harmless, else a link in `folder`.

    name: plain stem for the link. Split models get a link for every shard. Raises OSError where links cannot be made.
    """
    model = model.absolute()
    if not _CAN_LINK or _PLAIN.fullmatch(str(model)):
        return str(model)
    folder.mkdir(parents=True, exist_ok=True)
    match = _SHARD.search(model.name)
    if match is None:
        return str(_link(model, folder / f"{name}.gguf"))
    stem = model.name[: match.start()]
    for number in range(1, int(match[1]) + 1):
        shard = f"-{number:05d}-of-{match[1]}.gguf"
        if (target := model.with_name(stem + shard)).exists():
            _link(target, folder / (name + shard))
    return str(folder / (name + match[0]))


def _link(target: Path, link: Path) -> Path:
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return link
