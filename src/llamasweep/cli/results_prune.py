"""`llamasweep results prune`: what would go, with sizes; and with --yes, its going."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from llamasweep.errors import UsageError, quoted

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    """Something that can go. kind: run, model or build."""

    kind: str
    name: str
    n_bytes: int
    remove: Callable[[], object]


@click.command("prune")
@click.option(
    "--keep", type=click.IntRange(min=0), metavar="N", help="Runs: all but the newest N go."
)
@click.option("--older-than", metavar="30d", help="Runs: those that started longer ago go.")
@click.option("--models", is_flag=True, help="Models that llamasweep generated go too.")
@click.option("--builds", is_flag=True, help="Builds that llamasweep installed go too.")
@click.option("--yes", is_flag=True, help="Do it; without this it is only shown.")
@click.option(
    "--results", metavar="DIR", help="Folder of runs; default $LLAMASWEEP_RESULTS or results."
)
def prune(
    keep: int | None,
    older_than: str | None,
    models: bool,
    builds: bool,
    yes: bool,
    results: str | None,
) -> None:
    """Remove runs, generated models and installed builds; shows first what would go.

    Nothing outside the folder of runs and llamasweep's own cache is touched.

    \b
    Example:
      llamasweep results prune --older-than 30d
      llamasweep results prune --keep 20 --models --builds --yes
    """
    from llamasweep.cli.results_table import fitted_table
    from llamasweep.run.lock import SweepLock
    from llamasweep.store.locate import results_root
    from llamasweep.units import format_bytes

    items = _runs(results_root(results), keep, _age(older_than, keep))
    items += _models() if models else []
    items += _builds() if builds else []
    if keep is None and older_than is None and not models and not builds:
        raise UsageError(
            "nothing was named that could go", hint="add --keep, --older-than, --models or --builds"
        )
    if not items:
        click.echo("There is nothing to remove.")
        return
    rows = [[item.kind, item.name, format_bytes(item.n_bytes)] for item in items]
    click.echo(fitted_table(("what", "name", "size"), rows, right=("size",)))
    total = format_bytes(sum(item.n_bytes for item in items))
    if not yes:
        click.echo(f"{total} would go. Nothing was removed: add --yes to do it.")
        return
    with SweepLock("prune"):
        for item in items:
            item.remove()
    click.echo(f"Removed {len(items)}, {total}.")


def _age(text: str | None, keep: int | None) -> timedelta | None:
    from llamasweep.units import parse_seconds

    if text is None:
        return None
    if keep is not None:
        raise UsageError(
            "--keep and --older-than say two things about the same runs", hint="give one of them"
        )
    if re.fullmatch(r"[\d.]+", text.strip()):
        raise UsageError(
            f"--older-than {quoted(text)} has no unit", hint="write days as 5d, hours as 5h"
        )
    try:
        return timedelta(seconds=parse_seconds(text))
    except ValueError as problem:
        raise UsageError(str(problem)) from problem


def _runs(root: Path, keep: int | None, older_than: timedelta | None) -> list[_Item]:
    from llamasweep.store.locate import list_runs
    from llamasweep.store.prune import folder_bytes, remove_run, runs_to_prune

    going = runs_to_prune(
        list_runs(root), now=datetime.now(tz=UTC), keep=keep, older_than=older_than
    )
    return [
        _Item(
            kind="run",
            name=entry.run_id,
            n_bytes=folder_bytes(entry.path),
            remove=lambda path=entry.path: remove_run(path, root),  # type: ignore[misc]
        )
        for entry in going
    ]


def _models() -> list[_Item]:
    from llamasweep.gguf.synth import cached_models

    return [
        _Item(kind="model", name=path.name, n_bytes=path.stat().st_size, remove=path.unlink)
        for path in cached_models()
        if not path.is_symlink()
    ]


def _builds() -> list[_Item]:
    from llamasweep.builds.registry import Registry
    from llamasweep.store.prune import folder_bytes

    registry = Registry()
    return [
        _Item(
            kind="build",
            name=entry.label,
            n_bytes=folder_bytes(entry.folder),
            remove=lambda label=entry.label: registry.remove(label),  # type: ignore[misc]
        )
        for entry in registry.entries()
        if entry.kind == "installed" and not entry.folder.is_symlink()
    ]
