"""`llamasweep run`: measure a sweep; started again, it continues."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from llamasweep.cli.sweep_options import make_wishes, sweep_options
from llamasweep.errors import (
    EXIT_CELLS_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EngineNotFoundError,
    UsageError,
)

if TYPE_CHECKING:
    from llamasweep.run.campaign import RunOptions
    from llamasweep.run.prepare import Wishes
    from llamasweep.run.runner import RunSummary
    from llamasweep.sweep.spec import SweepSpec

FIRST_BUILD = 11434
"""What `--get-engine` installs where there is no engine and the sweep names none."""


@click.command()
@sweep_options
@click.option(
    "--fresh",
    is_flag=True,
    help="Begin a new run instead of continuing the newest one of this sweep.",
)
@click.option("--retry-failed", is_flag=True, help="Try cells that failed before again.")
@click.option(
    "--max-time", metavar="TIME", help="Stop after this time, such as 90m; the rest can be resumed."
)
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--strict", is_flag=True, help="Exit code 1 for unsupported cells too.")
@click.option(
    "--only-if-quiet", is_flag=True, help="Do not start while other programs keep the machine busy."
)
@click.option(
    "--get-engine",
    is_flag=True,
    help="Install llama.cpp first if no llama-bench is here (downloads its source).",
)
@click.option(
    "--reports",
    metavar="DIR",
    help="Folder of reports (default: ./reports or $LLAMASWEEP_REPORTS).",
)
@click.option("--no-report", is_flag=True, help="Do not write the HTML report at the end.")
@click.option("--plain", is_flag=True, help="Plain lines instead of the live view.")
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Print a JSON summary on stdout; progress goes to stderr.",
)
def command(**given: Any) -> None:
    """Measure a sweep; started again, it continues where it stopped.

    Every finished cell is kept, whatever happens. Ctrl-C once stops and keeps everything, twice stops at once.

    \b
    Examples:
      llamasweep run sweeps/quick.yaml
      llamasweep run sweeps/overnight.yaml --max-time 8h
      llamasweep run sweeps/threads.yaml --only depth=0 --fresh
    """
    from llamasweep.run.campaign import RunOptions, run_sweep
    from llamasweep.store.locate import results_root
    from llamasweep.sweep_file import load

    spec = load(Path(given["sweep"]))
    wishes = make_wishes(given)
    if given["get_engine"]:
        _get_engine(spec, wishes)
    if given["dry_run"]:
        from llamasweep.cli.plan import show_plan

        show_plan(spec, wishes, results=given["results"], is_json=given["is_json"])
        return
    options = RunOptions(
        results_root=results_root(given["results"]).absolute(),
        wishes=wishes,
        fresh=given["fresh"],
        retry_failed=given["retry_failed"],
        only_if_quiet=given["only_if_quiet"],
        max_time_s=seconds_of(given["max_time"]),
    )
    summary = run_watched(spec, options, run_sweep, is_plain=given["plain"])
    report = None if given["no_report"] else _write_report(summary, given["reports"])
    _tell(summary, report, given["sweep"], is_json=given["is_json"])
    sys.exit(exit_code(summary, strict=given["strict"]))


def seconds_of(max_time: str | None) -> float | None:
    """The seconds of --max-time, None for none. Raises UsageError."""
    from llamasweep.units import parse_seconds

    try:
        return None if max_time is None else parse_seconds(max_time)
    except ValueError as problem:
        raise UsageError(f"--max-time: {problem}") from None


def run_watched(
    spec: SweepSpec, options: RunOptions, run_sweep: Any, *, is_plain: bool
) -> RunSummary:
    """Run a sweep with its progress on stderr: a live view on a terminal, else plain lines."""
    from rich.console import Console

    from llamasweep.cli.progress_lines import PlainProgress
    from llamasweep.cli.terminal import SteadyStream

    console = Console(file=cast("TextIO", SteadyStream(sys.stderr)))
    if is_plain or not console.is_terminal:
        progress = PlainProgress()
        return run_sweep(spec, options, progress, _synth_teller(progress))  # type: ignore[no-any-return]
    from llamasweep.cli.progress_live import LiveProgress

    with LiveProgress(spec.name, console) as live:
        return run_sweep(spec, options, live, live.generating)  # type: ignore[no-any-return]


def _synth_teller(progress: Any) -> Any:
    told: set[str] = set()

    def tell(label: str, _n_done: int, n_all: int) -> None:
        from llamasweep.units import format_bytes

        if label not in told:
            told.add(label)
            progress.note(f"generating the model {label} ({format_bytes(n_all)})")

    return tell


def _get_engine(spec: SweepSpec, wishes: Wishes) -> None:
    """Install what is missing: the builds that the sweep names by number, or the first one."""
    from llamasweep.builds.registry import Registry
    from llamasweep.cli.builds import install_build

    registry = Registry()
    names = wishes.build_names or spec.builds
    if not names:
        try:
            registry.default()
        except EngineNotFoundError:
            install_build(FIRST_BUILD)
        return
    for name in names:
        try:
            registry.get(name)
        except EngineNotFoundError:
            if not name.lstrip("b").isdigit():
                raise
            install_build(int(name.lstrip("b")))


def _write_report(summary: RunSummary, reports: str | None) -> Path | None:
    from llamasweep.cli.report import write_report

    return write_report([summary.run_dir], out=None, reports=reports)


def exit_code(summary: RunSummary, *, strict: bool) -> int:
    """130 when a signal stopped it, 1 when cells failed (or, strictly, cannot be measured), else 0."""
    if summary.stopped_by == "signal":
        return EXIT_INTERRUPTED
    if summary.n_failed or (strict and summary.counts.get("unsupported", 0)):
        return EXIT_CELLS_FAILED
    return EXIT_OK


def _tell(summary: RunSummary, report: Path | None, sweep: str, *, is_json: bool) -> None:
    if is_json:
        click.echo(json.dumps(_as_json(summary, report), indent=2))
        return
    counts = summary.counts
    parts = [f"{counts.get('ok', 0)} measured"]
    parts += [f"{counts[s]} {s.replace('_', ' ')}" for s in counts if s != "ok"]
    click.echo(f"\n{', '.join(parts)}.")
    if counts.get("unsupported"):
        click.echo("Unsupported cells cannot be run by this build or model; the report says why.")
    if summary.n_left:
        why = "time is up" if summary.stopped_by == "time" else "stopped"
        click.echo(
            f"{summary.n_left} cells are left ({why}). Continue with: llamasweep run {sweep}"
        )
    elif not summary.n_measured:
        click.echo("Everything was measured already; --fresh measures again.")
    if summary.n_failed:
        click.echo("Try the failed cells again with --retry-failed.")
    _tell_findings(summary)
    click.echo(f"Parquet: {summary.run_dir / 'cells.parquet'}")
    if report is not None:
        click.echo(f"Report:  {report}")


def _tell_findings(summary: RunSummary) -> None:
    from llamasweep.cli.findings_lines import findings_lines, stream_lines, turn_lines
    from llamasweep.store.locate import load_run

    run = load_run(summary.run_dir)
    for line in (*turn_lines(run), *stream_lines(run), *findings_lines(run)):
        click.echo(f"- {line}")


def _as_json(summary: RunSummary, report: Path | None) -> dict[str, Any]:
    return {
        "run_id": summary.run_id,
        "run_dir": str(summary.run_dir),
        "cells": str(summary.run_dir / "cells.parquet"),
        "report": None if report is None else str(report),
        "counts": summary.counts,
        "n_measured": summary.n_measured,
        "n_left": summary.n_left,
        "stopped_by": summary.stopped_by,
        "notes": list(summary.notes),
    }
