"""llama-bench's command line, per build: which flag and which word a parameter becomes, and what cannot be said.

What a binary knows comes from its own `--help` (`Build.options`, `Build.option_help`); build numbers are used only
where the help is silent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from llamasweep.gguf.ggml_types import GGML_TYPES
from llamasweep.sweep.blocks import TEST
from llamasweep.sweep.cell import Block
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, Model

FLAGS: dict[str, str] = {
    "numa": "--numa",
    "prio": "--prio",
    "rpc": "-rpc",
    "fit_target": "-fitt",
    "fit_min_ctx": "-fitc",
    "n_gpu_layers": "-ngl",
    "n_cpu_moe": "-ncmoe",
    "split_mode": "-sm",
    "load_mode": "-lm",
    "lazy_mode": "-lzm",
    "main_gpu": "-mg",
    "devices": "-dev",
    "tensor_split": "-ts",
    "tensor_buft_overrides": "-ot",
    "no_host": "--no-host",
    "repack": "--repack",
    "embeddings": "-embd",
    "no_op_offload": "-nopo",
    "n_batch": "-b",
    "n_ubatch": "-ub",
    "type_k": "-ctk",
    "type_v": "-ctv",
    "no_kv_offload": "-nkvo",
    "flash_attn": "-fa",
    "n_threads": "-t",
    "cpu_mask": "-C",
    "cpu_strict": "--cpu-strict",
    "n_depth": "-d",
    "poll": "--poll",
}
"""Canonical parameter -> the flag of b11434. `load_mode` has older spellings, see `_old_load_mode`."""

QUANTISED_KV_BLOCK: dict[str, int] = {
    kind.name: kind.block_elements
    for kind in GGML_TYPES
    if kind.is_kv_cache_type and kind.is_quantized
}
"""KV-cache types that are stored in blocks -> elements per block."""

_OLD_LOAD_MODES = {"mmap": ("-mmp", "1"), "none": ("-mmp", "0"), "dio": ("-dio", "1")}
_WORDS_OF_HELP = re.compile(r"<([^<>]*\|[^<>]*)>")
_KV_TYPES_SINCE = {"bf16": 4051}
"""KV-cache types that are younger than `-o jsonl`; the help does not list them."""
_MAX_TENSOR_SPLIT = 16
_MAX_DEPTH = 2**31 - 1


def flash_attn_takes_words(build: Build) -> bool:
    """Builds from b9437 on take on/off/auto; older ones read any word as 0."""
    return "auto" in dict(build.option_help).get("-fa", "")


def gpu_layers_take_auto(build: Build) -> bool:
    """Whether -ngl -1 means automatic: only where that is the default (b9437 on)."""
    return "default: -1" in dict(build.option_help).get("-ngl", "")


def _old_load_mode(build: Build, value: Scalar) -> list[str] | None:
    """As builds before b10105 say it; None where they cannot.

    -dio takes precedence over -mmp and has been on by default (b7718 to b7754), so that it is always said.
    """
    flag, word = _OLD_LOAD_MODES.get(str(value), ("", ""))
    if not build.knows(flag):
        return None
    is_mapped_or_read = flag == "-mmp" and build.knows("-dio")
    return [flag, word, *(["-dio", "0"] if is_mapped_or_read else [])]


def spell(build: Build, name: str, values: Iterable[Scalar]) -> list[str]:
    """The words for one axis, `["-b", "512,2048"]`; what cannot be said was taken out by `restrictions`."""
    chosen = tuple(values)
    if name == "load_mode" and not build.knows("-lm"):
        return _old_load_mode(build, chosen[0]) or []  # model scope: one value a process
    if name == "n_depth" and chosen == (0,) and not build.knows("-d"):
        return []
    return [FLAGS[name], ",".join(_word(build, name, value) for value in chosen)]


def _word(build: Build, name: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if name == "flash_attn":
        if flash_attn_takes_words(build):
            return str(value)
        return "1" if value == "on" else "0"
    if name in {"tensor_split", "devices"}:
        return str(value).replace(",", "/")
    return str(value)


def restrictions(block: Block, model: Model, build: Build) -> list[Restriction]:
    """What of this block the build or the model cannot do, each with its reason."""
    found = _whole_build(build)
    if not build.knows("-pg"):
        pairs = frozenset(test for test in block.tests if test.kind == "pg")
        found += _refuse(
            TEST, pairs, f"{build.label} does not know -pg (a prompt and then generation)"
        )
    axes = dict(block.axes)
    for rule in _RULES:
        found.extend(rule(axes, model, build))
    return found


def model_restrictions(block: Block, model: Model, build: Build) -> list[Restriction]:
    """What the model or the hardware forbids to every program of llama.cpp, each with its reason."""
    axes = dict(block.axes)
    return [found for rule in _RULES_OF_THE_LIBRARY for found in rule(axes, model, build)]


_BROKEN_BUILDS = range(5212, 5221)


def _whole_build(build: Build) -> list[Restriction]:
    """Builds that can measure nothing for us, whatever is asked."""
    if build.number in _BROKEN_BUILDS:
        reason = f"llama-bench of b{build.number} crashes on every test (upstream #13169)"
        return [Restriction(reason=reason, where={})]
    formats = _listed_words(build, "-o")
    if formats is not None and "jsonl" not in formats:
        reason = f"{build.label} has no `-o jsonl`, which tells single repetitions; b3661 and later have it"
        return [Restriction(reason=reason, where={})]
    return []


def _listed_words(build: Build, flag: str) -> list[str] | None:
    """The `<a|b|c>` of an option's help; None where it lists none."""
    match = _WORDS_OF_HELP.match(dict(build.option_help).get(flag, ""))
    return match[1].split("|") if match else None


