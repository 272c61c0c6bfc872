"""Ollama as an engine: which server and model a group gets, and what Ollama cannot be asked. Pure.

Context, batch, threads and layers are the model's; KV type, flash attention and parallel slots are the server's, so that cells
which differ in them need a server that we start. Measured by `drivers.ollama`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from llamasweep.engines.base import Call, CallOptions
from llamasweep.engines.driven import Driven, Job, axes_and_tests, job_call
from llamasweep.engines.llama_bench_flags import FLAGS
from llamasweep.engines.llama_server import (
    TAG_TOKENS,
    depth_restrictions,
    stream_restrictions,
)
from llamasweep.engines.ollama_answers import parse_version
from llamasweep.engines.ollama_server import KV_TYPES
from llamasweep.results.server_flags import context_for
from llamasweep.sweep.blocks import TEST
from llamasweep.sweep.cell import Block, Group, Test
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, Model

N_BATCH = 512
"""Said with every cell that leaves it open: from v0.30 on Ollama's own choice changes with the context."""
LEAST_PROMPT_TOKENS = 16
_OF_MODELS = frozenset({"num_ctx", "n_batch", "n_threads", "n_gpu_layers", "main_gpu", "load_mode"})
_OF_SERVERS = frozenset({"type_k", "type_v", "flash_attn"})
_OF_REQUESTS = frozenset({"n_depth", "prompt_cache", "concurrency"})
_USE_MMAP = {"mmap": True, "none": False}
_WRONG_PROMPT_TIMES = frozenset({(0, 12, 5), (0, 12, 6)})

ONE_ANSWER = "`ollama run` answers one request; `mode: api` measures several streams"
NOT_OURS_AT_ONCE = (
    "how many requests Ollama at {url} answers at once is its server's setting and not told; `builds` names a program to start "
    "with as many slots, `engine: openai` on its /v1 measures several streams as they come"
)
NO_TURNS = "turns of a conversation are measured with `engine: openai` on Ollama's /v1"
NOT_OURS = "{name} is a setting of Ollama's whole server, and the one at {url} is not ours to set"
LAST_BATCH_ONLY = (
    "Ollama {version} times only the last batch of a prompt; its prompt rates are far too high"
)


class Ollama(Driven):
    """A server that is there is asked, else one is started for each group."""

    name = "ollama"

    def restrictions(self, block: Block, model: Model, build: Build) -> list[Restriction]:
        axes = dict(block.axes)
        return [
            *depth_restrictions(block),
            *_unknown_axes(axes),
            *_streams(block, build),
            *_no_gpu(axes, build),
            *_kv_types(axes),
            *_server_wide(axes, build),
            *_windows(block, model),
            *_wrong_clocks(block, build),
        ]

    def describe(self, group: Group, options: CallOptions) -> Call:
        build, source, wish = group.build, group.model.source, options.server
        is_there = "://" in build.path
        job = Job(
            engine=self.name,
            base_url=build.path if is_there else None,
            model=source.served or "",
            n_reps=options.n_reps,
            warmup=options.warmup,
            options={
                "program": build.argv_prefix[0] if build.argv_prefix else None,
                "mode": wish.mode,
                "template": wish.template,
                "pull": wish.pull,
                "file": None if source.served else options.model_path,
                "content_hash": group.model.content_hash,
                "store": (_store(source.path) if source.served else None) or options.import_folder,
                "import_folder": options.import_folder,
                "server": {} if is_there else _server_settings(dict(group.block.axes)),
                "settings": model_settings(group.block, group.model),
                "bench": bench_words(build.companion),
            },
            **axes_and_tests(group.block),
        )
        return job_call(group, options, job)


_SAID = frozenset({*FLAGS.values(), "-o", "-pg", "-v", "--progress", "--no-warmup", "-mmp", "-dio"})
_EXPLAINED = frozenset({"-fa", "-ngl", "-lm"})


def bench_words(companion: Build | None) -> dict[str, Any] | None:
    """What a driver needs of a llama-bench, plain JSON values; None for none. `read_bench` takes it back."""
    if companion is None:
        return None
    return {
        "label": companion.label,
        "path": companion.path,
        "content_hash": companion.content_hash,
        "number": companion.number,
        "argv_prefix": list(companion.argv_prefix),
        "options": sorted(companion.options & _SAID),
        "option_help": [pair for pair in companion.option_help if pair[0] in _EXPLAINED],
    }


