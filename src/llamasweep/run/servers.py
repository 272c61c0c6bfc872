"""Servers that a sweep asks: which one, or which program is started, and what is known of the models that they have."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from llamasweep.builds.ollama import find_ollama, ollama_program
from llamasweep.engines.http_exchange import RequestError, ServerAddress, parse_base_url
from llamasweep.engines.ollama import full_name
from llamasweep.engines.ollama_answers import blob_path
from llamasweep.engines.ollama_api import OllamaServer
from llamasweep.engines.ollama_host import ollama_address
from llamasweep.engines.openai_client import DEFAULT_BASE_URL as OPENAI_URL
from llamasweep.errors import EngineNotFoundError, ModelFileError, UsageError, quoted
from llamasweep.gguf.found import find_models
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import Build, Model, ModelSource

OLLAMA, OPENAI = "ollama", "openai"
LOOPBACK = ("127.0.0.1", "::1", "localhost")

ReadFile = Callable[[ModelSource, Path], Model]
"""Makes a model of a source whose file is there."""


def server_builds(
    spec: SweepSpec, names: Sequence[str], *, has_gpu: bool, companion: Build | None = None
) -> tuple[Build, ...]:
    """Programs or servers in place of builds. has_gpu: of this machine. companion: llama-bench beside them.

    Their hash also holds how they are asked: a sweep that goes on in another mode measures anew. Their options name the mode.

    Raises EngineNotFoundError, BuildError and UsageError.
    """
    if names and spec.base_url is not None:
        raise UsageError("`builds` names programs to start and `base_url` a server that is there")
    if spec.engine == OPENAI:
        if names:
            raise UsageError("`engine: openai` has no builds; `base_url` names its server")
        found = [_openai(spec)]
    elif names:
        found = [ollama_program(find_ollama(name)) for name in names]
    else:
        found = [_ollama_there(spec) or ollama_program(find_ollama())]
    return tuple(_as_asked(_at_home(build, has_gpu=has_gpu), spec, companion) for build in found)


def _as_asked(build: Build, spec: SweepSpec, companion: Build | None) -> Build:
    wish, beside = spec.server, companion.content_hash if companion is not None else ""
    identity = f"{build.content_hash} {wish.mode} {wish.template} {beside}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return replace(
        build, content_hash=digest, companion=companion, options=build.options | {wish.mode}
    )


def _at_home(build: Build, *, has_gpu: bool) -> Build:
    """A server on a machine without a GPU computes on its processor; of other machines nothing is known."""
    is_here = "://" not in build.path or parse_base_url(build.path).host in LOOPBACK
    return replace(build, devices=()) if is_here and not has_gpu else build


def _openai(spec: SweepSpec) -> Build:
    address = parse_base_url(spec.base_url or OPENAI_URL)
    return _there(address, f"server at {address.host}:{address.port}", version=None)


def _there(
    address: ServerAddress, label: str, *, version: str | None, program: Path | None = None
) -> Build:
    identity = f"{address.url} {version}"
    return Build(
        label=label,
        path=address.url,
        content_hash=hashlib.sha256(identity.encode()).hexdigest()[:32],
        argv_prefix=() if program is None else (str(program),),
        options=frozenset(),
        version=version,
    )


def _ollama_there(spec: SweepSpec) -> Build | None:
    """The Ollama that answers, at `base_url` or where OLLAMA_HOST says; None where none does and the sweep names none."""
    address = parse_base_url(spec.base_url) if spec.base_url else ollama_address(os.environ)
    try:
        version = OllamaServer(address).version()
    except RequestError as problem:
        if spec.base_url is None:
            return None
        raise EngineNotFoundError(f"no Ollama answers: {problem.message}") from None
    program: Path | None = None
    if spec.server.mode == "verbose":
        program = find_ollama()
    return _there(address, f"ollama-{version}", version=version, program=program)


def served_model(
    source: ModelSource, spec: SweepSpec, build: Build, *, read_file: ReadFile
) -> Model:
    """What is known of a model that a server has; without its file it has no facts.

    Raises ModelFileError where Ollama lacks it and must not fetch it, and what `read_file` raises.
    """
    if spec.engine == OPENAI:
        return read_file(source, Path(source.path)) if source.path else _unknown(source)
    name = source.served or ""
    is_there, blob = _asked(build, name) if "://" in build.path else _in_stores(name)
    if not is_there and not spec.pull:
        raise ModelFileError(
            f"Ollama has no model {quoted(name)} here",
            hint="`ollama list` shows what it has; `pull: true` lets it fetch the model.",
        )
    if blob is None:
        return _unknown(source)
    return read_file(replace(source, path=str(blob)), blob)


def _unknown(source: ModelSource) -> Model:
    return Model(source=source, content_hash=None, facts=None)


def _asked(build: Build, name: str) -> tuple[bool, Path | None]:
    """(whether the server has it, its file where we can read it)."""
    address = parse_base_url(build.path)
    server = OllamaServer(address)
    try:
        if not server.has(name):
            return False, None
        found = blob_path(server.show(name))
    except RequestError as problem:
        raise ModelFileError(f"Ollama does not tell of {quoted(name)}: {problem.message}") from None
    if found is None or address.host not in LOOPBACK:
        return True, None
    return True, _readable(Path(found))


def _in_stores(name: str) -> tuple[bool, Path | None]:
    """The same from the stores on this disk, for a server that we start on them."""
    for model in find_models():
        if model.place == "Ollama" and model.name == full_name(name):
            return True, model.path
    return False, None


def _readable(path: Path) -> Path | None:
    with contextlib.suppress(OSError), path.open("rb"):
        return path
    return None
