"""llama-bench's command line, per build: which flag and which word a parameter becomes, and what cannot be said.

What a binary knows comes from its own `--help` (`Build.options`, `Build.option_help`); build numbers are used only
where the help is silent (section 1.3 of the page on llama-bench).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
    "q8_0": 32,
    "q4_0": 32,
    "q4_1": 32,
    "q5_0": 32,
    "q5_1": 32,
    "iq4_nl": 32,
}
"""KV-cache types that are stored in blocks -> elements per block."""

_OLD_LOAD_MODES = {"mmap": ("-mmp", "1"), "none": ("-mmp", "0"), "dio": ("-dio", "1")}
_MAX_TENSOR_SPLIT = 16
_MAX_DEPTH = 2**31 - 1


def flash_attn_takes_words(build: Build) -> bool:
    """Builds from b9437 on take on/off/auto; older ones read any word as 0 (1.3 of the page)."""
    return "auto" in dict(build.option_help).get("-fa", "")


def gpu_layers_take_auto(build: Build) -> bool:
    """Whether -ngl -1 means automatic: only where that is the default (b9437 on)."""
    return "default: -1" in dict(build.option_help).get("-ngl", "")


def _old_load_mode(value: Scalar) -> tuple[str, str] | None:
    return _OLD_LOAD_MODES.get(str(value))


def spell(build: Build, name: str, values: Iterable[Scalar]) -> list[str]:
    """The words for one axis, `["-b", "512,2048"]`; what cannot be said was taken out by `restrictions`."""
    chosen = tuple(values)
    if name == "load_mode" and not build.knows("-lm"):
        flag, word = _OLD_LOAD_MODES[str(chosen[0])]  # model scope: one value a process
        return [flag, word]
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
    axes = dict(block.axes)
    found: list[Restriction] = []
    for rule in _RULES:
        found.extend(rule(axes, model, build))
    return found


Axes = dict[str, tuple[Scalar, ...]]


def _refuse(name: str, values: Iterable[Scalar], reason: str) -> list[Restriction]:
    chosen = frozenset(values)
    return [Restriction(reason=reason, where={name: chosen})] if chosen else []


def _unknown_flags(axes: Axes, _model: Model, build: Build) -> list[Restriction]:
    found: list[Restriction] = []
    for name, values in axes.items():
        flag = FLAGS[name]
        if build.knows(flag):
            continue
        if name == "load_mode":
            bad = [v for v in values if not _speakable_load_mode(build, v)]
            found += _refuse(
                name,
                bad,
                f"{build.label} has no -lm, and its older flags cannot say this load mode",
            )
            continue
        bad = [v for v in values if not (name == "n_depth" and v == 0)]
        found += _refuse(name, bad, f"{build.label} does not know {flag} ({name})")
    return found


def _speakable_load_mode(build: Build, value: Scalar) -> bool:
    words = _old_load_mode(value)
    return words is not None and build.knows(words[0])


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
    if is_cpu_only(build):
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


def is_cpu_only(build: Build) -> bool:
    """True where the build says that it has no device, or names no backend but CPU and BLAS."""
    if build.devices is not None:
        return not build.devices
    return build.backends is not None and set(build.backends) <= {"CPU", "BLAS"}


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


_BROKEN_DEPTH_BUILDS = range(5212, 5221)


def _broken_builds(axes: Axes, _model: Model, build: Build) -> list[Restriction]:
    if build.number in _BROKEN_DEPTH_BUILDS:
        name = next(iter(axes), "n_depth")
        return _refuse(
            name,
            axes.get(name, ()),
            f"llama-bench of b{build.number} crashes on every test (upstream #13169)",
        )
    return []


_RULES: tuple[Callable[[Axes, Model, Build], list[Restriction]], ...] = (
    _unknown_flags,
    _flash_attention_words,
    _quantised_v_needs_flash_attention,
    _head_size_fits_block,
    _layers_need_a_gpu,
    _values_the_line_cannot_carry,
    _broken_builds,
)
