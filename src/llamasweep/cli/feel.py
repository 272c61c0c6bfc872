"""`llamasweep feel`: what one person feels of a model on a server: waiting, and the flow of words."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from llamasweep.engines.http_exchange import ServerAddress
    from llamasweep.results.feeling import Feeling
    from llamasweep.results.latency import Spread
    from llamasweep.run.feel import Target, Wish


@click.command(name="feel")
@click.argument("model", required=False)
@click.option(
    "--base-url", metavar="URL", help="An OpenAI-compatible server, such as http://127.0.0.1:8080."
)
@click.option(
    "--key-from", metavar="VARIABLE", help="Environment variable that holds the server's key."
)
@click.option(
    "--model-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The model's GGUF, for the ceiling, where the server does not name it.",
)
@click.option("--build", metavar="NAME", help="Build whose llama-server serves a file (default).")
@click.option(
    "--runs", type=click.IntRange(1, 1000), default=5, show_default=True, help="Timed requests."
)
@click.option(
    "--n-prompt",
    type=click.IntRange(32, 1_000_000),
    default=512,
    show_default=True,
    help="Tokens of each prompt, about.",
)
@click.option(
    "--n-gen",
    type=click.IntRange(2, 100_000),
    default=128,
    show_default=True,
    help="Tokens of each answer.",
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def command(model: str | None, is_json: bool, **options: Any) -> None:
    """Time to first token, time per token and tokens per second of a few streamed answers, and a verdict.

    MODEL is a GGUF file, for which a llama-server is started; or the name of a model on the server of
    --base-url; or, without one, of Ollama on this machine. Each prompt is new from its first token on, and
    a first request is thrown away. Nothing is kept.

    \b
    Example:
      llamasweep feel models/Qwen3-4B-Q4_K_M.gguf
      llamasweep feel qwen3:4b
      llamasweep feel --base-url http://127.0.0.1:8080 --runs 10 --json
    """
    from llamasweep.run.feel import Wish, feel
    from llamasweep.run.lock import SweepLock

    wish = Wish(n_prompt=options["n_prompt"], n_gen=options["n_gen"], n_runs=options["runs"])
    address = _asked_address(model, options)
    with SweepLock("feel"), _target(model, options, wish, address) as target:
        found = feel(target, wish, say=lambda text: click.echo(f"{text} …", err=True))
    if is_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    for line in feel_lines(found):
        click.echo(line)


@contextlib.contextmanager
def _target(
    model: str | None, options: dict[str, Any], wish: Wish, address: ServerAddress | None
) -> Iterator[Target]:
    from llamasweep.errors import UsageError
    from llamasweep.run.feel import find_ollama, served_file, target_at

    if address is not None:
        yield target_at(address, model, options["model_file"])
    elif model is None:
        raise UsageError("no model was named")
    elif Path(model).is_file():
        with served_file(Path(model), wish, options["build"]) as target:
            yield target
    else:
        yield find_ollama(model)


def _asked_address(model: str | None, options: dict[str, Any]) -> ServerAddress | None:
    """The server of --base-url, None without. Raises UsageError for wrong arguments, whoever holds the machine's lock."""
    from llamasweep.engines.http_exchange import parse_base_url
    from llamasweep.engines.openai_client import key_from_environment
    from llamasweep.errors import UsageError

    refuse_unused(model, options)
    if options["base_url"] is None:
        if model is None:
            raise UsageError("no model was named", hint="Give a .gguf file, or --base-url.")
        return None
    return parse_base_url(options["base_url"], key=key_from_environment(options["key_from"]))


def refuse_unused(model: str | None, options: dict[str, Any]) -> None:
    """Options that this kind of target has no use for. Raises UsageError: what was asked for must not be dropped in silence."""
    from llamasweep.errors import UsageError

    has_address = options["base_url"] is not None
    if options["key_from"] is not None and not has_address:
        raise UsageError("--key-from is for the server of --base-url")
    if options["model_file"] is not None and not has_address:
        raise UsageError(
            "--model-file is for the server of --base-url", hint="Give the file as MODEL."
        )
    serves_file = not has_address and model is not None and Path(model).is_file()
    if options["build"] is not None and not serves_file:
        raise UsageError("--build serves a .gguf file, and none is served here")


def feel_lines(found: Feeling) -> Iterator[str]:
    """The figures as a table, the ceiling, and the verdict."""
    from llamasweep.cli.terminal import printable, table_lines
    from llamasweep.results.feeling import verdict
    from llamasweep.results.flag_words import FLAGS
    from llamasweep.units import format_tps

    yield printable(f"{found.model} on {found.server} ({found.kind})")
    counted = "?" if found.n_prompt is None else str(found.n_prompt)
    yield f"{found.figures.n_requests} answers of {found.n_gen} tokens, prompts of {counted}"
    yield ""
    figures = found.figures
    rows = [
        ("first token", *_cells(figures.ttft_ms, "ms")),
        ("per token", *_cells(figures.tpot_ms, "ms")),
        ("tokens per second", *_cells(found.decode_tps, "")),
        ("whole answer", *_cells(figures.e2e_ms, "ms")),
    ]
    yield from table_lines(("", "median", "p95"), rows)
    yield ""
    if found.ceiling.decode_tps is None:
        yield printable(f"ceiling: none; {found.ceiling.reason}")
    else:
        yield f"ceiling: {format_tps(found.ceiling.decode_tps)} (`llamasweep ceiling` shows how)"
    yield from verdict(found)
    for flag in found.flags:
        yield printable(f"note: {FLAGS[flag].meaning if flag in FLAGS else flag}")
    for note in found.notes:
        yield printable(f"note: {note}")


def _cells(value: Spread, unit: str) -> tuple[str, str]:
    return _cell(value.median, unit), _cell(value.p95, unit)


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}".rstrip()
