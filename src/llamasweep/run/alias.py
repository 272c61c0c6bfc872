"""A harmless name for a model file whose own name would break a command line.

llama-bench splits `-m` at commas and destroys bytes outside ASCII in its output (section 2.4 of its page), and old
builds die of such names in their working folder. Such a file is given to the engine through a link with a plain name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_PLAIN = re.compile(r"/[A-Za-z0-9_./+@=:~ -]*")
_SHARD = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


def plain_path(model: Path, folder: Path, name: str) -> str:
    """The path to give to the engine: the model's own if it is harmless, else a link in `folder`.

    name: plain stem for the link. Split models get a link for every shard. Raises OSError where links cannot be made.
    """
    text = str(model)
    if os.name == "nt" or _PLAIN.fullmatch(text):
        return text
    folder.mkdir(parents=True, exist_ok=True)
    match = _SHARD.search(model.name)
    if match is None:
        return str(_link(model, folder / f"{name}.gguf"))
    stem, count = model.name[: match.start()], int(match[1])
    links = []
    for number in range(1, count + 1):
        tail = f"-{number:05d}-of-{match[1]}.gguf"
        links.append(_link(model.with_name(stem + tail), folder / (name + tail)))
    return str(links[0])


def _link(target: Path, link: Path) -> Path:
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target)
    return link
