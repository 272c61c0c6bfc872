"""One group measured: described in the log, run, read back, written to Parquet."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamasweep.cache import cache_root
from llamasweep.engines.base import Call, CallOptions, Engine
from llamasweep.run.alias import plain_path, scratch_parent
from llamasweep.run.assemble import Assembled, assemble
from llamasweep.run.bandwidths import Bandwidths
from llamasweep.run.ceiling_columns import describe_ceiling
from llamasweep.run.group_log import GroupLog, GroupRecord, read_group_log
from llamasweep.run.group_run import Command, OnEvent, Outcome, Stop, run_group
from llamasweep.run.predicted_memory import predicted_memory
from llamasweep.run.process import EngineProcess, clean_environment, inherited_settings
from llamasweep.run.secrets import hide_in_argv, hide_in_environment, secrets_in
from llamasweep.run.session import Session
from llamasweep.run.timeouts import Expected
from llamasweep.sweep.cell import Cell, Group, cell_id
from llamasweep.sweep.spec import SweepSpec
from llamasweep.telemetry.sampler import Sampler, SamplerCost

UNKNOWN_FILE = "the file of the model that the server has is not known"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What stays the same for every group of a run.

    engine: what measures. machine: facts as in run.json. bandwidths: what ceilings rest on. absent: telemetry source ->
    why it is not there.
    """

    spec: SweepSpec
    engine: Engine
    machine: Mapping[str, Any]
    n_cores: int
    bandwidths: Bandwidths
    sampler: Sampler | None
    absent: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A group that was run. outcome: how the process went. found: what its log amounts to. record: the log itself."""

    outcome: Outcome
    found: Assembled
    record: GroupRecord


def measure(
    group: Group,
    session: Session,
    bench: Bench,
    *,
    stop: Stop,
    expected: Callable[[Cell], Expected],
    flags: Sequence[str],
    on_start: Callable[[EngineProcess], None],
    on_event: OnEvent,
) -> Measured:
    """Run one engine process and write what it gave. Raises OSError or StoreError where the disk refuses."""
    log_id = session.next_log_id(group.group_id)
    with tempfile.TemporaryDirectory(prefix="llamasweep-", dir=scratch_parent()) as scratch:
        folder = Path(scratch)
        call = bench.engine.describe(group, call_options(group, bench.spec, folder / "models"))
        work = folder / "empty"  # old builds scan their working folder for plug-ins
        work.mkdir()
        key = server_key(bench.spec)
        command = Command(
            engine=bench.engine,
            argv=call.argv,
            env=clean_environment((*call.env, *key)),
            cwd=work,
            address_space_bytes=bench.spec.address_space_limit_bytes,
            secrets=(*(value.encode() for _, value in key), *secrets_in(call.argv, call.env)),
        )
        description = group_description(group, call, session, bench, flags)
        with GroupLog(session.store.logs_dir, log_id, description) as log:
            outcome = run_group(
                command,
                log,
                expected=lambda index: expected(call.expected[min(index, len(call.expected) - 1)]),
                timeout_s=bench.spec.timeout_s,
                stop=stop,
                sampling=bench.sampler,
                on_start=on_start,
                on_event=on_event,
            )
            cost = (
                bench.sampler.stop()
                if bench.sampler is not None and bench.sampler.is_running
                else None
            )
            if bench.sampler is not None:
                log.readings(bench.sampler.drain())
    record = read_group_log(session.store.logs_dir, log_id)
    assert record is not None  # noqa: S101  (written above)
    found = assemble(record)
    session.add_group(_group_entry(group, record, outcome, cost))
    session.commit(record, found)
    return Measured(outcome=outcome, found=found, record=record)


def server_key(spec: SweepSpec) -> list[tuple[str, str]]:
    """The variable that holds the server's key, for the driver alone: it is in no description, log or row."""
    value = os.environ.get(spec.key_variable or "", "")
    return [(spec.key_variable, value)] if spec.key_variable is not None and value else []


def call_options(group: Group, spec: SweepSpec, links: Path | None) -> CallOptions:
    """links: folder for plain names of models whose own would break the command line, None to show the own name."""
    path = Path(group.model.source.path or "")
    links = links if group.model.source.path is not None else None
    return CallOptions(
        model_path=plain_path(path, links, "model") if links is not None else str(path),
        n_reps=spec.repetitions,
        warmup=spec.warmup,
        extra_args=spec.extra_args,
        env=spec.env,
        server=spec.server,
        import_folder=str(cache_root() / "ollama-models"),
    )


