"""`llamasweep best`: the settings of a run that measured best, as commands to paste, with the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.results import RESULTS_OPTION
from llamasweep.cli.terminal import printable
from llamasweep.errors import StoreError

if TYPE_CHECKING:
    from llamasweep.report.use_it import UseCard
    from llamasweep.results.best import ModelBest, Purpose
    from llamasweep.results.contenders import Contender
    from llamasweep.results.records import RunData

_NARROW_SPACE = "\u202f"


@click.command("best")
@click.argument("run", required=False)
@click.option(
    "--for",
    "aim",
    type=click.Choice(["tg", "pp", "both"]),
    default="both",
    show_default=True,
    help="Generation, prompts, or each of them.",
)
@RESULTS_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: str | None, aim: str, results: str | None, as_json: bool) -> None:
    """The settings of a run that measured best, per model; without RUN, of the newest.

    RUN is a run id, its beginning, the name of a sweep (its newest run), or a folder. For each model: the fastest
    for generation (tg) and for prompts (pp), and the one with the fewest threads and the least memory that is within 3 %
    of it, as commands for llama-server and Ollama. A figure with a doubt is not chosen without saying so; a tie within the
    noise is called one.

    \b
    Example:
      llamasweep best
      llamasweep best quick --for tg
      llamasweep best 20261129T140000Z-quick --json
    """
    from llamasweep.results.best import best_of
    from llamasweep.store.locate import find_run, load_run, results_root

    loaded = load_run(find_run(results_root(results), run))
    purposes: tuple[Purpose, ...] = (
        ("tg", "pp") if aim == "both" else ("tg",) if aim == "tg" else ("pp",)
    )
    found = [best for best in best_of(loaded) if set(purposes) & set(best.choices)]
    if not found:
        raise StoreError(_nothing(loaded, aim), hint=_HINT)
    if as_json:
        models = [_json(loaded, best, purposes) for best in found]
        click.echo(json.dumps({"run_id": loaded.info.run_id, "models": models}, indent=2))
        return
    for best in found:
        for line in _lines(loaded, best, purposes):
            click.echo(line)


_HINT = "`llamasweep results show` tells what became of each cell."


def _nothing(run: RunData, aim: str) -> str:
    what = "generation or prompts" if aim == "both" else {"tg": "generation", "pp": "prompts"}[aim]
    return f"no cell of {run.info.run_id} measured {what}: there is no best setting"


def _lines(run: RunData, best: ModelBest, purposes: tuple[Purpose, ...]) -> Iterator[str]:
    from llamasweep.report.use_it import cards, notes, subject

    yield _shown(subject(best))
    for card in cards(run, best, purposes=purposes):
        yield from _card_lines(card)
    for note in notes(run, best):
        yield f"  Note: {_shown(note)}"
    yield ""


def _card_lines(card: UseCard) -> Iterator[str]:
    yield f"  {_shown(card.title)}" + (f": {_shown(card.setting)}" if card.setting else "")
    for text in card.evidence:
        yield f"    {_shown(text)}"
    yield ""
    yield printable(card.server)
    yield ""
    for note in card.notes:
        yield f"    Note: {_shown(note)}"
    if card.ollama is not None and card.ollama_server is not None:
        yield "    Ollama. In one terminal, the server, which stays there:"
        yield ""
        yield printable(card.ollama_server)
        yield ""
        yield "    In another, the model:"
        yield ""
        yield from (printable(line) for line in card.ollama.split("\n"))
        yield ""
    for note in card.ollama_notes:
        yield f"    {_shown(note)}"


def _json(run: RunData, best: ModelBest, purposes: tuple[Purpose, ...]) -> dict[str, Any]:
    from llamasweep.report.use_it import cards, notes

    return {
        "model_label": best.model_label,
        "model_hash": best.model_hash,
        "engine": best.engine,
        "fastest": {
            purpose: _row(best.choices[purpose].chosen)
            | {
                "tied": [_row(row) for row in best.choices[purpose].tied],
                "second": _row_or_none(best.choices[purpose].second),
                "passed_over": [_row(row) for row in best.choices[purpose].passed_over],
            }
            for purpose in purposes
            if purpose in best.choices
        },
        "cheapest_within_3_percent": _row_or_none(
            best.frugal.contender if best.frugal is not None else None
        ),
        "ways": [
            {
                "title": _plain(card.title),
                "setting": card.setting,
                "evidence": [_plain(text) for text in card.evidence],
                "llama_server": card.server,
                "ollama_server": card.ollama_server,
                "ollama": card.ollama,
                "notes": [_plain(text) for text in (*card.notes, *card.ollama_notes)],
            }
            for card in cards(run, best, purposes=purposes)
        ],
        "notes": [_plain(text) for text in notes(run, best)],
    }


def _row_or_none(row: Contender | None) -> dict[str, Any] | None:
    return None if row is None else _row(row)


def _row(row: Contender) -> dict[str, Any]:
    return {
        "build_label": row.build_label,
        "settings": dict(row.settings),
        "test": row.test,
        "n_depth": row.n_depth,
        "median_tps": row.rate.median,
        "sample_std_tps": row.rate.std,
        "min_tps": row.rate.low,
        "max_tps": row.rate.high,
        "n_samples": row.rate.n,
        "ceiling_fraction": row.ceiling_fraction,
        "ceiling_is_reference": row.is_reference,
        "memory_bytes": row.memory_bytes,
        "doubts": list(row.doubts),
        "attempt_ids": list(row.attempt_ids),
    }


def _plain(text: str) -> str:
    return text.replace(_NARROW_SPACE, " ")


def _shown(text: str) -> str:
    return printable(_plain(text))
