"""A sweep from spec to summary: lock, look, plan, session, run, and what comes after it.

The rooms meet here; each step is theirs.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llamasweep.builds.registry import Registry
from llamasweep.engines.known import engine_named
from llamasweep.errors import MachineError, StoreError
from llamasweep.machine.awake import keep_awake
from llamasweep.machine.calibration import load_calibration
from llamasweep.machine.facts import MachineFacts, read_facts
from llamasweep.machine.quiet import QuietWatch
from llamasweep.results.records import SCHEMA_VERSION, Attempt
from llamasweep.run.auto_rounds import AutoRounds
from llamasweep.run.bandwidths import Bandwidths, known_peak, look_at_bandwidths
from llamasweep.run.cooldown import Cooler
from llamasweep.run.file_watch import FileWatch
from llamasweep.run.lock import SweepLock
from llamasweep.run.measure import Bench, call_options
from llamasweep.run.prepare import Prepared, Wishes, prepare
from llamasweep.run.progress import Progress
from llamasweep.run.resolve import OnSynth
from llamasweep.run.runner import Runner, RunSummary
from llamasweep.run.secrets import hide_arguments, hide_in_argv, hide_in_environment
from llamasweep.run.session import Session, open_session
from llamasweep.run.sides import floor_finder, machine_floors
from llamasweep.run.stop import StopSignals
from llamasweep.store.locate import list_runs
from llamasweep.store.parquet import RunStore
from llamasweep.sweep.cell import Group
from llamasweep.sweep.predict import Rates
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import Build, Model
from llamasweep.telemetry.sampler import Sampler
from llamasweep.telemetry.sources import OpenedSources, open_sources

_ON_FINISH_LIMIT_S = 3600.0
_HISTORY_RUNS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How to run. max_time_s: on top of the sweep's own, None = no limit. retry_failed: try failed cells again.

    only_if_quiet: refuse to start on a machine that is busy with other things.
    """

    results_root: Path
    wishes: Wishes = field(default_factory=Wishes)
    fresh: bool = False
    retry_failed: bool = False
    only_if_quiet: bool = False
    max_time_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """A sweep of which everything before the first engine is done. opened: telemetry, None where it is off."""

    prepared: Prepared
    session: Session
    bench: Bench
    lock: SweepLock
    opened: OpenedSources | None


def run_sweep(
    spec: SweepSpec, options: RunOptions, progress: Progress, on_synth: OnSynth | None = None
) -> RunSummary:
    """Measure a sweep, or what is left of it. Raises the errors of its parts; everything finished is kept."""
    with ExitStack() as stack:
        begun = begin(spec, options, progress, stack, on_synth=on_synth)
        stop = stack.enter_context(StopSignals(deadline_s(spec, options.max_time_s)))
        runner = runner_of(begun, progress, stop)
        runner.retry_failed = options.retry_failed
        runner.auto = _auto_rounds(begun.prepared, begun.session)
        summary = runner.run()
    _on_finish(spec, summary, progress)
    return summary


def begin(
    spec: SweepSpec,
    options: RunOptions,
    progress: Progress,
    stack: ExitStack,
    *,
    registry: Registry | None = None,
    on_synth: OnSynth | None = None,
) -> Begun:
    """Take the machine, look at it, plan, and open the run. What must be let go later is put on the stack."""
    _check_folder(options.results_root)
    lock = stack.enter_context(SweepLock(spec.name))
    if lock.orphan_ended:
        progress.note("an engine that a killed run had left behind was ended")
    facts = read_facts()
    watch = QuietWatch.begin()  # goes on while we read the memory: what we use is not counted
    bandwidths, notes = look_at_bandwidths(spec, facts)
    quiet = watch.finish(facts)
    if options.only_if_quiet and not quiet.is_quiet:
        raise MachineError(
            f"the machine is not quiet: {'; '.join(quiet.findings)}",
            hint="Close what keeps it busy, or measure all the same without --only-if-quiet.",
        )
    prepared = prepare(
        spec,
        wishes=options.wishes,
        registry=registry or Registry(),
        facts=facts,
        history=past_attempts(options.results_root),
        rates=Rates(
            bandwidth_bytes_per_s=bandwidths.given or bandwidths.ram,
            flop_per_s=known_peak(spec, facts),
        ),
        generate=True,
        on_synth=on_synth,
    )
    session, noticed = open_session(
        options.results_root,
        sweep_name=spec.name,
        fresh=options.fresh,
        first_info=run_facts(prepared, facts),
    )
    lock.name_run(session.info.run_id)
    told = [*noticed, *notes, *prepared.plan.warnings, *quiet.findings, *_unsayable(prepared)]
    _tell(session, progress, told)
    opened = _open_telemetry(prepared.spec, stack)
    bench = _bench(prepared.spec, facts, bandwidths, opened)
    awake = stack.enter_context(keep_awake(f"llamasweep measures {spec.name}"))
    if not awake.is_kept:
        progress.note(f"the machine is not kept awake: {awake.reason}")
    return Begun(prepared=prepared, session=session, bench=bench, lock=lock, opened=opened)


