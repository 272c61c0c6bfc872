"""The command line. One module per verb, imported when it is used; the only place that prints or exits."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

import click

from llamasweep.cli.terminal import printable, printable_lines
from llamasweep.errors import EXIT_INTERRUPTED, EXIT_STORE, LlamasweepError

_SHOWN_NAME_CHARS = 200
VERBS: dict[str, tuple[str, str]] = {
    "doctor": ("llamasweep.cli.doctor", "What is on this machine, and what is missing."),
    "plan": ("llamasweep.cli.plan", "What a sweep would measure, and how long it would take."),
    "run": ("llamasweep.cli.run", "Measure a sweep; started again, it continues."),
    "status": ("llamasweep.cli.status", "How far a run is."),
    "report": ("llamasweep.cli.report", "Write the HTML report of one or more runs."),
    "ab": (
        "llamasweep.cli.ab",
        "Two builds by turns until each cell is clear: slower, faster or the same.",
    ),
    "compare": (
        "llamasweep.cli.compare",
        "Is B slower than A? Builds of a run, two runs, or a baseline.",
    ),
    "baseline": (
        "llamasweep.cli.baseline",
        "The speeds of a build as a file to commit, and runs held against it.",
    ),
    "history": (
        "llamasweep.cli.history",
        "Each cell along the builds: since when it is slower.",
    ),
    "bisect": (
        "llamasweep.cli.bisect",
        "Which build made it slower, with how sure that is.",
    ),
    "bisect-step": (
        "llamasweep.cli.bisect_step",
        "One step for `git bisect run`: is this build fast, slow, or to be skipped?",
    ),
    "noise": (
        "llamasweep.cli.noise",
        "A build against itself: which differences this machine makes by itself.",
    ),
    "best": ("llamasweep.cli.best", "The settings that measured best, as commands to paste."),
    "feel": (
        "llamasweep.cli.feel",
        "What one person feels of a model: waiting and the flow of words.",
    ),
    "results": ("llamasweep.cli.results", "List, show, export and prune results."),
    "builds": ("llamasweep.cli.builds", "List, add and install llama.cpp builds."),
    "models": ("llamasweep.cli.models", "Find, inspect and generate models."),
    "ceiling": ("llamasweep.cli.ceiling", "How fast a model can be on a device, and why."),
    "fit": ("llamasweep.cli.fit", "With which settings a model fits, and how fast it then is."),
    "whatif": ("llamasweep.cli.whatif", "Several devices side by side for one model."),
    "calibrate": (
        "llamasweep.cli.calibrate",
        "Measure what this machine's memory, disk and CPU can do.",
    ),
    "devices": ("llamasweep.cli.devices", "Bandwidth and peak rates of known devices."),
    "schema": ("llamasweep.cli.schema", "Print the JSON Schema of sweep files."),
}
"""verb -> (module that holds a click command named `command`, one-line help)."""


class LazyGroup(click.Group):
    """A group whose verbs are imported only when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in VERBS:
            return None
        command: Any = importlib.import_module(VERBS[name][0]).command
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The verbs with their one line, without importing any of them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="llamasweep")
def app() -> None:
    """Benchmark sweeps for people who run language models on their own machines.

    \b
    Example:
      llamasweep run sweeps/quick.yaml
      llamasweep report
    """


def main() -> None:
    """Run the command line; the single place where the process ends."""
    try:
        with _polite_signals(), _told_warnings():
            app.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except OSError as problem:
        click.echo(f"llamasweep: {_system_words(problem)}", err=True)
        sys.exit(EXIT_STORE)
    except LlamasweepError as problem:
        click.echo(f"llamasweep: {printable_lines(problem.message)}", err=True)
        if problem.hint:
            click.echo(f"  {printable_lines(problem.hint)}", err=True)
        sys.exit(problem.exit_code)


@contextlib.contextmanager
def _told_warnings() -> Iterator[None]:
    """What llamasweep itself warns of, such as a part of the results that cannot be read, as a sentence on stderr."""
    usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__module__.startswith("llamasweep."):
            click.echo(f"Warning: {printable(message)}", err=True)
        else:
            usual(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


@contextlib.contextmanager
def _polite_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end every verb as Ctrl-C does, so that what is half written is cleared away; a run refines this."""
    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _system_words(problem: OSError) -> str:
    """What the system refused, where no room had better words for it."""
    why = problem.strerror or str(problem) or type(problem).__name__
    if problem.filename is None:
        return f"the system refuses: {why}"
    return f"{printable(problem.filename)[:_SHOWN_NAME_CHARS]}: {why}"
