"""`llamasweep status`: how far a run is, from its files alone, so that it works for one in the background."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command()
@click.argument("run", required=False)
@click.option(
    "--results",
    metavar="DIR",
    help="Folder of results (default: ./results or $LLAMASWEEP_RESULTS).",
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def command(run: str | None, results: str | None, is_json: bool) -> None:
    """How far a run is: the newest one, or RUN (an id, its beginning, a sweep's name, a path).

    \b
    Example:
      llamasweep status
      llamasweep status overnight --json
    """
    from llamasweep.run.standing import read_standing
    from llamasweep.store.locate import find_run, results_root

    standing = read_standing(find_run(results_root(results), run))
    if is_json:
        click.echo(json.dumps(standing, indent=2))
        return
    _print(standing)


def _print(standing: dict[str, Any]) -> None:
    from llamasweep.cli.progress_lines import short
    from llamasweep.cli.terminal import printable

    state = (
        "measuring now"
        if standing["is_running"]
        else "finished"
        if standing["finished_at"]
        else "stopped"
    )
    click.echo(f"{standing['run_id']}: {state}")
    at_most = "at most " if standing["is_open_ended"] else ""
    click.echo(f"  {standing['n_done']} of {at_most}{standing['n_cells_planned']} cells")
    for status, count in standing["counts"].items():
        click.echo(f"    {status.replace('_', ' ')}: {count}")
    for problem in standing["problems"]:
        click.echo(f"  {printable(problem)}")
    if standing["current"] and standing["is_running"]:
        click.echo(f"  now: {short(standing['current'], 160)}")
    if standing["last_sign_at"]:
        click.echo(f"  last sign of life: {standing['last_sign_at']}")
    if not standing["is_running"] and not standing["finished_at"]:
        click.echo("  Continue by starting the same sweep again.")