def runner_of(begun: Begun, progress: Progress, stop: StopSignals) -> Runner:
    """Who measures the plan of a sweep that has begun."""
    prepared, opened = begun.prepared, begun.opened
    return Runner(
        plan=prepared.plan,
        session=begun.session,
        bench=begun.bench,
        rates=prepared.rates,
        progress=progress,
        lock=begun.lock,
        stop=stop,
        watch=FileWatch(prepared.subjects.builds, prepared.subjects.models.values()),
        cooler=Cooler(cooldown=prepared.spec.cooldown, sources=opened.sources if opened else ()),
    )


def _auto_rounds(prepared: Prepared, session: Session) -> AutoRounds | None:
    """Who decides on further rounds, with what is measured already; None where their number is fixed."""
    if prepared.spec.rounds != "auto":
        return None
    a, b = prepared.subjects.builds
    auto = AutoRounds(a_label=a.label, b_label=b.label, floor_of_row=floor_finder())
    auto.learn(session.store.attempts())
    return auto


def run_facts(prepared: Prepared, facts: MachineFacts) -> dict[str, Any]:
    """What run.json says of the sweep, the machine and what is measured."""
    spec = prepared.whole
    home = os.path.expanduser("~")  # noqa: PTH111  (Path.home() raises where there is none)
    resolved = spec.to_resolved_dict()
    resolved["env"] = hide_in_environment(spec.env, home)
    resolved["extra_args"] = hide_in_argv(spec.extra_args, home)
    resolved["on_finish"] = hide_arguments(spec.on_finish, home) if spec.on_finish else None
    return {
        "schema_version": SCHEMA_VERSION,
        "llamasweep_version": version("llamasweep"),
        "sweep_file": hide_in_argv([spec.file], home)[0] if spec.file else None,
        "sweep_resolved": resolved,
        "seed": spec.seed,
        "machine": {
            **facts.to_dict(),
            "calibration": _calibration(facts),
            "floors": _floors(facts),
        },
        "builds": [build_facts(b, home) for b in prepared.subjects.builds],
        "models": [_model_facts(m, home) for m in prepared.subjects.models.values()],
        "n_cells_planned": prepared.plan.n_cells + prepared.plan.n_unreadable,
        "versions": {"python": platform.python_version(), "llamasweep": version("llamasweep")},
    }


def _floors(facts: MachineFacts) -> dict[str, float]:
    """What the A/A rounds of this machine give by now: `tg:2` (kind of test, size class) -> floor as a fraction."""
    return {
        f"{kind}:{size}": floor.floor_fraction
        for (kind, size), floor in machine_floors(facts.fingerprint).items()
    }


def _calibration(facts: MachineFacts) -> dict[str, Any] | None:
    """The newest calibration of this machine, None where there is none."""
    known = load_calibration(facts.fingerprint)
    return None if known is None else known.to_dict()


def build_facts(build: Build, home: str) -> dict[str, Any]:
    """What run.json says of a build. home: the user's folder, which is not written down."""
    return {
        "label": build.label,
        "path": hide_in_argv([build.path], home)[0],
        "content_hash": build.content_hash,
        "number": build.number,
        "commit": build.commit,
        "version": build.version,
        "backends": list(build.backends) if build.backends is not None else None,
        "devices": list(build.devices) if build.devices is not None else None,
        "cpu_features": list(build.cpu_features) if build.cpu_features is not None else None,
    }


