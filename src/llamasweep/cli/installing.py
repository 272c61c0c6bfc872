"""How an installation looks while it goes on: a bar on a terminal, plain lines elsewhere, and a clean end on Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from llamasweep.builds.compilation import InstallProgress
    from llamasweep.builds.install import InstallPlan
    from llamasweep.sweep.subjects import Build


def install_visibly(plan: InstallPlan, n_jobs: int | None) -> Build:
    """Install with a live bar on a terminal, plain lines elsewhere; SIGTERM ends it like Ctrl-C."""
    import signal
    import sys

    from llamasweep.builds import install as installation

    def interrupt(signal_number: int, frame: object) -> None:
        del signal_number, frame
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        if sys.stderr.isatty():
            return _with_bar(
                lambda tell: installation.install(plan, n_jobs=n_jobs, on_progress=tell)
            )
        return installation.install(plan, n_jobs=n_jobs, on_progress=_plain_teller())
    except KeyboardInterrupt:
        log = plan.folder / installation.LOG_NAME
        click.echo(
            f"Stopped before it was done; the same command goes on from here. Log: {log}", err=True
        )
        raise click.Abort from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _with_bar(work: Callable[[Callable[[InstallProgress], None]], Build]) -> Build:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting", total=None)
        texts: list[str] = []

        def tell(event: InstallProgress) -> None:
            if event.text not in texts:
                texts.append(event.text)
                progress.reset(task, description=event.text, total=event.n_total)
            if event.n_done is not None:
                progress.update(task, completed=event.n_done, total=event.n_total)

        return work(tell)


def _plain_teller() -> Callable[[InstallProgress], None]:
    """A line per phase, and one per tenth of the compiling with elapsed time and an estimate of what is left."""
    import time

    started: dict[str, float] = {}
    tenths: dict[str, int] = {}

    def tell(event: InstallProgress) -> None:
        now = time.monotonic()
        if event.text not in started:
            started[event.text] = now
            click.echo(f"{event.text} …", err=True)
        if event.n_done is None or not event.n_total:
            return
        tenth = event.n_done * 10 // event.n_total
        if tenth > tenths.get(event.text, 0):
            tenths[event.text] = tenth
            elapsed_s = now - started[event.text]
            left_s = elapsed_s / event.n_done * (event.n_total - event.n_done)
            click.echo(
                f"  {event.n_done}/{event.n_total} after {_clock(elapsed_s)}, about {_clock(left_s)} left",
                err=True,
            )

    return tell


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
