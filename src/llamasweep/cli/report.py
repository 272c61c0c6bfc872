"""`llamasweep report`: load runs, lay out one page, write it whole or not at all, print its path.

On request also each chart as a picture, a summary in markdown, and all of it without what tells who and where.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.report_files import (
    INDEX_NAME,
    REPORTS_VARIABLE,
    write_index,
    write_pictures,
    write_whole,
)
from llamasweep.errors import StoreError

if TYPE_CHECKING:
    from llamasweep.results.records import RunData

STDOUT = "-"
FOLDER = click.Path(path_type=Path, file_okay=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Extras:
    """What else to write. png, svg: folders. markdown: a file, `-` for stdout. is_redacted: leave out who and where."""

    png: Path | None = None
    svg: Path | None = None
    markdown: str | None = None
    is_redacted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """page: the report. index: the list of reports beside it, None outside of the folder of reports. markdown: its text."""

    page: Path
    index: Path | None
    pictures: tuple[Path, ...]
    markdown: str | None


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN…]")
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write; default reports/RUN.html."
)
@click.option(
    "--results", metavar="DIR", help="Folder of runs; default $LLAMASWEEP_RESULTS or results."
)
@click.option("--png", type=FOLDER, metavar="DIR", help="Also write each chart as a PNG there.")
@click.option("--svg", type=FOLDER, metavar="DIR", help="Also write each chart as an SVG there.")
@click.option(
    "--markdown",
    metavar="FILE",
    help="Also write a summary for a pull request; - prints it, and the page's path goes to stderr.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Leave host and user names, folders, private addresses and serial numbers out of everything.",
)
@click.option("--open", is_flag=True, help="Open the page in the browser afterwards.")
@click.option("--json", is_flag=True, help="Print paths, size and runs as JSON.")
def command(runs: tuple[str, ...], **given: Any) -> None:
    """Write the HTML report of one or more runs; without RUN, of the newest.

    RUN is a run id, its beginning, the name of a sweep (its newest run), or a folder. The page is one
    file that asks no server for anything. Its folder is reports/, or $LLAMASWEEP_REPORTS; index.html
    there lists all reports with their key figures.

    \b
    Example:
      llamasweep report
      llamasweep report quick --open
      llamasweep report 20261129T140000Z-quick 20261128T220000Z-quick --out compare.html
      llamasweep report quick --png pictures --redact        # to post in a chat or an issue
      llamasweep report quick --markdown - >> summary.md     # for a pull request
    """
    from llamasweep.store.locate import find_run, results_root

    extras = Extras(
        png=given["png"],
        svg=given["svg"],
        markdown=given["markdown"],
        is_redacted=given["redact"],
    )
    is_printed = extras.markdown == STDOUT
    if given["json"] and is_printed:
        raise click.UsageError("--json and --markdown - both want stdout; give markdown a file")
    root = results_root(given["results"])
    folders = list(dict.fromkeys(find_run(root, text) for text in runs or (None,)))
    written = write_all(folders, extras, out=given["out"])
    if is_printed:
        click.echo(written.markdown, nl=False)
    if given["json"]:
        click.echo(json.dumps(_as_json(written, folders, extras)))
    else:
        click.echo(written.page, err=is_printed)
    if given["open"]:
        click.launch(written.page.resolve().as_uri())


def write_report(
    folders: Sequence[Path], *, out: Path | None = None, reports: str | None = None
) -> Path:
    """The page of runs from their folders, with nothing beside it but the list of reports; where it is."""
    return write_all(folders, Extras(), out=out, reports=reports).page


def write_all(
    folders: Sequence[Path],
    extras: Extras,
    *,
    out: Path | None = None,
    reports: str | None = None,
) -> Written:
    """Render runs from their folders and write the page and what else was asked for.

    out: the file, None for `<reports>/<run id>.html`. reports: that folder, None for $LLAMASWEEP_REPORTS or `reports`.
    Raises StoreError where a run cannot be read or a file not be written.
    """
    from llamasweep.report.pictures import pictures
    from llamasweep.report.render import render_page
    from llamasweep.report.rows import rows_of
    from llamasweep.report.summary_markdown import summary_markdown
    from llamasweep.report.views import page

    loaded = _loaded(folders, extras)
    ids = [run.info.run_id for run in loaded]
    target = out or default_target(ids, reports, is_redacted=extras.is_redacted)
    is_listed = target.resolve().parent == reports_folder(reports).resolve()
    if is_listed and target.name == INDEX_NAME:
        raise StoreError(
            f"{target} is the list of reports, not the place of one",
            hint="Give another name with --out.",
        )
    view = page(loaded)
    write_whole(target, render_page(view), option=f"--out or {REPORTS_VARIABLE}")
    drawn = []
    if extras.png or extras.svg:
        drawn = write_pictures(pictures(view), png=extras.png, svg=extras.svg)
    text = None
    if extras.markdown:
        text = summary_markdown(view, rows_of(loaded))
        if extras.markdown != STDOUT:
            write_whole(Path(extras.markdown), text, option="--markdown")
    index = write_index(target.parent, view.version) if is_listed else None
    return Written(page=target, index=index, pictures=tuple(drawn), markdown=text)


def reports_folder(reports: str | None = None) -> Path:
    """The folder given, else $LLAMASWEEP_REPORTS, else `reports` here."""
    return Path(reports or os.environ.get(REPORTS_VARIABLE) or "reports").expanduser()


def default_target(
    run_ids: Sequence[str], reports: str | None = None, *, is_redacted: bool = False
) -> Path:
    """`reports/<run id>.html`; several runs: the first, and how many more. Nothing but a plain name leaves here."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", run_ids[0])[:100].strip("-") or "run"
    more = f"-and-{len(run_ids) - 1}-more" if len(run_ids) > 1 else ""
    redacted = "-redacted" if is_redacted else ""
    name = "index-run" if name + more + redacted == "index" else name
    return reports_folder(reports) / f"{name}{more}{redacted}.html"


def _loaded(folders: Sequence[Path], extras: Extras) -> Sequence[RunData]:
    from llamasweep.store.locate import load_run

    loaded = [load_run(folder) for folder in folders]
    if not extras.is_redacted:
        return loaded
    from llamasweep.report.redact import redacted

    return redacted(loaded, own_names())


def own_names() -> tuple[str, ...]:
    """What this machine and the person at it are called, as far as the system tells."""
    import getpass
    import platform

    names = [platform.node(), Path.home().name]
    try:
        names.append(getpass.getuser())
    except (KeyError, OSError, ImportError):  # no entry for this user, or none can be had
        names.append("")
    return tuple(name for name in names if name)


def _as_json(written: Written, folders: Sequence[Path], extras: Extras) -> dict[str, object]:
    markdown = str(Path(extras.markdown).resolve()) if extras.markdown else None
    return {
        "path": str(written.page.resolve()),
        "bytes": written.page.stat().st_size,
        "runs": [folder.name for folder in folders],
        "index": str(written.index.resolve()) if written.index else None,
        "pictures": [str(path.resolve()) for path in written.pictures],
        "markdown": markdown,
    }
