"""`llamasweep plan`: what a sweep would measure, what it cannot, and how long it would take."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from llamasweep.cli.sweep_options import make_wishes, sweep_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llamasweep.run.prepare import Prepared, Wishes
    from llamasweep.sweep.cell import Block, Group
    from llamasweep.sweep.spec import SweepSpec
    from llamasweep.sweep.subjects import Build, Model

_SHOWN_GROUPS = 12
_JSON_GROUPS = 10_000


@click.command()
@sweep_options
@click.option("--json", "is_json", is_flag=True, help="Print JSON, with the argv of every group.")
def command(**given: Any) -> None:
    """What a sweep would measure, what it cannot, and how long it would take. Starts no engine.

    \b
    Example:
      llamasweep plan sweeps/overnight.yaml
      llamasweep plan sweeps/builds.yaml --json
    """
    from llamasweep.sweep_file import load

    show_plan(
        load(Path(given["sweep"])),
        make_wishes(given),
        results=given["results"],
        is_json=given["is_json"],
    )


def show_plan(spec: SweepSpec, wishes: Wishes, *, results: str | None, is_json: bool) -> None:
    """Print the plan."""
    from llamasweep.builds.registry import Registry
    from llamasweep.machine.facts import read_facts
    from llamasweep.run.bandwidths import known_rates
    from llamasweep.run.campaign import past_attempts
    from llamasweep.run.prepare import prepare
    from llamasweep.store.locate import results_root

    facts = read_facts()
    prepared = prepare(
        spec,
        wishes=wishes,
        registry=Registry(),
        facts=facts,
        history=past_attempts(results_root(results)),
        rates=known_rates(spec, facts),
        generate=False,
    )
    if is_json:
        click.echo(json.dumps(_as_json(prepared), indent=2))
    else:
        _print(prepared)


def _as_json(prepared: Prepared) -> dict[str, Any]:
    plan = prepared.plan
    return {
        "sweep": prepared.spec.name,
        "n_cells": plan.n_cells,
        "n_groups": len(plan.groups),
        "n_model_loads": plan.n_model_loads,
        "n_unsupported": plan.n_unsupported,
        "predicted_s": plan.predicted_s,
        "basis": list(plan.basis),
        "warnings": list(plan.warnings),
        "models": [_model_json(model) for model in prepared.subjects.models.values()],
        "builds": [{"label": b.label, "path": b.path} for b in prepared.subjects.builds],
        "unsupported": [
            {"build": b.label, "model": m.source.label, "n_cells": block.n_cells, "reason": reason}
            for b, m, block, reason in plan.unsupported
        ],
        "unreadable": [
            {"build": b.label, "model": m.source.label, "n_cells": block.n_cells, "reason": reason}
            for b, m, block, reason in plan.unreadable
        ],
        "groups": [
            _group_json(group, prepared) for group in itertools.islice(plan.groups, _JSON_GROUPS)
        ],
    }


def _model_json(model: Model) -> dict[str, Any]:
    facts = model.facts
    return {
        "label": model.source.label,
        "quant": facts.quant_short if facts else None,
        "size_bytes": facts.size_bytes if facts else None,
        "problem": model.problem,
    }


def _group_json(group: Group, prepared: Prepared) -> dict[str, Any]:
    from llamasweep.engines.known import engine_named
    from llamasweep.run.forecast import forecast
    from llamasweep.run.measure import call_options
    from llamasweep.run.secrets import hide_in_argv

    expected = forecast(group, prepared.rates)
    argv = None
    if group.model.source.path is not None:
        engine = engine_named(prepared.spec.engine)
        call = engine.describe(group, call_options(group, prepared.spec, None))
        argv = hide_in_argv(call.argv, None)
    return {
        "group_id": group.group_id,
        "build": group.build.label,
        "model": group.model.source.label,
        "round": group.round_index,
        "n_cells": group.n_cells,
        "tests": [test.label for test in group.block.tests],
        "axes": {name: list(values) for name, values in group.block.axes},
        "predicted_pp_tps": expected.pp_tps,
        "predicted_tg_tps": expected.tg_tps,
        "predicted_ram_bytes": expected.ram_bytes,
        "predicted_vram_bytes": expected.vram_bytes,
        "predicted_memory_reason": expected.memory_reason,
        "argv": argv,
    }


def _rounds(rounds: int | Literal["auto"]) -> str:
    if rounds == "auto":
        return " in as many rounds as each needs"
    return f" in {rounds} rounds" if rounds > 1 else ""


def _print(prepared: Prepared) -> None:
    from llamasweep.cli.progress_lines import short
    from llamasweep.units import format_bytes, format_seconds

    plan = prepared.plan
    rounds = _rounds(prepared.spec.rounds)
    click.echo(
        f"{short(prepared.spec.name)}: {plan.n_cells:,} cells{rounds}, {len(plan.groups):,} engine processes, "
        f"about {format_seconds(plan.predicted_s)}"
    )
    for sentence in plan.basis:
        click.echo(f"  time from {sentence}")
    click.echo("Models:")
    for model in prepared.subjects.models.values():
        facts = model.facts
        what = (
            f"{facts.quant_short}, {format_bytes(facts.size_bytes)}"
            if facts
            else short(model.problem or "", 160)
        )
        click.echo(f"  {short(model.source.label)}: {what}")
    click.echo("Builds:")
    for build in prepared.subjects.builds:
        click.echo(f"  {short(build.label)}: {short(build.path, 120)}")
    click.echo("Groups:")
    for group in itertools.islice(plan.groups, _SHOWN_GROUPS):
        click.echo(f"  {_group_line(group)}")
        click.echo(f"    {_forecast_line(group, prepared)}")
    if len(plan.groups) > _SHOWN_GROUPS:
        click.echo(f"  … and {len(plan.groups) - _SHOWN_GROUPS:,} more (all with --json)")
    for title, items in (
        ("Cannot be measured", plan.unsupported),
        ("Cannot be read", plan.unreadable),
    ):
        for (build_label, model_label, reason), n_cells in _by_reason(items).items():
            where = f"{short(model_label)} on {short(build_label)}"
            click.echo(f"{title}: {n_cells} cells of {where}: {short(reason, 200)}")
    for warning in plan.warnings:
        click.echo(f"Warning: {short(warning, 300)}")


def _by_reason(items: Iterable[tuple[Build, Model, Block, str]]) -> dict[tuple[str, str, str], int]:
    """(build, model, reason) -> cells."""
    counts: dict[tuple[str, str, str], int] = {}
    for build, model, block, reason in items:
        key = (build.label, model.source.label, reason)
        counts[key] = counts.get(key, 0) + block.n_cells
    return counts


def _forecast_line(group: Group, prepared: Prepared) -> str:
    """`expected: pp 110 t/s to 240 t/s, tg 21.0 t/s, up to 1.2 GiB of RAM`."""
    from llamasweep.cli.progress_lines import short
    from llamasweep.run.forecast import forecast
    from llamasweep.units import format_bytes, format_tps

    expected = forecast(group, prepared.rates)
    parts = []
    for kind, span in (("pp", expected.pp_tps), ("tg", expected.tg_tps)):
        if span is not None:
            shown = dict.fromkeys(format_tps(tps) for tps in span)
            parts.append(f"{kind} {' to '.join(shown)}")
    for what, n_bytes in (("RAM", expected.ram_bytes), ("VRAM", expected.vram_bytes)):
        if n_bytes is not None:
            parts.append(f"up to {format_bytes(n_bytes)} of {what}")
    if expected.memory_reason is not None:
        parts.append(f"memory not known: {short(expected.memory_reason, 100)}")
    return f"expected: {', '.join(parts)}"


def _group_line(group: Group) -> str:
    from llamasweep.cli.progress_lines import short

    axes = " ".join(
        f"{name}={','.join(str(v) for v in values)}" for name, values in group.block.axes
    )
    tests = ",".join(test.label for test in group.block.tests)
    return short(
        f"{group.model.source.label} on {group.build.label}: {tests} {axes} ({group.n_cells} cells)",
        160,
    )
