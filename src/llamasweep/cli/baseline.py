"""`llamasweep baseline`: the speeds of a build as a small file that a team commits, and runs held against it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from llamasweep.cli.gate import gate_options, tell, telling_of
from llamasweep.cli.results import RESULTS_OPTION
from llamasweep.errors import StoreError

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("baseline")
def command() -> None:
    """Keep the speeds of a build in a file to commit, and hold later runs against it.

    \b
    Example:
      llamasweep baseline save baseline.json nightly
      llamasweep baseline check baseline.json nightly
    """


@command.command("save")
@click.argument("file", type=_FILE)
@click.argument("run", required=False)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@RESULTS_OPTION
def save(file: Path, run: str | None, force: bool, results: str | None) -> None:
    """Write the rates of a run (or RUN:BUILD) as a baseline; without RUN, of the newest run.

    One entry per cell with the median rate of each round, sorted so that a diff can be reviewed. No host name, no user
    name and no path is in it.

    \b
    Example:
      llamasweep baseline save baseline.json
      llamasweep baseline save baseline.json nightly:b11434 --force
    """
    from llamasweep.cli.report_files import write_whole
    from llamasweep.results.baseline import baseline_of, plain_baseline
    from llamasweep.run.sides import find_side
    from llamasweep.store.locate import results_root

    if file.exists() and not force:
        raise StoreError(f"{file} is there already", hint="Give --force to replace it.")
    side = find_side(results_root(results), run)
    try:
        baseline = baseline_of(side.rows, side.facts)
    except ValueError as problem:
        raise StoreError(
            f"{side.name} gives no baseline: {problem}",
            hint="`llamasweep results show` tells what became of each cell.",
        ) from problem
    text = json.dumps(plain_baseline(baseline), indent=1, ensure_ascii=False) + "\n"
    write_whole(file, text, option="FILE", what="the baseline to ")
    click.echo(f"{len(baseline.cells)} cells of {side.name} are in {file}")


@command.command("check")
@click.argument("file", type=_FILE)
@click.argument("run", required=False)
@RESULTS_OPTION
@gate_options
def check(file: Path, run: str | None, **given: Any) -> None:
    """Hold a run (or RUN:BUILD) against a baseline; without RUN, the newest run. Always with the gate.

    Exit code 3 where a cell is slower or newly failing, and it is sure. Measured at different times, so weaker than
    `llamasweep ab`.

    \b
    Example:
      llamasweep baseline check baseline.json
      llamasweep baseline check baseline.json nightly --strict --junit junit.xml
    """
    from llamasweep.run.sides import baseline_side, find_side
    from llamasweep.store.locate import results_root

    telling = replace(telling_of(given), is_gate=True)
    measured = find_side(results_root(given["results"]), run)
    sys.exit(tell(baseline_side(file), measured, telling))
