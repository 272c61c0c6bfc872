"""A setting that llama-bench measured in Ollama's terms: a Modelfile, the server's environment, and what cannot be said.

From Ollama's parser and options as of v0.33. Ollama brings a llama.cpp of its own, so that the same setting may have another
speed there. Words only; nothing is written or started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from llamasweep.results.contenders import Contender
from llamasweep.sweep.parameters import Scalar

_CACHE_TYPES = ("f16", "q8_0", "q4_0")
_USE_MMAP = {"mmap": "true", "none": "false"}
_KNOWN = frozenset(
    {"n_threads", "n_batch", "n_ubatch", "n_gpu_layers", "main_gpu", "load_mode"}
    | {"type_k", "type_v", "flash_attn", "concurrency", "turn", "num_ctx"}
)
_DEFAULTS: dict[str, tuple[Scalar, ...]] = {
    "load_mode": ("auto",),
    "no_kv_offload": (False,),
    "no_op_offload": (False,),
    "no_host": (False,),
    "embeddings": (False,),
    "repack": (True,),
    "n_cpu_moe": (0,),
    "cpu_strict": (False,),
    "devices": ("auto",),
    "split_mode": ("layer",),
    "lazy_mode": ("auto",),
    "poll": (50,),
    "prompt_cache": ("cold", "warm"),
    "prio": (0,),
}
"""What is so without a word."""
_LONGEST_NAME = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class OllamaSettings:
    """name: for the model that is made. modelfile: its text, None where Ollama cannot name the file. environment: of
    `ollama serve`. missing: settings that Ollama cannot be told, by name."""

    name: str
    modelfile: str | None
    environment: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


def ollama_settings(setting: Contender, *, model_path: str, n_context: int) -> OllamaSettings:
    """The setting in Ollama's terms. n_context: tokens that the cache holds for each request."""
    asked = dict(setting.settings)
    window = asked.get("num_ctx", n_context)
    parameters = {"num_ctx": str(window), **_parameters(asked, setting.n_threads)}
    n_streams = str(setting.load.n_streams)
    environment = {"OLLAMA_NUM_PARALLEL": n_streams, **_environment(asked)}
    source = _from(model_path)
    lines = [f"FROM {source}", *(f"PARAMETER {k} {v}" for k, v in parameters.items())]
    return OllamaSettings(
        name=_name(setting.model_label),
        modelfile="\n".join(lines) + "\n" if source else None,
        environment=tuple(environment.items()),
        missing=_missing(asked),
    )


def _parameters(asked: Mapping[str, Scalar], n_threads: int | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if n_threads is not None:
        found["num_thread"] = str(n_threads)
    batch = asked.get("n_ubatch", asked.get("n_batch"))
    if batch is not None:
        found["num_batch"] = str(batch)
    if asked.get("n_gpu_layers", -1) != -1:
        found["num_gpu"] = str(asked["n_gpu_layers"])
    if "main_gpu" in asked:
        found["main_gpu"] = str(asked["main_gpu"])
    if asked.get("load_mode") in _USE_MMAP:
        found["use_mmap"] = _USE_MMAP[str(asked["load_mode"])]
    return found


def _environment(asked: Mapping[str, Scalar]) -> dict[str, str]:
    found: dict[str, str] = {}
    if asked.get("flash_attn") in ("on", "off"):
        found["OLLAMA_FLASH_ATTENTION"] = "1" if asked["flash_attn"] == "on" else "0"
    cache_type = _cache_type(asked)
    if cache_type is not None:
        found["OLLAMA_KV_CACHE_TYPE"] = cache_type
    return found


def _cache_type(asked: Mapping[str, Scalar]) -> str | None:
    """One type for K and V; None where it is left open or cannot be said."""
    kinds = {str(asked.get(name, "f16")) for name in ("type_k", "type_v")}
    is_asked = "type_k" in asked or "type_v" in asked
    return kinds.pop() if is_asked and len(kinds) == 1 and kinds <= set(_CACHE_TYPES) else None


def _missing(asked: Mapping[str, Scalar]) -> tuple[str, ...]:
    missing = [
        name
        for name, value in asked.items()
        if name not in _KNOWN and value not in _DEFAULTS.get(name, ())
    ]
    if asked.get("load_mode", "auto") not in ("auto", *_USE_MMAP):
        missing.append("load_mode")
    if ("type_k" in asked or "type_v" in asked) and _cache_type(asked) is None:
        missing += [name for name in ("type_k", "type_v") if name in asked]
    sizes = [asked[name] for name in ("n_batch", "n_ubatch") if name in asked]
    if len(set(sizes)) > 1:
        missing.append("n_batch")
    return tuple(dict.fromkeys(missing))


def _from(path: str) -> str | None:
    """As the Modelfile's parser reads it: to the end of the line, quotes only where it would begin or end wrongly."""
    if not path or not path.isprintable():
        return None
    if path.startswith('"') or path != path.strip():
        return None if '"""' in path or path.endswith('"') else f'"""{path}"""'
    return path


def _name(label: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", label.lower())[:_LONGEST_NAME].strip("-._")
    return name or "model"
