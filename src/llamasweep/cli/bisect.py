"""`llamasweep bisect`: which build made it slower, over builds that are here, those on PyPI, or commits of a checkout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.run import run_watched, seconds_of
from llamasweep.cli.sweep_options import make_wishes
from llamasweep.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNDECIDED, UsageError

if TYPE_CHECKING:
    from llamasweep.builds.build_line import BuildLine
    from llamasweep.run.bisect import BisectFound
    from llamasweep.run.campaign import RunOptions
    from llamasweep.run.progress import Progress
    from llamasweep.sweep.spec import SweepSpec

_BACKENDS = click.Choice(["auto", "cpu", "cuda", "vulkan", "hip", "metal"])
_MEASURING_OPTIONS = (
    click.argument("sweep", type=click.Path(dir_okay=False)),
    click.option("--good", required=True, metavar="A", help="The older build, which is fast."),
    click.option("--bad", required=True, metavar="B", help="The newer build, which is slow."),
    click.option(
        "--results",
        metavar="DIR",
        help="Folder of results (default: ./results or $LLAMASWEEP_RESULTS).",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="KEY=VALUE",
        help="Only matching cells, such as test=tg128; may be repeated.",
    ),
    click.option("--seed", type=click.IntRange(min=0), help="Seed of the order within rounds."),
    click.option("--fresh", is_flag=True, help="Begin a new run instead of continuing the newest."),
    click.option(
        "--max-time", metavar="TIME", help="Stop after this time; the rest can be resumed."
    ),
    click.option(
        "--only-if-quiet",
        is_flag=True,
        help="Do not start while other programs keep the machine busy.",
    ),
    click.option(
        "--backend", type=_BACKENDS, default="auto", show_default=True, help="What is compiled for."
    ),
    click.option(
        "--define",
        "defined",
        multiple=True,
        metavar="NAME=VALUE",
        help="For CMake, where it compiles.",
    ),
    click.option("--plain", is_flag=True, help="Plain lines instead of the live view."),
    click.option("--json", "is_json", is_flag=True, help="Print JSON; progress goes to stderr."),
)


def measuring_options(function: Any) -> Any:
    """What `bisect` and `bisect-step` share."""
    for option in reversed(_MEASURING_OPTIONS):
        function = option(function)
    return function


@click.command("bisect")
@measuring_options
@click.option(
    "--among", metavar="GLOB", help="Only registered builds whose name matches, such as 'mine-*'."
)
@click.option(
    "--git",
    "checkout",
    metavar="DIR",
    help="Commits of this llama.cpp checkout, which is not changed; A and B are commits. Compiles.",
)
@click.option(
    "--pypi",
    "is_pypi",
    is_flag=True,
    help="All versions on PyPI from A to B; fetches and compiles.",
)
def command(**given: Any) -> None:
    """Find the build that made a sweep's cells slower, and say how sure that is.

    Both ends are measured first; the cell that is slower most clearly decides. Then builds between them are measured in
    rounds with both ends beside, until each is clear. One that does not compile or crashes is skipped, one that hangs counts
    as slow, and what stays undecided widens the answer to a range. Fresh rounds confirm the answer. Killed or stopped,
    the same command continues and measures nothing twice.

    Builds are those registered here from A to B (`llamasweep builds list`), by number and else in the order of adding;
    with --pypi all versions on PyPI, which are fetched and compiled when they are asked for; with --git the commits of
    your checkout, each compiled in llamasweep's cache from a copy.

    \b
    Exit code:
      0    an answer, confirmed by fresh rounds (a build, or a range)
      4    no sure answer: B is not slower for sure, the answer is not confirmed, or time is up
      130  stopped; others as everywhere (2 usage, 3 a build, 4 also another sweep at work, 5 results)

    \b
    Examples:
      llamasweep bisect sweeps/builds.yaml --good 10488 --bad 11434 --pypi --only test=tg128
      llamasweep bisect sweeps/builds.yaml --git ~/llama.cpp --good b10488 --bad master
      llamasweep bisect sweeps/builds.yaml --good mine-1 --bad mine-9 --among 'mine-*'
    """
    from llamasweep.cli.bisect_lines import bisect_lines, plain_bisection
    from llamasweep.run.bisect import run_bisect

    def search(
        spec: SweepSpec, options: RunOptions, progress: Progress, on_synth: Any
    ) -> BisectFound:
        return run_bisect(spec, options, line_of(given, progress), progress, on_synth)

    spec, options = begin_from(given)
    found: BisectFound = run_watched(spec, options, search, is_plain=given["plain"])  # type: ignore[assignment]
    code = exit_code(found)
    if given["is_json"]:
        click.echo(json.dumps(plain_bisection(found, code), indent=2))
    else:
        for line in bisect_lines(found):
            click.echo(line)
    sys.exit(code)


def begin_from(given: dict[str, Any]) -> tuple[SweepSpec, RunOptions]:
    """The sweep and how to run it."""
    from llamasweep.run.campaign import RunOptions
    from llamasweep.store.locate import results_root
    from llamasweep.sweep_file import load

    options = RunOptions(
        results_root=results_root(given["results"]).absolute(),
        wishes=make_wishes({**given, "builds": ()}),
        fresh=given["fresh"],
        only_if_quiet=given["only_if_quiet"],
        max_time_s=seconds_of(given["max_time"]),
    )
    return load(Path(given["sweep"])), options


def line_of(given: dict[str, Any], progress: Progress) -> BuildLine:
    """The builds from the good to the bad one, from where the options say."""
    from llamasweep.builds.backends import parse_definitions
    from llamasweep.builds.build_line import pypi_line, registered_line
    from llamasweep.builds.git_line import git_line

    made: dict[str, Any] = {
        "backend": given["backend"],
        "extra": parse_definitions(given["defined"]),
        "on_progress": install_teller(progress),
    }
    chosen = [name for name in ("among", "checkout", "is_pypi") if given[name]]
    if len(chosen) > 1:
        raise UsageError(
            "--among, --git and --pypi say different things about where builds are from",
            hint="Give one of them.",
        )
    if given["is_pypi"]:
        progress.note("asking PyPI which versions there are")
        return pypi_line(given["good"], given["bad"], **made)
    if given["checkout"]:
        return git_line(Path(given["checkout"]), given["good"], given["bad"], **made)
    return registered_line(given["good"], given["bad"], among=given["among"])


def install_teller(progress: Progress) -> Any:
    """A sentence when a step of fetching and compiling begins."""
    told: set[str] = set()

    def tell(event: Any) -> None:
        if event.text not in told:
            told.add(event.text)
            progress.note(event.text)

    return tell


def exit_code(found: BisectFound) -> int:
    """As the help says."""
    if found.stopped_by == "signal":
        return EXIT_INTERRUPTED
    return EXIT_OK if found.state == "found" else EXIT_UNDECIDED
