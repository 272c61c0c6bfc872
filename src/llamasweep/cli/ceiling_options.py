"""Options that `ceiling`, `fit` and `whatif` share, and what they ask for: a model, a rig, a question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from llamasweep.ceilings.question import Question
    from llamasweep.ceilings.rig import Rig
    from llamasweep.gguf.facts import ModelFacts

_Function = TypeVar("_Function", bound=Callable[..., Any])
_COUNT = click.IntRange(1, 2**31 - 1)
_FROM_0 = click.IntRange(0, 2**31 - 1)
_RATE = click.FloatRange(1e-6, 1e9)
CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")


def _size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Bytes of "64 GiB" or "8 GB"; a bare "8G" is refused, and so is "8", by which nobody means bytes."""
    from llamasweep.units import parse_bytes

    try:
        n_bytes = None if value is None else parse_bytes(value)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from None
    if value is not None and value.strip().isdecimal() and value.strip() != "0":
        raise click.BadParameter(f"{value[:40]!r} has no unit; write it like '{value[:6]} GiB'")
    return n_bytes


def finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """The number; NaN passes every range of click's."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number to compute with")
    return value


def two_counts(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Both numbers, from 1, of "1000,300"."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    numbers = [int(p) for p in parts if p.isascii() and p.isdigit() and len(p) < 10]
    if len(numbers) != 2 or len(parts) != 2 or min(numbers) < 1:
        raise click.BadParameter(f"{value[:40]!r} is not N_PROMPT,N_GEN, such as 1000,300")
    return numbers[0], numbers[1]


_MODEL = (
    click.argument("model", required=False),
    click.option(
        "--quant", metavar="Q", help="Quantisation, where MODEL names a known shape (Q4_K_M)."
    ),
)
_RIG = (
    click.option(
        "--memory", metavar="WORDS", help="Memory of the host, such as DDR5-5600x2 (two channels)."
    ),
    click.option(
        "--bandwidth-gbps",
        type=_RATE,
        callback=finite,
        metavar="X",
        help="Bandwidth of the memory in GB/s (10^9).",
    ),
    click.option(
        "--ram", callback=_size, metavar="SIZE", help="Size of the host's memory: '64 GiB'."
    ),
    click.option(
        "--vram", callback=_size, metavar="SIZE", help="Size of each device's own memory."
    ),
    click.option(
        "--reserve", callback=_size, metavar="SIZE", help="Kept free on the host (default: 8 GB)."
    ),
    click.option(
        "--tflops",
        type=_RATE,
        callback=finite,
        metavar="Y",
        help="Peak compute rate, instead of the table's.",
    ),
    click.option("--json", "is_json", is_flag=True, help="Print JSON."),
)
ONE_DEVICE = click.option(
    "--device", "device", metavar="NAME", help="A device of `llamasweep devices`, or 'A + B'."
)
_DEPTH = click.option("--depth", type=_FROM_0, metavar="N", help="Tokens that are cached already.")
_BATCHES = (
    click.option("--n-batch", type=_COUNT, metavar="N", help="Logical batch (2048)."),
    click.option("--n-ubatch", type=_COUNT, metavar="N", help="Physical batch (512)."),
)
_CACHE = (
    click.option("--type-k", type=click.Choice(CACHE_TYPES), help="Type of cached keys (f16)."),
    click.option("--type-v", type=click.Choice(CACHE_TYPES), help="Type of cached values (f16)."),
    click.option("--flash-attn", type=click.Choice(("on", "off")), help="Flash attention (on)."),
)


def _apply(options: Sequence[Callable[[_Function], _Function]], function: _Function) -> _Function:
    for option in reversed(options):
        function = option(function)
    return function


def model_options(function: _Function) -> _Function:
    """MODEL and --quant."""
    return _apply(_MODEL, function)


def rig_options(function: _Function) -> _Function:
    """What it runs on, but for the device, and --json."""
    return _apply(_RIG, function)


def test_options(n_prompt: int, n_gen: int) -> Callable[[_Function], _Function]:
    """Lengths, batches and depth. The help names these lengths as what is taken where nothing is said."""
    lengths = (
        click.option(
            "--n-prompt", type=_COUNT, metavar="N", help=f"Tokens of the prompt ({n_prompt})."
        ),
        click.option("--n-gen", type=_COUNT, metavar="N", help=f"Tokens generated ({n_gen})."),
    )
    return lambda function: _apply((_DEPTH, *lengths, *_BATCHES), function)


def cache_options(function: _Function) -> _Function:
    """Types of the KV cache and flash attention."""
    return _apply(_CACHE, function)


@contextmanager
def refusals() -> Iterator[None]:
    """Numbers and settings that make no sense become a UsageError."""
    from llamasweep.errors import NotModelledError, UsageError

    try:
        yield
    except NotModelledError as problem:
        raise UsageError(problem.message, hint=problem.hint) from None
    except ValueError as problem:
        raise UsageError(str(problem)) from None


def asked_model(options: dict[str, Any]) -> ModelFacts:
    """The facts of MODEL. Raises UsageError without one."""
    from llamasweep.errors import UsageError
    from llamasweep.gguf.named import read_named_model

    if not options["model"]:
        raise UsageError(
            "no model was named", hint="Give a .gguf file, an https address, or a known shape."
        )
    return read_named_model(options["model"], quant=options["quant"])


def asked_rig(options: dict[str, Any], device: str | None) -> Rig:
    """The rig of the options; without device, memory and bandwidth this machine, with notes on stderr."""
    from llamasweep.ceilings.rig import rig_of, with_peak, with_sizes

    memory, gbps = options["memory"], options["bandwidth_gbps"]
    if device is None and memory is None and gbps is None:
        from llamasweep.machine.facts import read_facts
        from llamasweep.machine.own_rig import own_rig

        rig = own_rig(read_facts())
        for note in rig.notes:
            click.echo(f"note: {note}", err=True)
    else:
        with refusals():
            rig = rig_of(
                () if device is None else (device,),
                memory=memory,
                bandwidth_bytes_per_s=None if gbps is None else gbps * 1e9,
            )
    rig = with_sizes(rig, ram_bytes=options["ram"], vram_bytes=options["vram"])
    return rig if options["tflops"] is None else with_peak(rig, options["tflops"] * 1e12)


def asked_question(options: dict[str, Any]) -> Question:
    """The question; what was not said keeps its default."""
    from llamasweep.ceilings.question import Question

    names = {
        "depth": "n_depth",
        "streams": "n_streams",
        "reserve": "reserve_bytes",
        **{
            name: name
            for name in (
                *("n_prompt", "n_gen", "n_batch", "n_ubatch", "type_k", "type_v", "n_gpu_layers"),
                *("n_cpu_moe", "n_ctx", "prefill_tps", "decode_tps"),
            )
        },
    }
    said = {names[key]: v for key, v in options.items() if key in names and v is not None}
    if options.get("flash_attn") is not None:
        said["flash_attn"] = options["flash_attn"] == "on"
    if options.get("workload") is not None:
        said["n_request_prompt"], said["n_request_gen"] = options["workload"]
    question = Question(**said)
    _refuse_depth_beyond_context(question)
    return question


def _refuse_depth_beyond_context(question: Question) -> None:
    from llamasweep.errors import UsageError

    needed = question.n_streams * (question.n_depth + 1)
    if question.n_depth and question.n_ctx is not None and question.n_ctx < needed:
        raise UsageError(
            f"a context of {question.n_ctx} cells cannot hold {question.n_depth} tokens"
            + (f" for each of {question.n_streams} users" if question.n_streams > 1 else ""),
            hint="Raise --n-ctx, or lower --depth; without --n-ctx it is as large as needed.",
        )