def group_description(
    group: Group, call: Call, session: Session, bench: Bench, flags: Sequence[str]
) -> dict[str, Any]:
    """Everything that the rows of this group need to be made later, from this file alone."""
    home = os.path.expanduser("~")  # noqa: PTH111
    return {
        "common": common_columns(group, session, bench),
        "argv": hide_in_argv(call.argv, home),
        "env": hide_in_environment([*inherited_settings(), *call.env], home),
        "cells": [
            {**describe_cell(cell, group, session), "ceiling": _ceiling(cell, group, bench)}
            for cell in call.expected
        ],
        "cpu_only": group.build.is_cpu_only and "rpc" not in dict(group.block.axes),
        "discard": bench.spec.discard,
        "telemetry_interval_s": bench.spec.telemetry_interval_s
        if bench.sampler is not None
        else None,
        "n_cores": bench.n_cores,
        "absent": dict(bench.absent),
        "flags": list(flags),
        "start_ns": time.time_ns(),
    }


def _ceiling(cell: Cell, group: Group, bench: Bench) -> dict[str, Any]:
    if group.model.facts is None:
        return {"reason": UNKNOWN_FILE}
    bytes_per_s, source = bench.bandwidths.of(group)
    peak, peak_source = bench.bandwidths.peak_of(group)
    ceiling = describe_ceiling(
        cell,
        group.model.facts,
        group.build,
        bandwidth_bytes_per_s=bytes_per_s,
        bandwidth_source=source,
        peak=peak,
        peak_source=peak_source,
    )
    return {**ceiling, **predicted_memory(cell, group.model.facts, group.build)}


def describe_cell(cell: Cell, group: Group, session: Session) -> dict[str, Any]:
    """One cell as the log and rows without an engine need it."""
    identity = cell_id(cell, group.model.identity)
    key = session.key(identity, group.build, group.round_index)
    return {
        "cell_id": identity,
        "n_prompt": cell.test.n_prompt,
        "n_gen": cell.test.n_gen,
        "requested": dict(cell.params),
        "attempt_index": session.n_tries(key),
    }


def common_columns(group: Group, session: Session, bench: Bench) -> dict[str, Any]:
    """Columns of `Attempt` that are the same for every cell of a group."""
    model, build, facts = group.model, group.build, group.model.facts
    quality = model.source.quality
    return {
        "run_id": session.info.run_id,
        "group_id": group.group_id,
        "round_index": group.round_index,
        "sweep_name": session.info.sweep_name,
        "engine": bench.spec.engine,
        "build_label": build.label,
        "build_number": build.number,
        "build_commit": build.commit,
        "build_hash": build.content_hash,
        "build_backends": ",".join(build.backends) if build.backends else None,
        "machine_fingerprint": bench.machine.get("fingerprint"),
        "model_label": model.source.label,
        "model_hash": model.content_hash,
        "model_file": Path(model.source.path).name if model.source.path else None,
        "model_arch": facts.arch if facts else None,
        "model_quant": facts.quant_short if facts else None,
        "model_size_bytes": facts.size_bytes if facts else None,
        "model_n_params": facts.n_params if facts else None,
        "model_bits_per_weight": facts.bits_per_weight if facts else None,
        "model_is_synthetic": facts.is_synthetic if facts else None,
        "quality_metric": quality.metric if quality else None,
        "quality_value": quality.value if quality else None,
        "quality_source": quality.source if quality else None,
        "n_reps_requested": bench.spec.repetitions,
    }


def _group_entry(
    group: Group, record: GroupRecord, outcome: Outcome, cost: SamplerCost | None
) -> dict[str, Any]:
    return {
        "group_id": group.group_id,
        "log_id": record.log_id,
        "argv": record.description["argv"],
        "env": record.description["env"],
        "n_cells": len(record.description["cells"]),
        "exit_code": outcome.ending.exit_code,
        "exit_signal": outcome.ending.exit_signal,
        "reason": outcome.reason,
        "start_ns": outcome.start_ns,
        "end_ns": outcome.end_ns,
        "processes_left_behind": outcome.leftovers,
        "sampler_cpu_s": cost.cpu_s if cost else None,
        "sampler_wall_s": cost.wall_s if cost else None,
    }
