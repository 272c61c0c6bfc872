"""`llamasweep results`: list runs, show one, export it, describe its columns, remove what is old."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.findings_lines import findings_lines, stream_lines, turn_lines
from llamasweep.cli.results_prune import prune
from llamasweep.errors import StoreError, UsageError

if TYPE_CHECKING:
    from llamasweep.results.records import Attempt
    from llamasweep.store.locate import RunEntry

_LONGEST_REASON = 200
RESULTS_OPTION = click.option(
    "--results", metavar="DIR", help="Folder of runs; default $LLAMASWEEP_RESULTS or results."
)
_JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("results")
def command() -> None:
    """List, show, export and prune results.

    \b
    Example:
      llamasweep results list
      llamasweep results show quick
    """


command.add_command(prune)


@command.command("list")
@RESULTS_OPTION
@_JSON_OPTION
def list_command(results: str | None, as_json: bool) -> None:
    """The runs that are there, newest first.

    \b
    Example:
      llamasweep results list --json
    """
    from llamasweep.cli.results_table import fitted_table
    from llamasweep.store.locate import list_runs, results_root

    root = results_root(results)
    rows = [_run_row(entry) for entry in list_runs(root)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo(f"No runs in {root}.")
    else:
        heads = ("run", "sweep", "state", "cells", "ok", "failed", "unsupported")
        keys = ("run_id", "sweep_name", "state", "n_cells_planned", "ok", "failed", "unsupported")
        click.echo(fitted_table(heads, [[_cell(row[key]) for key in keys] for row in rows]))


@command.command()
@click.argument("run", required=False)
@click.option("--columns", metavar="A,B,…", help="Show these columns instead of the usual ones.")
@RESULTS_OPTION
@_JSON_OPTION
def show(run: str | None, columns: str | None, results: str | None, as_json: bool) -> None:
    """The attempts of one run as a table; without RUN, of the newest.

    RUN is a run id, its beginning, the name of a sweep (its newest run), or a folder.

    \b
    Example:
      llamasweep results show quick
      llamasweep results show quick --columns test_label,n_threads,median_tps --json
    """
    from llamasweep.cli.results_table import fitted_table
    from llamasweep.results.columns import to_row
    from llamasweep.store.locate import find_run, load_run, results_root

    loaded = load_run(find_run(results_root(results), run))
    chosen = _chosen_columns(columns)
    if as_json or chosen:
        rows = [to_row(a) | against for a, against in _with_streams(loaded.attempts)]
        picked = [{name: row[name] for name in chosen or row} for row in rows]
        if as_json:
            click.echo(json.dumps([_json_row(row) for row in picked], indent=2))
        else:
            click.echo(fitted_table(chosen, [[_cell(v) for v in row.values()] for row in picked]))
        return
    click.echo(_usual_table(loaded.attempts))
    for line in (*turn_lines(loaded), *stream_lines(loaded), *findings_lines(loaded)):
        click.echo(line)
    for note in loaded.info.notes:
        click.echo(_shown(f"Note: {note}"))


@command.command()
@click.argument("run", required=False)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "jsonl", "sqlite"]),
    required=True,
    help="SQLite and JSONL are what compare-llama-bench.py likes best.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write."
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@RESULTS_OPTION
def export(run: str | None, kind: str, out: Path, force: bool, results: str | None) -> None:
    """Write the measured cells of a run in llama-bench's own columns.

    llama.cpp's scripts/compare-llama-bench.py reads all three formats. Figures are of the samples that were kept. What
    is printed names the builds as the script's -b and -c take them. Columns for what was asked of a server (engine,
    concurrency, prompt_cache, turn, num_ctx) and medians of TTFT, TPOT and E2E come last; the script passes over them.

    \b
    Example:
      llamasweep results export builds --format sqlite --out builds.sqlite
      compare-llama-bench.py -t llama-bench -i builds.sqlite -b b10488 -c b11434
    """
    from llamasweep.results.export import llama_bench_rows
    from llamasweep.store.export_files import write_export
    from llamasweep.store.locate import find_run, load_run, results_root

    loaded = load_run(find_run(results_root(results), run))
    made = llama_bench_rows(loaded.attempts, loaded.samples)
    if not made.rows:
        raise StoreError(
            f"nothing was measured in {loaded.info.run_id}: there is no row to export",
            hint="`llamasweep results show` tells why; `llamasweep results list` names other runs.",
        )
    write_export(made.rows, kind, out, replace=force)
    click.echo(f"Wrote {_shown(str(out))}: {len(made.rows)} rows.")
    for commit, label in made.builds:
        click.echo(f"  build_commit {commit}  is  {_shown(label)}")
    for note in made.notes:
        click.echo(f"Note: {note}")


@command.command("columns")
def columns_command() -> None:
    """Print what every column of the results means, as Markdown.

    \b
    Example:
      llamasweep results columns > docs/schema.md
    """
    from llamasweep.results.schema_page import schema_page

    click.echo(schema_page(), nl=False)


def _run_row(entry: RunEntry) -> dict[str, Any]:
    """One line of the list. Counts are None where they cannot be read."""
    from llamasweep.results.records import FAILED_STATUSES

    info = entry.info
    statuses, problem = _statuses(entry)
    counted = statuses is not None
    return {
        "run_id": entry.run_id,
        "path": str(entry.path),
        "sweep_name": info.sweep_name if info is not None else None,
        "started_at": info.started_at if info is not None else None,
        "finished_at": info.finished_at if info is not None else None,
        "state": _state(entry, problem),
        "n_cells_planned": info.n_cells_planned if info is not None else None,
        "ok": (statuses or {}).get("ok", 0) if counted else None,
        "failed": sum((statuses or {}).get(s, 0) for s in FAILED_STATUSES) if counted else None,
        "unsupported": (statuses or {}).get("unsupported", 0) if counted else None,
        "problem": problem,
    }


def _statuses(entry: RunEntry) -> tuple[dict[str, int] | None, str | None]:
    from llamasweep.store.reader import read_table

    if entry.problem is not None:
        return None, entry.problem
    try:
        read = read_table(entry.path, "cells")
    except StoreError as problem:
        return None, problem.message
    counts = read.rows.column("status").value_counts().to_pylist()
    return {c["values"]: c["counts"] for c in counts}, "; ".join(read.unreadable) or None


def _state(entry: RunEntry, problem: str | None) -> str:
    if problem is not None:
        return f"damaged: {problem}"
    return "finished" if entry.info is not None and entry.info.finished_at else "unfinished"


def _chosen_columns(text: str | None) -> list[str]:
    """Raises UsageError for a column that is not there, with the nearest that is."""
    import difflib

    from llamasweep.results.against_one import NAMES
    from llamasweep.results.columns import ATTEMPT_COLUMNS

    names = [*(c.name for c in ATTEMPT_COLUMNS), *NAMES]
    chosen = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in chosen:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else "see: llamasweep results columns"
            raise UsageError(f"there is no column {name!r}", hint=hint)
    return chosen


def _with_streams(attempts: Sequence[Attempt]) -> Iterator[tuple[Attempt, dict[str, Any]]]:
    """Each with its columns against one stream."""
    from dataclasses import asdict

    from llamasweep.results.against_one import AgainstOne, of_attempts

    found = of_attempts(attempts)
    for attempt in attempts:
        yield attempt, asdict(found.get(attempt.attempt_id, AgainstOne()))


def _usual_table(attempts: Sequence[Attempt]) -> str:
    from llamasweep.cli.results_table import fitted_table

    varied = _varied_parameters(attempts)
    has_builds = len({a.build_label for a in attempts}) > 1
    heads = ["model", "quant", "test", *(["build"] if has_builds else []), *varied]
    rows = []
    for a in attempts:
        depth = f"@d{a.n_depth}" if a.n_depth else ""
        row = [a.model_label, a.model_quant or "–", a.test_label + depth]
        row += [a.build_label or "–"] if has_builds else []
        row += [_cell(_parameter(a, name)) for name in varied]
        rows.append([*row, _rate(a), _status(a)])
    return fitted_table([*heads, "t/s", "status"], rows, right=("t/s",))


def _varied_parameters(attempts: Sequence[Attempt]) -> list[str]:
    from llamasweep.sweep.parameters import PARAMETERS

    names = [p.name for p in PARAMETERS if p.name != "n_depth"]
    return [n for n in names if len({_parameter(a, n) for a in attempts}) > 1]


def _parameter(attempt: Attempt, name: str) -> Any:
    """As asked for; a parameter left to the engine does not vary, whatever it became."""
    return attempt.requested.get(name)


def _rate(attempt: Attempt) -> str:
    from llamasweep.units import format_tps

    if attempt.median_tps is None:
        return "–"
    median = format_tps(attempt.median_tps).removesuffix(" t/s")
    if attempt.sample_std_tps is None:
        return median
    spread = attempt.sample_std_tps
    return f"{median} ± {spread:.0f}" if spread >= 10 else f"{median} ± {spread:.2g}"


def _status(attempt: Attempt) -> str:
    words = [attempt.status, *attempt.flags]
    reason = attempt.error_message
    return " ".join(words) + (f": {reason[:_LONGEST_REASON]}" if reason else "")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()}
    if "reasons" in plain:
        plain["reasons"] = json.loads(plain["reasons"])
    return plain


def _shown(text: str) -> str:
    from llamasweep.cli.terminal import printable

    return printable(text)
