"""`llamasweep compare`: is B slower than A, by how much, and what else differs?"""

from __future__ import annotations

import sys
from typing import Any

import click

from llamasweep.cli.gate import gate_options, tell, telling_of
from llamasweep.cli.results import RESULTS_OPTION


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--run", metavar="RUN", help="A and B are builds of this run.")
@RESULTS_OPTION
@gate_options
def command(a: str, b: str, run: str | None, **given: Any) -> None:
    """Hold B against A, cell by cell: what else differs, then the change with its interval and verdict.

    A and B are two builds of one run (of the newest run that has both, or of --run), two runs (a run id, its beginning,
    the name of a sweep, a folder), RUN:BUILD, or a file of `llamasweep baseline save`. Builds of one run are paired by
    round; anything else is weaker and marked so. docs/regressions.md says how to read an interval.

    \b
    Example:
      llamasweep compare 10488 11434
      llamasweep compare 20261128T2200 20261129T2200 --gate
      llamasweep compare baseline.json nightly --gate --strict --junit junit.xml --markdown summary.md
    """
    from llamasweep.run.sides import find_sides
    from llamasweep.store.locate import results_root

    telling = telling_of(given)
    side_a, side_b = find_sides(results_root(given["results"]), a, b, run=run)
    sys.exit(tell(side_a, side_b, telling))