def read_bench(words: Mapping[str, Any]) -> Build:
    """The build that `bench_words` wrote down, as far as a call needs it."""
    return Build(
        label=words["label"],
        path=words["path"],
        content_hash=words["content_hash"],
        number=words["number"],
        argv_prefix=tuple(words["argv_prefix"]),
        options=frozenset(words["options"]),
        option_help=tuple((flag, text) for flag, text in words["option_help"]),
    )


def model_settings(block: Block, model: Model) -> dict[str, int | bool]:
    """By the names of `ollama_api.OPTIONS`; the window holds the longest test of the group where the sweep leaves it open."""
    axes = {name: values[0] for name, values in block.axes}
    n_ctx = int(axes.get("num_ctx", _window_for(block, model)))
    settings: dict[str, int | bool] = {
        "n_ctx": n_ctx,
        "n_batch": min(int(axes.get("n_batch", N_BATCH)), n_ctx),
    }
    for name in ("n_threads", "main_gpu", "n_gpu_layers"):
        if name in axes and axes[name] != -1:
            settings[name] = int(axes[name])
    if axes.get("load_mode") in _USE_MMAP:
        settings["use_mmap"] = _USE_MMAP[str(axes["load_mode"])]
    return settings


def _window_for(block: Block, model: Model) -> int:
    n_ctx = context_for(_longest(block) + TAG_TOKENS)
    trained = _trained(model)
    return n_ctx if trained is None else min(n_ctx, trained)


def _trained(model: Model) -> int | None:
    """The longest context that Ollama allocates for the model; None where that is not known."""
    return model.facts.n_ctx_train if model.facts else None


def _server_settings(axes: Mapping[str, tuple[Scalar, ...]]) -> dict[str, str | bool | int]:
    """As `ollama_server.ServerSettings` names them."""
    found: dict[str, str | bool | int] = {}
    if "concurrency" in axes:
        found["n_parallel"] = int(axes["concurrency"][0])
    if "type_k" in axes:
        found["type_kv"] = str(axes["type_k"][0])
    flash_attn = axes.get("flash_attn", ("auto",))[0]
    if flash_attn in ("on", "off"):
        found["flash_attn"] = flash_attn == "on"
    return found


def _store(blob: str | None) -> str | None:
    """The folder of models in which a blob lies: STORE/blobs/sha256-…; None where no blob is known."""
    return str(PurePath(blob).parent.parent) if blob else None


def _longest(block: Block) -> int:
    """Tokens of the longest question of the block, generation counted with the token that comes before it."""
    depth = max((int(d) for d in dict(block.axes).get("n_depth", ())), default=0)
    return max(n_needed(test, depth) for test in block.tests)