Axes = dict[str, tuple[Scalar, ...]]


def _refuse(name: str, values: Iterable[object], reason: str) -> list[Restriction]:
    chosen = frozenset(values)
    return [Restriction(reason=reason, where={name: chosen})] if chosen else []


def _unknown_flags(axes: Axes, _model: Model, build: Build) -> list[Restriction]:
    found: list[Restriction] = []
    for name, values in axes.items():
        flag = FLAGS.get(name)
        if flag is None:
            other = "ollama" if name == "num_ctx" else "llama-server"
            reason = f"llama-bench has no {name}; `engine: {other}` measures it"
            found += _refuse(name, values, reason)
        elif build.knows(flag):
            found += _unlisted_words(name, values, build)
        elif name == "load_mode":
            bad = [v for v in values if _old_load_mode(build, v) is None]
            reason = f"{build.label} has no -lm, and its older flags cannot say this load mode"
            found += _refuse(name, bad, reason)
        else:
            bad = [v for v in values if not (name == "n_depth" and v == 0)]
            found += _refuse(name, bad, f"{build.label} does not know {flag} ({name})")
    return found


def _unlisted_words(name: str, values: Iterable[Scalar], build: Build) -> list[Restriction]:
    """Values that came later than the flag, such as `tensor` for -sm."""
    listed = _listed_words(build, FLAGS[name])
    if listed is None:
        return []
    found: list[Restriction] = []
    for value in values:
        word = _word(build, name, value)
        if word not in listed:
            reason = f"{build.label} does not take {word!r} for {FLAGS[name]} ({name})"
            found += _refuse(name, [value], reason)
    return found


def _younger_kv_types(axes: Axes, _model: Model, build: Build) -> list[Restriction]:
    found: list[Restriction] = []
    for name in ("type_k", "type_v"):
        for value in axes.get(name, ()):
            since = _KV_TYPES_SINCE.get(str(value), 0)
            if build.number is not None and build.number < since:
                reason = f"{build.label} has no {value} in the KV cache; it came with b{since}"
                found += _refuse(name, [value], reason)
    return found


def _flash_attention_words(axes: Axes, _model: Model, build: Build) -> list[Restriction]:
    values = axes.get("flash_attn", ())
    if flash_attn_takes_words(build):
        return []
    return _refuse(
        "flash_attn",
        [v for v in values if v == "auto"],
        f"{build.label} knows flash attention only as on or off",
    )


def _quantised_v_needs_flash_attention(
    axes: Axes, _model: Model, build: Build
) -> list[Restriction]:
    quantised = frozenset(v for v in axes.get("type_v", ()) if v in QUANTISED_KV_BLOCK)
    if not quantised:
        return []
    if "flash_attn" in axes:
        where = {"type_v": quantised, "flash_attn": frozenset({"off"})}
        reason = "a quantised V cache needs flash attention, which is off"
        return [Restriction(reason=reason, where=where)] if "off" in axes["flash_attn"] else []
    if flash_attn_takes_words(build):
        return []  # default auto turns it on
    reason = (
        f"a quantised V cache needs flash attention, which {build.label} leaves off unless asked"
    )
    return [Restriction(reason=reason, where={"type_v": quantised})]


def _head_size_fits_block(axes: Axes, model: Model, _build: Build) -> list[Restriction]:
    if model.facts is None:
        return []
    found: list[Restriction] = []
    for name, head_size in (
        ("type_k", model.facts.head_size_k),
        ("type_v", model.facts.head_size_v),
    ):
        if head_size is None:
            continue
        bad = [v for v in axes.get(name, ()) if head_size % QUANTISED_KV_BLOCK.get(str(v), 1)]
        found += _refuse(
            name, bad, f"head size {head_size} is not divisible by the block of 32 of this {name}"
        )
    return found


def _layers_need_a_gpu(axes: Axes, _model: Model, build: Build) -> list[Restriction]:
    values = [v for v in axes.get("n_gpu_layers", ()) if isinstance(v, int)]
    found: list[Restriction] = []
    if build.is_cpu_only and "rpc" not in axes:
        found += _refuse(
            "n_gpu_layers",
            [v for v in values if v > 0],
            f"{build.label} sees no GPU to put layers on",
        )
    if not gpu_layers_take_auto(build):
        found += _refuse(
            "n_gpu_layers",
            [v for v in values if v < 0],
            f"{build.label} has no automatic n_gpu_layers; give a number",
        )
    return found


def _values_the_line_cannot_carry(axes: Axes, _model: Model, _build: Build) -> list[Restriction]:
    found = _refuse(
        "tensor_buft_overrides",
        [v for v in axes.get("tensor_buft_overrides", ()) if "," in str(v)],
        "llama-bench splits override_tensor at commas; write ';' between patterns",
    )
    found += _refuse(
        "tensor_split",
        [
            v
            for v in axes.get("tensor_split", ())
            if str(v).replace(",", "/").count("/") >= _MAX_TENSOR_SPLIT
        ],
        f"tensor_split takes at most {_MAX_TENSOR_SPLIT} parts",
    )
    found += _refuse(
        "n_depth",
        [v for v in axes.get("n_depth", ()) if isinstance(v, int) and v > _MAX_DEPTH],
        "this depth does not fit the engine's integers",
    )
    return found


_Rule = Callable[[Axes, Model, Build], list[Restriction]]
_RULES_OF_THE_LIBRARY: tuple[_Rule, ...] = (
    _younger_kv_types,
    _quantised_v_needs_flash_attention,
    _head_size_fits_block,
    _layers_need_a_gpu,
)
_RULES: tuple[_Rule, ...] = (
    _unknown_flags,
    *_RULES_OF_THE_LIBRARY,
    _flash_attention_words,
    _values_the_line_cannot_carry,
)