def _model_facts(model: Model, home: str) -> dict[str, Any]:
    facts = model.facts
    return {
        "label": model.source.label,
        "path": hide_in_argv([model.source.path], home)[0] if model.source.path else None,
        "synth": model.source.synth,
        "content_hash": model.content_hash,
        "arch": facts.arch if facts else None,
        "quant": facts.quant_short if facts else None,
        "size_bytes": facts.size_bytes if facts else None,
        "n_params": facts.n_params if facts else None,
        "n_layers": facts.n_layers if facts else None,
        "n_expert": facts.n_expert if facts else None,
        "problem": model.problem,
    }


def past_attempts(results_root: Path) -> Iterable[Attempt]:
    """Rows of the newest runs, for predictions; a run that cannot be read tells nothing."""
    if not results_root.is_dir():
        return
    for entry in list_runs(results_root)[:_HISTORY_RUNS]:
        try:
            yield from RunStore.open(entry.path).attempts()
        except StoreError:
            continue


def _bench(
    spec: SweepSpec,
    facts: MachineFacts,
    bandwidths: Bandwidths,
    opened: OpenedSources | None,
) -> Bench:
    return Bench(
        spec=spec,
        engine=engine_named(spec.engine),
        machine={"fingerprint": facts.fingerprint},
        n_cores=facts.n_cores_logical or 1,
        bandwidths=bandwidths,
        sampler=Sampler(opened.sources, spec.telemetry_interval_s)
        if opened and spec.telemetry_interval_s
        else None,
        absent=opened.absent if opened else {},
    )


def _open_telemetry(spec: SweepSpec, stack: ExitStack) -> OpenedSources | None:
    if spec.telemetry_interval_s is None:
        return None
    opened = open_sources()
    stack.callback(opened.close)
    return opened


def _tell(session: Session, progress: Progress, notes: Iterable[str]) -> None:
    for note in dict.fromkeys(notes):
        session.note(note)
        progress.note(note)


def _unsayable(prepared: Prepared) -> list[str]:
    """Wishes that a build has no flag for."""
    engine = engine_named(prepared.spec.engine)
    first_of_build = {g.build.content_hash: g for g in _first_groups(prepared)}
    notes: list[str] = []
    for group in first_of_build.values():
        notes += engine.tell_what_cannot_be_said(group, call_options(group, prepared.spec, None))
    return notes


def _first_groups(prepared: Prepared) -> Iterable[Group]:
    wanted = {b.content_hash for b in prepared.subjects.builds}
    for group in prepared.plan.groups:
        if group.build.content_hash in wanted and group.model.problem is None:
            wanted.discard(group.build.content_hash)
            yield group
        if not wanted:
            return


def _check_folder(root: Path) -> None:
    """Before minutes are spent on preparing: what is to become the results' folder can be one."""
    folder = root
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a folder", hint="Choose another folder with --results.")


def deadline_s(spec: SweepSpec, max_time_s: float | None) -> float | None:
    """Monotonic time at which to stop; the earliest of what the sweep and the command line say."""
    limits = [x for x in (spec.max_time_s, max_time_s) if x is not None]
    if spec.stop_at is not None:
        limits.append(seconds_until(spec.stop_at, datetime.now().astimezone()))
    return time.monotonic() + min(limits) if limits else None


def seconds_until(clock: str, now: datetime) -> float:
    """Seconds from `now` to the next time that a clock shows HH:MM."""
    hour, minute = (int(part) for part in clock.split(":"))
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if then <= now:
        then += timedelta(days=1)
    return (then - now).total_seconds()


def _on_finish(spec: SweepSpec, summary: RunSummary, progress: Progress) -> None:
    """The sweep's own command at the end, an argv list and never a shell; its failure is told and changes nothing."""
    if not spec.on_finish:
        return
    argv = [word.replace("{run_dir}", str(summary.run_dir)) for word in spec.on_finish]
    try:
        done = subprocess.run(
            argv, check=False, timeout=_ON_FINISH_LIMIT_S, stdin=subprocess.DEVNULL
        )
    except OSError as problem:
        progress.note(f"on_finish did not work: {problem}")
        return
    except subprocess.TimeoutExpired:  # whose own words would repeat the arguments
        progress.note("on_finish was ended: it took longer than an hour")
        return
    if done.returncode:
        progress.note(f"on_finish ended with exit code {done.returncode}")
