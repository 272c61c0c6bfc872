"""`llamasweep ab`: two builds by turns until each cell is clear, changes confirmed on fresh rounds, then the comparison."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.gate import gate_options, tell, telling_of
from llamasweep.cli.run import run_watched, seconds_of
from llamasweep.cli.sweep_options import make_wishes, sweep_options
from llamasweep.errors import EXIT_INTERRUPTED, UsageError, quoted

if TYPE_CHECKING:
    from llamasweep.run.prepare import Wishes
    from llamasweep.run.runner import RunSummary
    from llamasweep.sweep.spec import SweepSpec


@click.command("ab")
@sweep_options
@click.option(
    "--builds",
    "two_builds",
    nargs=2,
    metavar="A B",
    help="The two builds, the older first; default: the two that the sweep names.",
)
@click.option("--fresh", is_flag=True, help="Begin a new run instead of continuing the newest.")
@click.option("--retry-failed", is_flag=True, help="Try cells that failed before again.")
@click.option("--max-time", metavar="TIME", help="Stop after this time; the rest can be resumed.")
@click.option(
    "--only-if-quiet", is_flag=True, help="Do not start while other programs keep the machine busy."
)
@click.option("--plain", is_flag=True, help="Plain lines instead of the live view.")
@gate_options
def command(**given: Any) -> None:
    """Measure two builds by turns until each cell is clear: slower, faster or the same.

    In each round both builds run once, in an order drawn anew. A cell leaves as soon as it is clear (six to twenty rounds); a
    change is then confirmed on ten to twenty fresh rounds, and only that makes it official. Killed or stopped, the same
    command continues and measures nothing twice.

    \b
    Example:
      llamasweep ab sweeps/builds.yaml --builds 10488 11434
      llamasweep ab nightly.yaml --builds good new --gate --max-time 2h --markdown summary.md
    """
    from llamasweep.run.campaign import RunOptions, run_sweep
    from llamasweep.run.sides import sides_of_run
    from llamasweep.store.locate import results_root
    from llamasweep.sweep_file import load

    telling = telling_of(given)
    spec, wishes = _by_turns(load(Path(given["sweep"])), make_wishes(given), given["two_builds"])
    options = RunOptions(
        results_root=results_root(given["results"]).absolute(),
        wishes=wishes,
        fresh=given["fresh"],
        retry_failed=given["retry_failed"],
        only_if_quiet=given["only_if_quiet"],
        max_time_s=seconds_of(given["max_time"]),
    )
    summary = run_watched(spec, options, run_sweep, is_plain=given["plain"])
    _tell_rest(summary)
    click.echo(f"The report: `llamasweep report {summary.run_dir.name}`", err=True)
    code = tell(*sides_of_run(summary.run_dir), telling)
    sys.exit(EXIT_INTERRUPTED if summary.stopped_by == "signal" else code)


def _by_turns(
    spec: SweepSpec, wishes: Wishes, two_builds: tuple[str, str] | tuple[()] | None
) -> tuple[SweepSpec, Wishes]:
    """The sweep with `rounds: auto` under a name of its own, so that it continues no other run."""
    if two_builds and wishes.build_names:
        raise UsageError("--builds and --build both name builds", hint="Give --builds A B alone.")
    names = tuple(two_builds or wishes.build_names or spec.builds)
    if len(names) != 2:
        raise UsageError(
            f"ab compares two builds, and {len(names)} are named",
            hint="Name them: --builds A B; `llamasweep builds list` shows what is here.",
        )
    if names[0] == names[1]:
        raise UsageError(
            f"A and B are the same build: {quoted(names[0])}",
            hint="Name two; `llamasweep noise SWEEP` measures a build against itself.",
        )
    name = " ".join((spec.name, "ab", *map(_short_name, names)))
    by_turns = replace(spec, name=name, order="interleaved", rounds="auto", builds=names)
    return by_turns, replace(wishes, build_names=names)


def _short_name(build: str) -> str:
    """The name of a build; of one given by its path a mark that tells it apart and no folder."""
    if "/" not in build and "\\" not in build:
        return build
    return hashlib.sha256(str(Path(build).absolute()).encode()).hexdigest()[:8]


def _tell_rest(summary: RunSummary) -> None:
    if summary.stopped_by is not None:
        why = "time is up" if summary.stopped_by == "time" else "stopped"
        click.echo(f"Not every cell is clear ({why}); the same command continues.", err=True)
    elif not summary.n_measured:
        click.echo("Everything was measured already; --fresh measures again.", err=True)
