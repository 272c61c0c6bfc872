"""`llamasweep history`: each cell along the builds, over all results, and since which build it is slower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llamasweep.cli.results import RESULTS_OPTION
from llamasweep.cli.terminal import printable
from llamasweep.errors import StoreError, UsageError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from llamasweep.report.history import Series
    from llamasweep.results.annotations import Annotation
    from llamasweep.results.records import RunData

_THIN = "\u202f"


@click.command("history")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="PATTERN",
    help="Only these models, such as 'Qwen3*'.",
)
@click.option(
    "--build", "builds", multiple=True, metavar="PATTERN", help="Only these builds, such as 'b11*'."
)
@click.option(
    "--reports", metavar="DIR", help="Folder of the page; default $LLAMASWEEP_REPORTS or reports."
)
@click.option(
    "--annotate",
    "annotations",
    nargs=2,
    multiple=True,
    metavar="BUILD|DATE TEXT",
    help="Keep a note at a build or a day (2026-11-29) first; an empty TEXT takes it away.",
)
@click.option("--no-page", is_flag=True, help="Do not write the page.")
@RESULTS_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    models: tuple[str, ...],
    builds: tuple[str, ...],
    annotations: tuple[tuple[str, str], ...],
    reports: str | None,
    no_page: bool,
    results: str | None,
    as_json: bool,
) -> None:
    """Each cell along the builds over all results: steps, spikes and drifts, each with its size and interval.

    Builds stand in the order of their numbers. Speeds are not compared across a change of the machine, its kernel, governor or
    GPU driver. A step needs three builds on either side. reports/history.html draws every series, with the runs behind it.
    Notes are kept in history-notes.json beside the runs, and stand in the table, the JSON and the page.

    \b
    Example:
      llamasweep history
      llamasweep history --annotate b11434 'new CMake preset' --annotate 2026-11-20 'more memory'
      llamasweep history --model 'Qwen3*' --json --no-page
    """
    from llamasweep.report.history import history, plain_history
    from llamasweep.store.locate import results_root

    root = results_root(results)
    runs = _runs(root)
    notes = _notes(root, runs, annotations)
    found = history(runs, models=models, builds=builds, notes=notes)
    if not found:
        which = " that --model and --build leave" if models or builds else ""
        raise StoreError(
            f"no cell in {root}{which} was measured on two builds",
            hint="Measure a sweep on several: `llamasweep ab SWEEP --builds A B`, or --build with `run`.",
        )
    page = None if no_page else _write_page(found, reports)
    if as_json:
        told = {
            "page": None if page is None else str(page),
            "notes": [{"at": n.at, "text": n.text, "written_at": n.written_at} for n in notes],
            "series": plain_history(found),
        }
        click.echo(json.dumps(told, indent=2))
        return
    for line in _lines(found, notes):
        click.echo(_plain(line))
    if page is not None:
        click.echo(page)


def _lines(found: Sequence[Series], notes: Sequence[Annotation]) -> Iterator[str]:
    """The sentence, all notes once, then every series with what changed in it, and the notes again beside changes."""
    from llamasweep.report.history import note_line, series_lines, summary

    yield summary(found)
    for note in notes:
        yield note_line(note.at, note)
    for one in found:
        lines = series_lines(one, has_notes=bool(one.changes))
        n = sum(point.median_tps is not None for point in one.points)
        first, last = one.points[0].build, one.points[-1].build
        unchanged = "" if one.changes else f", {_unchanged(one)}"
        yield f"{one.name}: {n} builds, {first} to {last}{unchanged}"
        yield from (f"  {line}" for line in lines)


def _unchanged(series: Series) -> str:
    return "too few for a step" if series.is_too_short_for_a_step else "no change found"


def _notes(
    root: Path, runs: Sequence[RunData], new: Sequence[tuple[str, str]]
) -> tuple[Annotation, ...]:
    """The notes beside the runs, with the new ones kept. Raises UsageError for a build that was never measured."""
    from datetime import UTC, datetime

    from llamasweep.results.annotations import annotated
    from llamasweep.store.notes import change_notes, load_notes

    if not new:
        return load_notes(root)
    now = datetime.now(UTC).isoformat(timespec="seconds")

    def with_new(notes: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
        for at, text in new:
            if text.strip():
                _check_place(at, runs)
            notes = annotated(notes, at, text, now)
        return notes

    return change_notes(root, with_new)


def _check_place(at: str, runs: Sequence[RunData]) -> None:
    from llamasweep.results.annotations import Annotation, is_day

    wanted = Annotation(at=at, text="")
    rows = (row for run in runs for row in run.attempts)
    if is_day(at) or any(wanted.is_of_build(r.build_label or "", r.build_number) for r in rows):
        return
    raise UsageError(
        f"no result is of a build {quoted(at)}, and it is no day",
        hint="Write a build as `llamasweep history` names it, or a day as 2026-11-29.",
    )


def _plain(text: str) -> str:
    return printable(text.replace(_THIN, " "))


def _runs(root: Path) -> Sequence[RunData]:
    """All runs that can be read; the others are told on stderr."""
    from llamasweep.store.locate import list_runs, load_rows

    found = []
    for entry in list_runs(root):
        if entry.info is None:
            click.echo(printable(f"left out {entry.run_id}: {entry.problem}"), err=True)
            continue
        try:
            found.append(load_rows(entry.path))
        except StoreError as problem:
            click.echo(printable(f"left out {entry.run_id}: {problem.message}"), err=True)
    return found


def _write_page(found: Sequence[Series], reports: str | None) -> Path:
    from importlib.metadata import version

    from llamasweep.cli.report import reports_folder
    from llamasweep.cli.report_files import HISTORY_NAME, write_whole
    from llamasweep.report.history_page import render_history

    folder = reports_folder(reports)
    names = {path.name for path in folder.glob("*.html")} if folder.is_dir() else set()
    target = folder / HISTORY_NAME
    write_whole(target, render_history(found, version("llamasweep"), names), option="--reports")
    return target
