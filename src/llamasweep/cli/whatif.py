"""`llamasweep whatif`: the table that one buys by: several devices side by side for one model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.ceiling import shown_name
from llamasweep.cli.ceiling_options import (
    asked_model,
    asked_question,
    asked_rig,
    cache_options,
    model_options,
    refusals,
    rig_options,
    test_options,
)

if TYPE_CHECKING:
    from llamasweep.ceilings.what_if import WhatIf, WhatIfRow

DEFAULT_N_PROMPT, DEFAULT_N_GEN, DEFAULT_STREAMS = 8192, 512, 8


@click.command(name="whatif")
@model_options
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="NAME",
    help="A device, memory such as DDR5-5600x2, or 'A + B'; repeat it for each column of the choice.",
)
@rig_options
@test_options(DEFAULT_N_PROMPT, DEFAULT_N_GEN)
@cache_options
@click.option("--streams", type=click.IntRange(1, 65536), metavar="N", help="Users at once (8).")
def command(devices: tuple[str, ...], **options: Any) -> None:
    """Devices side by side for MODEL: one user, a long prompt, and several users at once.

    The prompt has 8192 tokens and the answer 512 unless said otherwise. Without a device: this
    machine.

    \b
    Example:
      llamasweep whatif Qwen3-32B --device "RTX 4090" --device "M4 Max (40-core)" --device DDR5-5600x2
      llamasweep whatif model.gguf --device "RTX 3060 12GB + DDR5-5600x2" --ram "64 GiB" --json
    """
    from llamasweep.ceilings.what_if import compare_rigs

    facts = asked_model(options)
    defaults = {"n_prompt": DEFAULT_N_PROMPT, "n_gen": DEFAULT_N_GEN, "streams": DEFAULT_STREAMS}
    said = {key: value for key, value in options.items() if value is not None}
    question = asked_question({**options, **defaults, **said})
    rigs = [asked_rig(options, name) for name in devices or (None,)]
    with refusals():
        found = compare_rigs(facts, question, rigs)
    if options["is_json"]:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    for line in what_if_lines(found, shown_name(facts.name, options["model"])):
        click.echo(line)


def what_if_lines(found: WhatIf, model: str) -> Iterator[str]:
    """The table, and what its figures are."""
    from llamasweep.cli.terminal import printable, table_lines

    yield printable(f"{model} {found.quant}")
    yield ""
    heads = (
        "device",
        "GB/s",
        "memory",
        "fits",
        "one user",
        f"prompt {found.n_prompt}",
        "answer after",
        f"{found.streams} users",
    )
    yield from table_lines(heads, [_cells(row) for row in found.rows])
    yield ""
    yield "one user: most tokens/s that the memory allows; real programs reach 70 to 85 % of it,"
    yield "  mixtures of experts on wide memory often half."
    yield f"prompt: most tokens/s of a prompt of {found.n_prompt}."
    yield f"answer after: seconds until the first token / until {found.n_gen} are there, at best."
    if any(row.prefill_is_reference for row in found.rows):
        yield "~: by a reference that faster units may beat, no bound."
    if any(row.where in ("experts on the host", "layers on the host") for row in found.rows):
        yield "-ngl, -ncmoe: layers on the GPU, layers whose experts stay in RAM; see `llamasweep fit`."
    yield f"{found.streams} users: together, each behind such a prompt: at most (to expect)."
    notes = dict.fromkeys(f"{row.rig}: {why}" for row in found.rows for why in row.reasons.values())
    for note in notes:
        yield printable(f"- {note}")


def _cells(row: WhatIfRow) -> tuple[str, ...]:
    from llamasweep.units import format_bytes

    return (
        row.rig,
        "" if row.bandwidth_bytes_per_s is None else f"{row.bandwidth_bytes_per_s / 1e9:.4g}",
        "?" if row.memory_bytes is None else format_bytes(row.memory_bytes),
        _fits(row),
        _rate(row.decode_ceiling_tps),
        ("~" if row.prefill_is_reference else "") + _rate(row.prefill_ceiling_tps),
        _seconds(row),
        _streams(row),
    )


def _fits(row: WhatIfRow) -> str:
    from llamasweep.units import format_bytes

    if row.where is None:
        lacks = "" if row.missing_bytes is None else f", {format_bytes(row.missing_bytes)} lack"
        return f"no{lacks}"
    known = "yes" if row.fits else "?"
    if row.where == "experts on the host":
        return f"{known}, -ncmoe {row.n_cpu_moe}"
    if row.where == "layers on the host":
        return f"{known}, -ngl {row.n_gpu_layers}"
    return known


def _rate(value: float | None) -> str:
    from llamasweep.cli.ceiling_lines import tps

    return "-" if value is None else tps(value).removesuffix(" t/s")


def _seconds(row: WhatIfRow) -> str:
    if row.ttft_s is None or row.e2e_s is None:
        return "-"
    mark = "~" if row.prefill_is_reference else ""
    return f"{mark}{_short(row.ttft_s, 2)} / {_short(row.e2e_s, 3)} s"


def _short(seconds: float, n_digits: int) -> str:
    """So many digits that mean something, or whole seconds where those are more."""
    return f"{seconds:.{n_digits}g}" if seconds < 10**n_digits - 0.5 else f"{seconds:,.0f}"


def _streams(row: WhatIfRow) -> str:
    if row.fits_streams is False:
        return "do not fit"
    if row.streams_ceiling_tps is None:
        return "-"
    expected = "" if row.streams_estimate_tps is None else f" ({_rate(row.streams_estimate_tps)})"
    return f"{_rate(row.streams_ceiling_tps)}{expected}"
