"""`llamasweep noise`: a build against itself, so that a comparison knows which differences this machine makes by itself."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.run import exit_code, run_watched, seconds_of
from llamasweep.cli.sweep_options import make_wishes, sweep_options
from llamasweep.errors import MachineError

if TYPE_CHECKING:
    from llamasweep.machine.noise_record import NoiseCell, NoiseRecord
    from llamasweep.run.runner import RunSummary


WIDE_FLOOR = 0.1
"""Twice the widest floor that is taken where none was measured; such a machine was busy."""


@click.command("noise")
@sweep_options
@click.option(
    "--rounds",
    type=click.IntRange(min=2, max=1_000),
    default=12,
    show_default=True,
    help="Rounds of each cell; a floor needs twelve of a kind of test and size of model, all cells together.",
)
@click.option("--fresh", is_flag=True, help="Begin a new run instead of continuing the newest.")
@click.option("--max-time", metavar="TIME", help="Stop after this time; the rest can be resumed.")
@click.option("--plain", is_flag=True, help="Plain lines instead of the live view.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON; progress goes to stderr.")
def command(rounds: int, **given: Any) -> None:
    """Measure a build against itself, and keep what scatter this machine has by itself.

    The sweep's first build (or --build) takes turns with itself in random order. What comes out is the floor below which no
    change of a build counts, per kind of test and size of model, kept for this machine in the user's cache. `compare`, `ab` and
    `baseline check` use it; until there is one they take 3 % for generation and 5 % for prompts.

    \b
    Example:
      llamasweep noise sweeps/builds.yaml
      llamasweep noise sweeps/builds.yaml --build 11434 --rounds 20
    """
    from llamasweep.run.campaign import RunOptions, run_sweep
    from llamasweep.store.locate import results_root
    from llamasweep.sweep_file import load

    spec = load(Path(given["sweep"]))
    spec = replace(spec, name=f"{spec.name} noise", rounds=rounds, order="interleaved")
    options = RunOptions(
        results_root=results_root(given["results"]).absolute(),
        wishes=replace(make_wishes(given), is_against_itself=True),
        fresh=given["fresh"],
        max_time_s=seconds_of(given["max_time"]),
    )
    summary = run_watched(spec, options, run_sweep, is_plain=given["plain"])
    if summary.n_left:
        click.echo(
            f"{summary.n_left} cells are left; the same command continues. Nothing is kept yet."
        )
        sys.exit(exit_code(summary, strict=False))
    record, newer = _kept(summary)
    if given["is_json"]:
        click.echo(json.dumps(_plain(record, newer, summary), indent=2))
    else:
        for line in _lines(record, newer):
            click.echo(line)
    sys.exit(exit_code(summary, strict=False))


def _kept(summary: RunSummary) -> tuple[NoiseRecord, list[NoiseCell]]:
    """The record of this machine with what the run adds. Raises MachineError where no cell has a pair of rates."""
    from llamasweep.machine.facts import read_facts
    from llamasweep.machine.noise_record import NoiseRecord, load_noise, store_noise
    from llamasweep.run.noise import noise_cells
    from llamasweep.store.locate import load_run

    cells = noise_cells(load_run(summary.run_dir).attempts)
    if not cells:
        raise MachineError(
            "no cell has a round in which both turns were measured undisturbed",
            hint="`llamasweep results show` tells what became of each; close other programs and use --fresh.",
        )
    fingerprint = read_facts().fingerprint
    before = load_noise(fingerprint) or NoiseRecord(fingerprint=fingerprint, cells=())
    record = before.with_cells(cells)
    store_noise(record)
    return record, cells


def _lines(record: NoiseRecord, newer: list[NoiseCell]) -> list[str]:
    from llamasweep.cli.terminal import table_lines

    rows = [
        (
            one["kind"],
            one["sizes"],
            f"{one['floor_fraction']:.1%}",
            "-" if one["pair_sigma_fraction"] is None else f"{one['pair_sigma_fraction']:.2%}",
            one["n_rounds"],
        )
        for one in _floors(record)
    ]
    n = len(newer)
    lines = [
        f"{n} cell{'s' if n > 1 else ''} measured against {'themselves' if n > 1 else 'itself'}."
    ]
    if rows:
        lines += [
            "",
            *table_lines(("test", "model size", "floor", "one pair scatters", "rounds"), rows),
            "",
        ]
    lines += [
        f"Too few rounds for a floor: {text}. The default stays." for text in _too_few(record)
    ]
    lines.append("A change of a build counts on this machine when it is beyond the floor.")
    widest = max((one["floor_fraction"] for one in _floors(record)), default=0.0)
    if widest > WIDE_FLOOR:
        lines.append(
            f"A floor of {widest:.1%} hides most of what a build can lose: close other programs and measure again with --fresh."
        )
    return lines


def _floors(record: NoiseRecord) -> list[dict[str, Any]]:
    from llamasweep.stats.floor import practical_floors
    from llamasweep.units import format_bytes

    return [
        {
            "kind": kind,
            "size_class": size,
            "sizes": f"{format_bytes(round(2.0**size * 2**30))} to {format_bytes(round(2.0 ** (size + 1) * 2**30))}",
            "floor_fraction": floor.floor_fraction,
            "pair_sigma_fraction": floor.pair_sigma_fraction,
            "n_rounds": floor.n_rounds,
        }
        for (kind, size), floor in sorted(practical_floors(record.pairs).items())
    ]


def _too_few(record: NoiseRecord) -> list[str]:
    from llamasweep.stats.floor import LEAST_AA_ROUNDS, practical_floors, size_class

    found = practical_floors(record.pairs)
    counts: dict[tuple[str, int], int] = {}
    for cell in record.cells:
        key = (cell.test_kind, size_class(cell.model_size_bytes))
        counts[key] = counts.get(key, 0) + len(cell.a_tps)
    return [
        f"{kind} of this size of model has {n} of {LEAST_AA_ROUNDS}"
        for (kind, size), n in sorted(counts.items())
        if (kind, size) not in found
    ]


def _plain(record: NoiseRecord, newer: list[NoiseCell], summary: RunSummary) -> dict[str, Any]:
    return {
        "fingerprint": record.fingerprint,
        "run_dir": str(summary.run_dir),
        "n_cells_measured": len(newer),
        "floors": _floors(record),
        "too_few": _too_few(record),
    }
