"""Options that `plan` and `run` share, so that a plan is what the run would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from llamasweep.run.prepare import Wishes

_RESULTS_HELP = "Folder of results (default: ./results or $LLAMASWEEP_RESULTS)."
_BUILD_HELP = "Use this build instead of the sweep's; may be repeated."
_ONLY_HELP = "Only matching cells, such as depth=4096; may be repeated."
_SHARED_OPTIONS = (
    click.argument("sweep", type=click.Path(dir_okay=False)),
    click.option("--results", metavar="DIR", help=_RESULTS_HELP),
    click.option("--build", "builds", multiple=True, metavar="NAME", help=_BUILD_HELP),
    click.option("--only", multiple=True, metavar="KEY=VALUE", help=_ONLY_HELP),
    click.option(
        "--seed", type=click.IntRange(min=0), help="Seed of the order of interleaved rounds."
    ),
)


def sweep_options(function: Any) -> Any:
    """The sweep file, what of it is wanted, and where results are."""
    for option in reversed(_SHARED_OPTIONS):
        function = option(function)
    return function


def make_wishes(given: dict[str, Any]) -> Wishes:
    """What the command line changes of the sweep."""
    from llamasweep.run.prepare import Wishes, parse_only
    from llamasweep.sweep.parameters import CANONICAL

    return Wishes(
        build_names=given["builds"], only=parse_only(given["only"], CANONICAL), seed=given["seed"]
    )
