"""`llamasweep ceiling`: how fast a model can be on a device, with the formula and its numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.ceiling_options import (
    ONE_DEVICE,
    asked_model,
    asked_question,
    asked_rig,
    cache_options,
    finite,
    model_options,
    refusals,
    rig_options,
    test_options,
    two_counts,
)

if TYPE_CHECKING:
    from llamasweep.ceilings.answer import Answer
    from llamasweep.ceilings.question import Question
    from llamasweep.ceilings.rig import Rig

_COUNT = click.IntRange(1, 2**31 - 1)
_RATE = click.FloatRange(1e-6, 1e9)
_PARAMS = click.FloatRange(1, 1e15)


@click.command(name="ceiling")
@model_options
@ONE_DEVICE
@rig_options
@test_options(512, 128)
@cache_options
@click.option("--n-ctx", type=_COUNT, metavar="N", help="Cells of the context (what is needed).")
@click.option(
    "--n-gpu-layers", type=click.IntRange(-1, 9999), metavar="N", help="Layers on the GPU (all)."
)
@click.option(
    "--n-cpu-moe",
    type=click.IntRange(0, 9999),
    metavar="N",
    help="Layers whose experts stay in RAM (0).",
)
@click.option("--streams", type=click.IntRange(1, 65536), metavar="B", help="Users at once.")
@click.option(
    "--workload", callback=two_counts, metavar="N_PROMPT,N_GEN", help="A request to time."
)
@click.option(
    "--prefill-tps", type=_RATE, callback=finite, metavar="X", help="A measured rate of prompts."
)
@click.option(
    "--decode-tps", type=_RATE, callback=finite, metavar="X", help="A measured rate of generation."
)
@click.option(
    "--params",
    type=_PARAMS,
    callback=finite,
    metavar="N",
    help="Without MODEL: parameters, as 177e9.",
)
@click.option(
    "--active-params",
    type=_PARAMS,
    callback=finite,
    metavar="N",
    help="Those that one token reads.",
)
@click.option(
    "--bpw",
    type=click.FloatRange(0.01, 64),
    callback=finite,
    metavar="X",
    help="Bits of each.",
)
def command(**options: Any) -> None:
    """How fast MODEL can be: generation, prompts, memory, a request, several users.

    MODEL is a GGUF file (of a split model the first shard), an http or https address of one, of which
    a few megabytes are read, or the name of a known shape. Without a device: this machine.

    \b
    Example:
      llamasweep ceiling Qwen3-4B --device "M4 Pro" --depth 4096
      llamasweep ceiling model.gguf --device "RTX 3060 12GB" --memory DDR5-5600x2 --n-cpu-moe 20
      llamasweep ceiling --params 177e9 --active-params 6e9 --bpw 4.27 --bandwidth-gbps 50
    """
    if options["params"] is not None or options["bpw"] is not None:
        found, name = _pencil(options), "A model"
    else:
        found, name = _exact(options)
    if options["is_json"]:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    from llamasweep.cli.ceiling_lines import answer_lines

    for line in answer_lines(found, name):
        click.echo(line)


def _exact(options: dict[str, Any]) -> tuple[Answer, str]:
    from llamasweep.ceilings.answer import answer

    facts = asked_model(options)
    question, rig = _question_and_rig(options)
    with refusals():
        return answer(facts, question, rig), shown_name(facts.name, options["model"])


def shown_name(name: str | None, asked: str) -> str:
    """What the model is called on the screen."""
    text = name or asked.partition("?")[0].rstrip("/").rsplit("/", 1)[-1]
    return text if len(text) <= 80 else text[:79] + "…"


def _pencil(options: dict[str, Any]) -> Answer:
    from llamasweep.ceilings.answer_pencil import pencil_answer
    from llamasweep.ceilings.decode import PencilModel
    from llamasweep.errors import UsageError

    if options["model"] or options["params"] is None or options["bpw"] is None:
        raise UsageError(
            "--params and --bpw go together, and without MODEL",
            hint="Such as --params 177e9 --active-params 6e9 --bpw 4.27.",
        )
    question, rig = _question_and_rig(options)
    model = PencilModel(
        params=options["params"],
        active_params=options["active_params"] or options["params"],
        bits_per_weight=options["bpw"],
    )
    with refusals():
        return pencil_answer(model, question, rig)


def _question_and_rig(options: dict[str, Any]) -> tuple[Question, Rig]:
    return asked_question(options), asked_rig(options, options["device"])
