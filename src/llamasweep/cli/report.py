"""`llamasweep report`: load runs, lay out one page, write it whole or not at all, print its path."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import click

from llamasweep.errors import StoreError

REPORTS_VARIABLE = "LLAMASWEEP_REPORTS"


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN…]")
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write; default reports/RUN.html."
)
@click.option(
    "--results", metavar="DIR", help="Folder of runs; default $LLAMASWEEP_RESULTS or results."
)
@click.option("--open", "do_open", is_flag=True, help="Open the page in the browser afterwards.")
@click.option("--json", "as_json", is_flag=True, help="Print path, size and runs as JSON.")
def command(
    runs: tuple[str, ...], out: Path | None, results: str | None, do_open: bool, as_json: bool
) -> None:
    """Write the HTML report of one or more runs; without RUN, of the newest.

    RUN is a run id, its beginning, the name of a sweep (its newest run), or a folder. The page is one
    file that asks no server for anything. Its folder is reports/, or $LLAMASWEEP_REPORTS.

    \b
    Example:
      llamasweep report
      llamasweep report quick --open
      llamasweep report 20261129T140000Z-quick 20261128T220000Z-quick --out compare.html
    """
    from llamasweep.store.locate import find_run, results_root

    root = results_root(results)
    folders = list(dict.fromkeys(find_run(root, text) for text in runs or (None,)))
    target = write_report(folders, out=out)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "path": str(target.resolve()),
                    "bytes": target.stat().st_size,
                    "runs": [folder.name for folder in folders],
                }
            )
        )
    else:
        click.echo(target)
    if do_open:
        click.launch(target.resolve().as_uri())


def write_report(
    folders: Sequence[Path], *, out: Path | None = None, reports: str | None = None
) -> Path:
    """Render runs from their folders and write the page; where it is.

    out: the file, None for `<reports>/<run id>.html`. reports: that folder, None for $LLAMASWEEP_REPORTS or `reports`.
    Raises StoreError where a run cannot be read or the page not be written.
    """
    from llamasweep.report.render import render_report
    from llamasweep.store.locate import load_run

    loaded = [load_run(folder) for folder in folders]
    target = (
        out if out is not None else default_target([run.info.run_id for run in loaded], reports)
    )
    _write(target, render_report(loaded))
    return target


def default_target(run_ids: Sequence[str], reports: str | None = None) -> Path:
    """`reports/<run id>.html`; several runs: the first, and how many more. Nothing but a plain name leaves here."""
    folder = Path(reports or os.environ.get(REPORTS_VARIABLE) or "reports").expanduser()
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", run_ids[0])[:100].strip("-") or "run"
    more = f"-and-{len(run_ids) - 1}-more" if len(run_ids) > 1 else ""
    return folder / f"{name}{more}.html"


def _write(target: Path, html: str) -> None:
    """Under a temporary name first, so that a page on disk is always a whole one."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(html, encoding="utf-8")
        draft.replace(target)
    except OSError as problem:
        draft.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write the report to {target}: {problem.strerror}",
            hint=f"Give another place with --out or {REPORTS_VARIABLE}.",
        ) from problem
