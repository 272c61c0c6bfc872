"""Models that are on this machine already, in the places where other programs put them.

Hugging Face's cache, llama.cpp's cache, LM Studio's folder, Ollama's blobs through its manifests,
and the models that llamasweep generated. Looks at names and manifests only; opens no model.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from llamasweep.cache import cache_root
from llamasweep.gguf.shards import shard_number

MAX_FILES_PER_PLACE = 10_000
MAX_DEPTH = 8
_MAX_MANIFEST_BYTES = 2**20
_SERVICE_FOLDERS = (Path("/usr/share/ollama/.ollama/models"), Path("/var/lib/ollama/models"))
"""Where Ollama keeps its models when it runs as a system service."""

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundModel:
    """A model file. place: whose folder it lies in. name: as that program calls it."""

    path: Path
    place: str
    name: str


def find_models(
    home: Path | None = None, environment: Mapping[str, str] | None = None
) -> list[FoundModel]:
    """All models found, each file once, by place and name; of Ollama each name, since many may share one file.

    Unreadable folders are passed over.

    home and environment: stand-ins for the user's own.
    """
    home = Path.home() if home is None else home
    environment = os.environ if environment is None else environment
    found: list[FoundModel] = []
    seen: set[tuple[int, int, str]] = set()
    for place, folder in _folders(home, environment):
        models = _ollama(folder) if place == "Ollama" else _gguf_files(folder, place)
        for model in itertools.islice(models, MAX_FILES_PER_PLACE):
            try:
                about = model.path.stat()
            except OSError:
                continue
            # Links and shared folders lead to the same file; Windows may give no inode.
            name = model.name if place == "Ollama" else ""
            identity = (about.st_dev, about.st_ino or hash(model.path), name)
            if identity not in seen:
                seen.add(identity)
                found.append(model)
    return sorted(found, key=lambda model: (model.place, model.name))


def _folders(home: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """(place, folder), what the environment names before the usual ones."""

    def named(variable: str, *below: str) -> Iterator[Path]:
        if environment.get(variable):
            yield Path(environment[variable], *below)

    hub = [*named("HF_HUB_CACHE"), *named("HUGGINGFACE_HUB_CACHE"), *named("HF_HOME", "hub")]
    user_cache = next(named("XDG_CACHE_HOME"), home / ".cache")
    for folder in [*hub, user_cache / "huggingface" / "hub"]:
        yield "Hugging Face", folder
    caches = {
        "Darwin": home / "Library" / "Caches",
        "Windows": next(named("LOCALAPPDATA"), home / "AppData" / "Local"),
    }
    llama = caches.get(platform.system(), user_cache) / "llama.cpp"
    for folder in [*named("LLAMA_CACHE"), llama]:
        yield "llama.cpp", folder
    for folder in (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"):
        yield "LM Studio", folder
    for folder in [*named("OLLAMA_MODELS"), home / ".ollama" / "models", *_SERVICE_FOLDERS]:
        yield "Ollama", folder
    yield "llamasweep", cache_root() / "models"


def _gguf_files(folder: Path, place: str) -> Iterator[FoundModel]:
    """Files that end in .gguf, of split models the first shard."""
    for path in _walk(folder):
        if path.suffix.lower() == ".gguf" and shard_number(path.name) in (None, 1):
            yield FoundModel(path=path, place=place, name=_short_name(path.relative_to(folder)))


def _short_name(relative: Path) -> str:
    """models--org--repo/snapshots/<hash>/file -> org/repo/file; otherwise the path itself."""
    parts = relative.parts
    if len(parts) >= 4 and parts[0].startswith("models--") and parts[1] == "snapshots":
        return "/".join([parts[0].removeprefix("models--").replace("--", "/"), *parts[3:]])
    return "/".join(parts)


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder, sorted, not deeper than MAX_DEPTH; linked folders are not followed."""
    base_depth = len(folder.parts)
    for current, folders, files in os.walk(folder, followlinks=False):
        here = Path(current)
        folders[:] = sorted(folders) if len(here.parts) - base_depth < MAX_DEPTH else []
        for name in sorted(files):
            yield here / name


def _ollama(folder: Path) -> Iterator[FoundModel]:
    """What the manifests name: manifests/<registry>/<namespace>/<model>/<tag>."""
    manifests = folder / "manifests"
    for manifest in _walk(manifests):
        digest = _model_digest(manifest)
        parts = manifest.relative_to(manifests).parts
        if digest is None or len(parts) < 2:
            continue
        *names, tag = parts
        if names[:1] == ["registry.ollama.ai"]:
            names = names[2:] if names[1:2] == ["library"] else names[1:]
        yield FoundModel(
            path=folder / "blobs" / f"sha256-{digest}",
            place="Ollama",
            name=f"{'/'.join(names)}:{tag}",
        )


def _model_digest(manifest: Path) -> str | None:
    """Hex digits of the model layer; None where the file is no manifest of a model."""
    try:
        with manifest.open("rb") as file:
            document = json.loads(file.read(_MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    layers = document.get("layers") if isinstance(document, dict) else None
    for layer in layers if isinstance(layers, list) else []:
        if (
            isinstance(layer, dict)
            and layer.get("mediaType") == "application/vnd.ollama.image.model"
        ):
            match = _DIGEST.fullmatch(str(layer.get("digest")))
            return match[1] if match else None
    return None
