"""What llama-server is started with to use a setting that llama-bench measured. Words only; nothing is started.

The flags are those of `llama-server --help` of b10488 and b11434, with the older spellings where they are known. Where
llama-server's own default is what was measured, nothing is said.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from llamasweep.results.contenders import Contender
from llamasweep.sweep.parameters import Scalar

OLDEST_READ_BUILD = 10488
"""The oldest build whose help these flags were held against."""

LEAST_CONTEXT = 4096
_CONTEXT_STEP = 256
_LOAD_MODE_SINCE = 10105
_FLASH_ATTENTION_WORDS_SINCE = 6325
_OLD_LOAD_MODES: dict[str, list[str]] = {
    "auto": [],
    "mmap": [],
    "none": ["--no-mmap"],
    "mlock": ["--no-mmap", "--mlock"],
    "mmap+mlock": ["--mlock"],
    "dio": ["--direct-io"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerCommand:
    """argv: with paths as recorded, a leading ~ is the home folder. notes: what it does not say, in sentences."""

    argv: tuple[str, ...]
    notes: tuple[str, ...]


def server_command(
    setting: Contender,
    *,
    server_path: str,
    model_path: str,
    n_context: int,
    n_threads_batch: int | None = None,
) -> ServerCommand:
    """The command for one setting. n_context: tokens that the cache holds for each of
    its streams. n_threads_batch: for prompts, None as for
    generation."""
    n_streams = int(dict(setting.settings).get("concurrency", 1))
    argv = [server_path, "-m", model_path, "-c", str(n_context * n_streams), "-np", str(n_streams)]
    if setting.n_threads is not None:
        argv += ["-t", str(setting.n_threads)]
    if n_threads_batch is not None and n_threads_batch != setting.n_threads:
        argv += ["-tb", str(n_threads_batch)]
    for name, value in setting.settings:
        argv += _spelled(name, value, setting.build_number)
    unknown = [name for name, _ in setting.settings if name not in SPELLED]
    notes = [f"llama-server has no flag for {', '.join(unknown)}."] if unknown else []
    number = setting.build_number
    if number is None or number < OLDEST_READ_BUILD:
        notes.append(
            f"The flags are those of b{OLDEST_READ_BUILD} and later; compare with this build's "
            "llama-server --help."
        )
    return ServerCommand(argv=tuple(argv), notes=tuple(notes))


def server_beside(bench_path: str | None) -> str:
    """llama-server in the folder of llama-bench, or by its name alone where that path is not known.

    A unified binary (`llama bench`) has the server as a verb of its own; then too the name alone is given.
    """
    if not bench_path:
        return "llama-server"
    folder, name = posixpath.split(bench_path)
    if not name.startswith("llama-bench"):
        return "llama-server"
    return posixpath.join(folder, name.replace("llama-bench", "llama-server", 1))


def context_for(n_measured: int) -> int:
    """Tokens to make room for: what was measured, in steps of 256, and at least 4096."""
    return max(LEAST_CONTEXT, -(-n_measured // _CONTEXT_STEP) * _CONTEXT_STEP)


def _spelled(name: str, value: Scalar, build_number: int | None) -> list[str]:
    spell = SPELLED.get(name)
    return spell(value, build_number) if spell else []


Speller = Callable[[Scalar, int | None], list[str]]


def _plain(flag: str) -> Speller:
    return lambda value, _: [flag, str(value)]


def _listed(flag: str, separator: str, *, unless: str | None = None) -> Speller:
    """A list that llama-server separates by commas."""
    return lambda value, _: [] if value == unless else [flag, str(value).replace(separator, ",")]


def _switch(flag: str, *, when: bool = True) -> Speller:
    """A flag without a value, said only for this value: the other one is the default."""
    return lambda value, _: [flag] if bool(value) == when else []


def _zero_or_one(flag: str) -> Speller:
    return lambda value, _: [flag, str(int(bool(value)))]


def _gpu_layers(value: Scalar, _number: int | None) -> list[str]:
    return ["-ngl", "auto" if value == -1 else str(value)]


def _load_mode(value: Scalar, number: int | None) -> list[str]:
    if number is not None and number < _LOAD_MODE_SINCE:
        return _OLD_LOAD_MODES.get(str(value), [])
    return ["-lm", str(value)]


def _flash_attention(value: Scalar, number: int | None) -> list[str]:
    if number is not None and number < _FLASH_ATTENTION_WORDS_SINCE:
        return ["-fa"] if value == "on" else []
    return ["-fa", str(value)]


SPELLED: dict[str, Speller] = {
    "numa": _plain("--numa"),
    "prio": _plain("--prio"),
    "rpc": _listed("--rpc", "/"),
    "fit_target": _plain("-fitt"),
    "fit_min_ctx": _plain("-fitc"),
    "n_gpu_layers": _gpu_layers,
    "n_cpu_moe": _plain("-ncmoe"),
    "split_mode": _plain("-sm"),
    "load_mode": _load_mode,
    "lazy_mode": _plain("-lzm"),
    "main_gpu": _plain("-mg"),
    "devices": _listed("-dev", "/", unless="auto"),
    "tensor_split": _listed("-ts", "/"),
    "tensor_buft_overrides": _listed("-ot", ";"),
    "no_host": _switch("--no-host"),
    "repack": _switch("--no-repack", when=False),
    "embeddings": _switch("--embedding"),
    "no_op_offload": _switch("--no-op-offload"),
    "n_batch": _plain("-b"),
    "n_ubatch": _plain("-ub"),
    "type_k": _plain("-ctk"),
    "type_v": _plain("-ctv"),
    "no_kv_offload": _switch("--no-kv-offload"),
    "flash_attn": _flash_attention,
    "concurrency": lambda _value, _number: [],
    "prompt_cache": lambda _value, _number: [],
    "n_threads": lambda _value, _number: [],
    "cpu_mask": _plain("-C"),
    "cpu_strict": _zero_or_one("--cpu-strict"),
    "poll": _plain("--poll"),
}
"""Canonical parameter -> llama-server's words; threads are said first, for generation and for prompts."""
