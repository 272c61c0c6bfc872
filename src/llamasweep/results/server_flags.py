"""How a parameter is said to llama-server, and how much context it is given: for the servers that are started and those advised.

The flags are those of `llama-server --help` of b10488 and b11434, with the older spellings where they are known. Where
llama-server's own default is what was measured, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable

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


def context_for(n_measured: int) -> int:
    """Tokens to make room for: what was measured, in steps of 256, and at least 4096."""
    return max(LEAST_CONTEXT, -(-n_measured // _CONTEXT_STEP) * _CONTEXT_STEP)


def spelled(name: str, value: Scalar, build_number: int | None) -> list[str]:
    """The parameter as words of llama-server's command line, [] where nothing is said or it has no flag."""
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
    "turn": lambda _value, _number: [],
    "n_threads": lambda _value, _number: [],
    "cpu_mask": _plain("-C"),
    "cpu_strict": _zero_or_one("--cpu-strict"),
    "poll": _plain("--poll"),
}
"""Canonical parameter -> llama-server's words; threads are said first, for generation and for prompts."""
