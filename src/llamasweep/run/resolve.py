"""From what a sweep names to what is there: model files with their facts, builds with their flags.

The room that looks at the disk before anything runs. A model that cannot be read becomes a `Model` with a problem, never an
exception: its cells are rows with that reason.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamasweep.builds.registry import Registry
from llamasweep.builds.server import BATCHED_BENCH, SERVER, program_of
from llamasweep.errors import LlamasweepError, ModelFileError
from llamasweep.gguf import header, shapes, synth
from llamasweep.gguf.named import DEFAULT_QUANT
from llamasweep.gguf.shards import shard_number
from llamasweep.run.servers import OLLAMA, OPENAI, served_model, server_builds
from llamasweep.sweep.sources import labelled, source_templates
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import Build, Model, ModelSource

_VARIABLE = re.compile(r"\$(\w+|\{\w+\})|%\w+%")
_NOT_A_MODEL = ("mmproj-", "mtp-")
MAX_GLOB_FILES = 10_000

OnSynth = Callable[[str, int, int], None]
"""(label, bytes written, bytes in all) while a model is generated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subjects:
    """What will be measured. models: per source, in the order of the sweep."""

    models: dict[ModelSource, Model]
    builds: tuple[Build, ...]


def resolve(
    spec: SweepSpec,
    *,
    registry: Registry,
    build_names: Sequence[str] = (),
    generate: bool,
    on_synth: OnSynth | None = None,
    has_gpu: bool = True,
) -> Subjects:
    """Look at every model and build that the sweep names.

    build_names: instead of the sweep's own. generate: write synthetic models that are missing (a plan only counts
    them). One binary under two names is one build, under the first, unless builds take turns. has_gpu: of this machine.
    Raises EngineNotFoundError or BuildError where a build is missing.
    """
    names = tuple(build_names) or spec.builds
    builds = _builds(spec, names, registry, has_gpu=has_gpu)
    distinct: dict[tuple[str, str], Build] = {}
    for build in builds:
        name = build.label if spec.order == "interleaved" else ""
        distinct.setdefault((build.content_hash, name), build)
    models = {
        source: _model(source, spec, builds[0], generate=generate, on_synth=on_synth)
        for source in model_sources(spec)
    }
    return Subjects(models=models, builds=tuple(distinct.values()))


def _builds(
    spec: SweepSpec, names: Sequence[str], registry: Registry, *, has_gpu: bool
) -> tuple[Build, ...]:
    if spec.engine in (OLLAMA, OPENAI):
        wanted, companion = spec.same_weights, None
        if wanted:
            companion = registry.get(wanted) if isinstance(wanted, str) else registry.default()
        return server_builds(spec, names, has_gpu=has_gpu, companion=companion)
    builds = tuple(registry.get(name) for name in names) if names else (registry.default(),)
    if spec.engine in (SERVER, BATCHED_BENCH):
        return tuple(program_of(build, spec.engine) for build in builds)
    return builds


def model_sources(spec: SweepSpec) -> list[ModelSource]:
    """One source per file that the sweep names; relative paths start at the current directory, as with make."""
    found: list[ModelSource] = []
    for entry in spec.models:
        for source in source_templates(entry):
            if source.served is not None:
                path = _expand(source.path) if source.path else None
                found.append(replace(source, path=path))
            elif source.synth is not None:
                quant = source.quant_asked or DEFAULT_QUANT
                label = source.label if source.quant_asked else f"{source.label} {quant}"
                found.append(replace(source, quant_asked=quant, label=label))
            else:
                found += _of_files(source, is_pattern=entry.glob is not None)
    return labelled(list(dict.fromkeys(found)))


def _of_files(source: ModelSource, *, is_pattern: bool) -> list[ModelSource]:
    """A pattern that matches nothing stays one source under its own words; its problem will say so."""
    written = source.path or ""
    expanded = _expand(written)
    if not is_pattern:
        return [replace(source, path=expanded)]
    matches = sorted(glob.glob(expanded, recursive=True))[:MAX_GLOB_FILES]  # noqa: PTH207  (an absolute pattern)
    models = [m for m in matches if Path(m).is_file() and _is_model_name(Path(m).name)]
    if not models:
        return [replace(source, path=expanded, label=source.label or written)]
    return [replace(source, path=path) for path in models]


def _is_model_name(name: str) -> bool:
    return not name.startswith(_NOT_A_MODEL) and shard_number(name) in (None, 1)


def _expand(text: str) -> str:
    """`~` and environment variables; the result is absolute and keeps links as they are."""
    path = os.path.expanduser(text)  # noqa: PTH111  (a ~ in the middle of a glob is none)
    if not os.path.lexists(path):  # a file may be called $HOME.gguf
        path = os.path.expandvars(path)
    return os.path.abspath(path)  # noqa: PTH100  (resolve() would follow links and lose the shards' names)


def _model(
    source: ModelSource,
    spec: SweepSpec,
    build: Build,
    *,
    generate: bool,
    on_synth: OnSynth | None,
) -> Model:
    try:
        if source.served is not None:
            return served_model(source, spec, build, read_file=_from_file)
        if source.synth is not None:
            return _synthetic(source, generate=generate, on_synth=on_synth)
        return _from_file(source, Path(source.path or ""))
    except LlamasweepError as problem:
        return Model(source=source, content_hash=None, facts=None, problem=problem.message)
    except OSError as problem:
        return Model(
            source=source, content_hash=None, facts=None, problem=problem.strerror or str(problem)
        )


def _from_file(source: ModelSource, path: Path) -> Model:
    if not path.exists():
        if left := _VARIABLE.search(str(path)):
            raise ModelFileError(
                f"the variable {left[0]} in the path of {source.label!r} is not set"
            )
        raise ModelFileError(
            "no such file" if "*" not in str(path) else "no file matches the pattern"
        )
    return Model(
        source=source,
        content_hash=header.content_hash(path),
        facts=header.read_model(path),
        n_file_bytes=header.n_file_bytes(path),
    )


def _synthetic(source: ModelSource, *, generate: bool, on_synth: OnSynth | None) -> Model:
    shape, quant = source.synth or "", source.quant_asked or DEFAULT_QUANT
    path = synth.cached_path(shape, quant)
    if generate or path.exists():

        def tell(n_done: int, n_all: int) -> None:
            if on_synth is not None:
                on_synth(source.label, n_done, n_all)

        path = synth.cached_model(shape, quant, on_progress=tell)
        return _from_file(replace(source, path=str(path)), path)
    facts = shapes.planned_facts(shape, quant)
    return Model(source=source, content_hash=None, facts=facts, n_file_bytes=facts.size_bytes)
