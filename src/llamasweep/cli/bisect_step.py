"""`llamasweep bisect-step`: one step for `git bisect run`, which reads the exit code and nothing else.

That is why every error ends with a code that stops the search: any other would call the commit slow.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.bisect import begin_from, install_teller, measuring_options
from llamasweep.cli.run import run_watched
from llamasweep.cli.terminal import printable
from llamasweep.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_STEP_ABORT,
    EXIT_STEP_BAD,
    EXIT_STEP_SKIP,
    BrokenBuildError,
    LlamasweepError,
)
from llamasweep.units import counted

if TYPE_CHECKING:
    from llamasweep.builds.build_line import BuildLine
    from llamasweep.run.bisect_steps import StepTold
    from llamasweep.run.campaign import RunOptions
    from llamasweep.run.progress import Progress
    from llamasweep.sweep.spec import SweepSpec

    _Answered = tuple[StepTold | None, str | None]

HEAD = "HEAD"
_CODES = {
    "good": EXIT_OK,
    "bad": EXIT_STEP_BAD,
    "hang": EXIT_STEP_BAD,
    "skip": EXIT_STEP_SKIP,
    "undecided": EXIT_STEP_SKIP,
}


class StepCommand(click.Command):
    """A command of which every error, known or not, stops a `git bisect run`."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Options that are wrong stop the search, too."""
        try:
            return super().make_context(*args, **more)
        except click.ClickException as problem:
            problem.exit_code = EXIT_STEP_ABORT  # type: ignore[misc]
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; what goes wrong ends with the code that stops the search."""
        try:
            return super().invoke(ctx)
        except (LlamasweepError, click.ClickException) as problem:
            problem.exit_code = EXIT_STEP_ABORT  # type: ignore[misc]
            raise
        except (click.Abort, click.exceptions.Exit, KeyboardInterrupt):
            raise
        except Exception:  # noqa: BLE001  (a traceback's own exit code, 1, would call the commit slow)
            traceback.print_exc()
            sys.exit(EXIT_STEP_ABORT)


@click.command("bisect-step", cls=StepCommand)
@measuring_options
@click.option(
    "--build", "build_name", metavar="NAME", help="The build to judge: a name, number or path."
)
@click.option(
    "--git",
    "checkout",
    metavar="DIR",
    help="Judge HEAD of this checkout (default: the one here), compiled in the cache; A and B are commits.",
)
def command(**given: Any) -> None:
    """Say whether one build is as fast as A or as slow as B, for `git bisect run`.

    Without --build it compiles HEAD of the checkout in llamasweep's cache; with --build it takes what you compiled, and A
    and B are builds, too. The ends are measured at the first call; each step runs in rounds with both ends beside it until it
    is clear. A step that was measured is not measured again, so a search may be stopped and started anew.

    \b
    Exit code:
      0    good: as fast as A
      1    bad: slower than A (a hang counts as slow)
      125  skip: it does not compile or crashes, or is undecided after all 40 rounds
      130  stopped
      255  anything else, so that the search stops: wrong options, another sweep at work, time is up,
           or B is not slower than A for sure

    \b
    Examples:
      git bisect start master b10488
      git bisect run llamasweep bisect-step ~/speed.yaml --good b10488 --bad master --results ~/bisected
      git bisect run sh -c 'cmake --build build -t llama-bench || exit 125;
        llamasweep bisect-step ~/speed.yaml --good 10488 --bad 11434 --build build/bin/llama-bench'
    """
    from llamasweep.run.bisect import run_bisect_step

    def step(spec: SweepSpec, options: RunOptions, progress: Progress, on_synth: Any) -> _Answered:
        try:
            asked = _asked(given, progress)
        except BrokenBuildError as problem:
            return _skipped(given["build_name"], problem.message), None
        return run_bisect_step(spec, options, asked, progress, on_synth)

    spec, options = begin_from(given)
    answered: _Answered = run_watched(spec, options, step, is_plain=given["plain"])  # type: ignore[assignment]
    told, why = answered
    if told is None:
        click.echo(f"No answer: {why}.", err=True)
        sys.exit(EXIT_INTERRUPTED if why == "stopped" else EXIT_STEP_ABORT)
    code = _CODES[told.outcome]
    _tell(told, code, is_json=given["is_json"])
    sys.exit(code)


def _asked(given: dict[str, Any], progress: Progress) -> tuple[BuildLine, str]:
    """The ends with the build, and its name. Raises BrokenBuildError where that build cannot be used."""
    from llamasweep.builds.backends import parse_definitions
    from llamasweep.builds.build_line import single_line
    from llamasweep.builds.git_line import git_line

    if given["build_name"] and given["checkout"]:
        raise click.UsageError("--build and --git both name what is judged; give one of them")
    if given["build_name"]:
        line = single_line(given["good"], given["build_name"], given["bad"])
        return line, line.names[1]
    commits = git_line(
        Path(given["checkout"] or "."),
        given["good"],
        given["bad"],
        inner=[HEAD],
        backend=given["backend"],
        extra=parse_definitions(given["defined"]),
        on_progress=install_teller(progress),
    )
    return commits, commits.name_of(HEAD)


def _skipped(name: str, reason: str) -> StepTold:
    from llamasweep.run.bisect_steps import StepTold

    return StepTold(name=name, outcome="skip", reason=reason)


def _tell(told: StepTold, code: int, *, is_json: bool) -> None:
    from llamasweep.cli.bisect_lines import change_words, plain_step

    if is_json:
        click.echo(json.dumps({**plain_step(told), "exit_code": code}, indent=2))
        return
    words = {EXIT_OK: "good", EXIT_STEP_BAD: "bad", EXIT_STEP_SKIP: "skip"}[code]
    parts = [f"{told.name}: {words}"]
    if told.outcome in ("hang", "undecided"):
        parts.append(f"it {'hangs' if told.outcome == 'hang' else 'is undecided'}")
    if told.judged is not None and told.judged.to_good.ratio is not None:
        parts.append(f"{change_words(told.judged.to_good)} against the good end")
    if told.n_rounds:
        parts.append(counted(told.n_rounds, "round"))
    if told.reason:
        parts.append(told.reason.splitlines()[0])
    click.echo(printable(", ".join(parts)))