def full_name(name: str) -> str:
    """As Ollama lists a model: with its tag, `latest` where none is given."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def n_needed(test: Test, n_depth: int) -> int:
    """Tokens of the window that a question takes: `drivers.ollama` asks for one token more than a generation counts."""
    if test.kind == "tg":
        return max(n_depth, LEAST_PROMPT_TOKENS) + test.n_gen + 1
    return test.n_prompt + max(1, test.n_gen)


def _refuse(name: str, values: Iterable[Scalar], reason: str) -> list[Restriction]:
    chosen = frozenset(values)
    return [Restriction(reason=reason, where={name: chosen})] if chosen else []


def _unknown_axes(axes: Mapping[str, tuple[Scalar, ...]]) -> list[Restriction]:
    found: list[Restriction] = []
    for name, values in axes.items():
        if name == "turn":
            found += _refuse(name, values, NO_TURNS)
        elif name not in _OF_MODELS | _OF_SERVERS | _OF_REQUESTS:
            found += _refuse(name, values, f"Ollama has no setting for {name}")
    modes = [v for v in axes.get("load_mode", ()) if v not in ("auto", *_USE_MMAP)]
    return found + _refuse("load_mode", modes, "Ollama knows load_mode as auto, mmap and none")


def _streams(block: Block, build: Build) -> list[Restriction]:
    """Several at once want a server that was started for so many, and an interface that takes them."""
    several = [v for v in dict(block.axes).get("concurrency", ()) if v != 1]
    if "://" in build.path:
        return _refuse("concurrency", several, NOT_OURS_AT_ONCE.format(url=build.path))
    if not build.knows("api"):
        return _refuse("concurrency", several, ONE_ANSWER)
    return stream_restrictions(block)


def _no_gpu(axes: Mapping[str, tuple[Scalar, ...]], build: Build) -> list[Restriction]:
    if not build.is_cpu_only:
        return []
    layers = [v for v in axes.get("n_gpu_layers", ()) if isinstance(v, int) and v > 0]
    return _refuse("n_gpu_layers", layers, f"{build.label} sees no GPU to put layers on")


def _kv_types(axes: Mapping[str, tuple[Scalar, ...]]) -> list[Restriction]:
    """One type for K and V, of three."""
    types_k, types_v = axes.get("type_k", ("f16",)), axes.get("type_v", ("f16",))
    found: list[Restriction] = []
    for name in ("type_k", "type_v"):
        bad = [v for v in axes.get(name, ()) if v not in KV_TYPES]
        found += _refuse(name, bad, f"Ollama has KV caches of type {', '.join(KV_TYPES)} only")
    reason = "Ollama has one type for K and V"
    for type_k in types_k:
        others = frozenset(v for v in types_v if v != type_k)
        where = {
            name: values
            for name, values in (("type_k", frozenset({type_k})), ("type_v", others))
            if name in axes
        }
        if others and where:
            found.append(Restriction(reason=reason, where=where))
    quantised = frozenset(v for v in types_v if v not in ("f16", "bf16"))
    if quantised and "off" in axes.get("flash_attn", ()):
        where = {"type_v": quantised, "flash_attn": frozenset({"off"})}
        reason = "a quantised V cache needs flash attention, which is off"
        found.append(Restriction(reason=reason, where=where))
    return found


def _server_wide(axes: Mapping[str, tuple[Scalar, ...]], build: Build) -> list[Restriction]:
    if "://" not in build.path:
        return []
    found: list[Restriction] = []
    for name in sorted(_OF_SERVERS & axes.keys()):
        wanted = [v for v in axes[name] if v != "auto"]
        found += _refuse(name, wanted, NOT_OURS.format(name=name, url=build.path))
    return found


def _windows(block: Block, model: Model) -> list[Restriction]:
    """A window that the question does not fit, which Ollama would cut in silence, or that the model was not made for."""
    trained = _trained(model)
    found: list[Restriction] = []
    windows = [int(v) for v in dict(block.axes).get("num_ctx", ())]
    for n_ctx in windows:
        if trained is not None and n_ctx > trained:
            reason = (
                f"the model was trained for a context of {trained}; Ollama would cut {n_ctx} to it"
            )
            found += _refuse("num_ctx", [n_ctx], reason)
        reason = (
            f"prompt and answer do not fit num_ctx {n_ctx}; Ollama would cut the prompt in silence"
        )
        found += _too_long(block, n_ctx, {"num_ctx": frozenset({n_ctx})}, reason)
    if not windows and trained is not None:
        reason = (
            f"prompt and answer do not fit the context of {trained} that the model was trained for"
        )
        found += _too_long(block, trained, {}, reason)
    return found


def _too_long(
    block: Block, n_ctx: int, where: Mapping[str, frozenset[Any]], reason: str
) -> list[Restriction]:
    found: list[Restriction] = []
    depths = dict(block.axes).get("n_depth")
    for depth in depths or (0,):
        long = frozenset(t for t in block.tests if n_needed(t, int(depth)) > n_ctx)
        at_depth = {"n_depth": frozenset({depth})} if depths else {}
        if long:
            found.append(Restriction(reason=reason, where={**where, **at_depth, TEST: long}))
    return found


def _wrong_clocks(block: Block, build: Build) -> list[Restriction]:
    if parse_version(build.version or "") not in _WRONG_PROMPT_TIMES:
        return []
    prompts = frozenset(test for test in block.tests if test.n_prompt > 0)
    reason = LAST_BATCH_ONLY.format(version=build.version)
    return [Restriction(reason=reason, where={TEST: prompts})] if prompts else []
