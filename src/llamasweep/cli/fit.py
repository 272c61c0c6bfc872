"""`llamasweep fit`: whether a model fits, with which settings, and how fast it then can be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.ceiling import shown_name
from llamasweep.cli.ceiling_options import (
    CACHE_TYPES,
    ONE_DEVICE,
    asked_model,
    asked_question,
    asked_rig,
    model_options,
    refusals,
    rig_options,
)

if TYPE_CHECKING:
    from llamasweep.ceilings.fit import Fit, FitChoice, LargestContext

_COUNT = click.IntRange(1, 2**31 - 1)


@click.command(name="fit")
@model_options
@ONE_DEVICE
@rig_options
@click.option("--n-ctx", type=_COUNT, metavar="N", help="The context that is wanted (8192).")
@click.option("--n-ubatch", type=_COUNT, metavar="N", help="Physical batch (512).")
@click.option("--streams", type=click.IntRange(1, 65536), metavar="B", help="Users who share it.")
@click.option(
    "--type-kv",
    multiple=True,
    type=click.Choice(CACHE_TYPES),
    help="Type of the KV cache to try; may be repeated (f16, q8_0, q4_0).",
)
def command(**options: Any) -> None:
    """Will MODEL fit: with which layers on the GPU, experts on the host, context and KV type.

    MODEL is a GGUF file, an http or https address of one, or the name of a known shape. Without a
    device: this machine. 8 GB stay free on the host and 1 GiB on each GPU.

    \b
    Example:
      llamasweep fit Qwen3-30B-A3B --device "RTX 3060 12GB + DDR5-5600x2" --ram "64 GiB"
      llamasweep fit model.gguf --n-ctx 32768 --json
    """
    from llamasweep.ceilings.fit import CACHE_TYPES as DEFAULT_TYPES
    from llamasweep.ceilings.fit import find_fit

    facts = asked_model(options)
    rig = asked_rig(options, options["device"])
    with refusals():
        found = find_fit(
            facts, asked_question(options), rig, cache_types=options["type_kv"] or DEFAULT_TYPES
        )
    if options["is_json"]:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    for line in fit_lines(found, f"{shown_name(facts.name, options['model'])} {facts.quant_short}"):
        click.echo(line)


def fit_lines(found: Fit, model: str) -> Iterator[str]:
    """One screen."""
    from llamasweep.cli.terminal import printable
    from llamasweep.units import format_bytes

    yield printable(f"{model} on {found.rig}")
    yield ""
    if found.best is None:
        lacks = "" if found.missing_bytes is None else f": {format_bytes(found.missing_bytes)} lack"
        yield f"It does not fit with {found.n_ctx:,} tokens of context and any KV type{lacks}."
        if not found.is_host_known:
            yield "Beside RAM some of it could stay there: --memory DDR5-5600x2 --ram '64 GiB'."
        elif not found.by_context:
            yield "llama.cpp would read weights from disk for every token, which is very slow."
        yield from _trained_lines(found)
        if not found.by_context:
            return
        yield "A shorter context fits:"
    else:
        yield from _best_lines(found.best, is_host_known=found.is_host_known)
        yield from _trained_lines(found)
    yield ""
    yield from _table(found)
    yield ""
    yield from _largest_lines(found)
    yield ""
    yield (
        f"Kept free: {format_bytes(found.reserve_bytes)} on the host, "
        f"{format_bytes(found.device_reserve_bytes)} on each GPU. Rates are ceilings; the second is"
    )
    yield "behind a full context. q8_0 and q4_0 need flash attention and cost some quality."


def _trained_lines(found: Fit) -> Iterator[str]:
    if found.n_ctx_train and found.n_ctx > found.n_ctx_train:
        yield f"The model was trained with {found.n_ctx_train:,} tokens; beyond them it may write nonsense."


def _best_lines(best: FitChoice, *, is_host_known: bool) -> Iterator[str]:
    from llamasweep.cli.ceiling_lines import tps
    from llamasweep.units import format_bytes

    where = {
        "accelerators": "everything on the GPU",
        "experts on the host": f"all layers on the GPU, experts of {best.n_cpu_moe} of them in RAM",
        "layers on the host": f"{best.n_gpu_layers} layers on the GPU, the others in RAM",
        "host": "in the one memory",
    }[best.where]
    known = "It fits" if best.fits else "It fits the GPU, with RAM of unknown size (--ram)"
    if best.fits is None and best.where == "host":
        known = "The memory's size is not known (--ram)"
    yield f"{known}:"
    yield f"  {where}, {best.n_ctx:,} tokens of context in {best.type_kv}"
    flags = f"-ngl {best.n_gpu_layers}" if best.where != "host" else ""
    flags += f" -ncmoe {best.n_cpu_moe}" if best.n_cpu_moe else ""
    flags += f" -c {best.n_ctx}"
    if best.type_kv != "f16":
        flags += f" -fa on -ctk {best.type_kv} -ctv {best.type_kv}"
    yield f"  llama.cpp: {flags.strip()}"
    needs = []
    if best.accelerator_bytes:
        needs.append(f"{format_bytes(best.accelerator_bytes)} on the GPU")
    if best.host_bytes and is_host_known:
        needs.append(f"{format_bytes(best.host_bytes)} of RAM")
    yield f"  takes {' and '.join(needs)}, what is kept free included"
    if best.decode_ceiling_tps is not None and best.decode_ceiling_full_tps is not None:
        yield (
            f"  at most {tps(best.decode_ceiling_tps)}, "
            f"{tps(best.decode_ceiling_full_tps)} behind a full context"
        )


def _table(found: Fit) -> Iterator[str]:
    """A row for each context, a column for each cache type."""
    from llamasweep.cli.terminal import table_lines

    types = list(dict.fromkeys(row.type_kv for row in found.by_context))
    by_key = {(row.n_ctx, row.type_kv): row for row in found.by_context}
    contexts = sorted({row.n_ctx for row in found.by_context})
    rows = [
        (f"{n_ctx:,}", *(_cell(by_key.get((n_ctx, kind))) for kind in types)) for n_ctx in contexts
    ]
    yield from table_lines(("context", *(f"KV {kind}" for kind in types)), rows)


def _cell(row: FitChoice | None) -> str:
    if row is None:
        return "does not fit"
    flags = "" if row.where == "host" else f"-ngl {row.n_gpu_layers}"
    flags += f" -ncmoe {row.n_cpu_moe}" if row.n_cpu_moe else ""
    return f"{flags:<18}{_short(row.decode_ceiling_tps)}/{_short(row.decode_ceiling_full_tps)} t/s".strip()


def _short(value: float | None) -> str:
    from llamasweep.cli.ceiling_lines import tps

    return "?" if value is None else tps(value).removesuffix(" t/s")


def _largest_lines(found: Fit) -> Iterator[str]:
    names = {
        "accelerators": "all on the GPU",
        "experts on the host": "all experts in RAM",
        "layers on the host": "layers in RAM",
        "host": "all in RAM",
    }
    yield "Largest context"
    for where in dict.fromkeys(one.where for one in found.largest):
        by_words: dict[str, list[str]] = {}
        for one in found.largest:
            if one.where == where:
                by_words.setdefault(_context(one), []).append(one.type_kv)
        yield f"  {names[where]}: " + "; ".join(
            f"{words} (KV {', '.join(types)})" for words, types in by_words.items()
        )


def _context(one: LargestContext) -> str:
    if not one.is_known:
        return "not known"
    if one.n_ctx is None:
        return "none"
    return f"{one.n_ctx:,}" + (", the model's limit" if one.is_limited_by_model else "")
