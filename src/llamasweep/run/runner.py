"""The run: groups one after another until all are measured, whatever happens to some of them.

Every finished group is in Parquet before the next one starts. A failed cell is a row and the rest goes on in a new process; a
signal or the clock ends the run with everything finished kept.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llamasweep.engines.base import EngineEvent
from llamasweep.errors import StoreError
from llamasweep.results.records import FAILED_STATUSES, Attempt, Reading, Status
from llamasweep.run.auto_rounds import RoundChooser, StandTeller
from llamasweep.run.cooldown import Cooler
from llamasweep.run.file_watch import FileWatch
from llamasweep.run.group_run import OnEvent
from llamasweep.run.lock import SweepLock
from llamasweep.run.lost_turns import LostTurns
from llamasweep.run.measure import Bench, Measured, common_columns, describe_cell, measure
from llamasweep.run.prepare import as_measured
from llamasweep.run.process import EngineProcess, adopt_orphans
from llamasweep.run.progress import Progress, Standing
from llamasweep.run.session import Session
from llamasweep.run.stop import StopSignals
from llamasweep.run.timeouts import Expected
from llamasweep.run.unmeasured import problem_kind, row_without_engine
from llamasweep.sweep.cell import Block, Cell, Group, cell_id
from llamasweep.sweep.matrix import decompose
from llamasweep.sweep.parameters import BY_NAME
from llamasweep.sweep.plan import Plan, remaining
from llamasweep.sweep.predict import Cost, Rates, group_cost
from llamasweep.sweep.subjects import Model

LEAST_FREE_BYTES = 256 << 20
LOAD_DEATHS = 3
"""So often a model may kill its engine while it is loaded before the rest of its cells is given up."""
_INFO_EVERY_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """How a run ended.

    counts: status -> cells, over all rows of the run. n_measured: rows made by this call. n_left: cells without a
    row. stopped_by: "signal", "time" or None. notes: sentences.
    """

    run_dir: Path
    run_id: str
    counts: dict[str, int]
    n_measured: int
    n_left: int
    stopped_by: str | None
    notes: tuple[str, ...]

    @property
    def n_failed(self) -> int:
        return sum(n for status, n in self.counts.items() if status in FAILED_STATUSES)


@dataclass(slots=True)
class Runner:
    """One run in progress. flags: doubts that concern the next group, such as contaminated_memory.

    auto: who decides which cells need another round; None where their number is fixed.
    """

    plan: Plan
    session: Session
    bench: Bench
    rates: Rates
    progress: Progress
    lock: SweepLock
    stop: StopSignals
    cooler: Cooler
    watch: FileWatch
    retry_failed: bool = False
    auto: RoundChooser | None = None
    flags: tuple[str, ...] = ()
    n_measured: int = 0
    _n_groups_taken: int = 0
    _n_done: int = 0
    _n_rows_now: int = 0
    _round_told: int = -1
    _rest: deque[Group] = field(default_factory=deque)
    _counts: dict[str, int] = field(default_factory=dict)
    _broken_loads: dict[tuple[Any, ...], Attempt] = field(default_factory=dict)
    _load_deaths: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    _lost_turns: LostTurns = field(default_factory=LostTurns)
    _info_written_s: float = 0.0
    _later_s: float = 0.0
    _group_s: float = 0.0
    _group_share_left: float = 0.0

    def run(self) -> RunSummary:
        """Measure what is left of the plan."""
        adopt_orphans()
        self._record_refused()
        for group in self._groups():
            self._check_disk()
            broken = self._broken_loads.get(_load_key(group))
            if broken is not None:
                self._record_like(group, broken, "the load failed for")
            elif change := self.watch.change(group):
                self._record_changed(group, change)
            else:
                self._measure(group)
        return self._finish()

    def _groups(self) -> Iterator[Group]:
        """What is left, lazily: what a failed process did not get to, then the plan less what is done."""
        is_asked = bool(self.session.done) or self.auto is not None
        coming = iter(self.plan.groups)
        while not self.stop.is_over:
            while not self._rest:
                group = next(coming, None)
                if group is None:
                    return
                self._n_groups_taken += 1
                self._tell_round(group.round_index)
                left = remaining(group, self._is_done_in(group) if is_asked else None)
                self._n_done += group.n_cells - sum(g.n_cells for g in left)
                self._rest.extend(left)
            yield self._rest.popleft()

    def _is_done_in(self, group: Group) -> Callable[[Cell], bool]:
        def is_done(cell: Cell) -> bool:
            identity = cell_id(cell, group.model.identity)
            if self.auto is not None and not self.auto.wants(identity, group.round_index):
                return True
            key = self.session.key(identity, group.build, group.round_index)
            return self.session.is_done(key, retry_failed=self.retry_failed)

        return is_done

    def _tell_round(self, round_index: int) -> None:
        """Before the first group of a round of `rounds: auto`: where its cells stand."""
        if self.auto is not None and round_index != self._round_told:
            self._round_told = round_index
            self.progress.round_begins(self.auto.standing_lines(round_index))

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.session.store.run_dir).free
        if free < LEAST_FREE_BYTES:
            raise StoreError(
                f"only {free >> 20} MiB are free where the results go",
                hint="Free some space (`llamasweep results prune` helps) and start the same sweep again; it continues.",
            )

    # -- rows without an engine

    def _record_refused(self) -> None:
        """What cannot be measured at all gets its rows first, each once."""
        for build, model, block, reason in self.plan.unsupported:
            group = Group(build=build, model=model, block=block)
            self._record_without_engine(group, "unsupported", "unsupported", reason)
        for build, model, block, reason in self.plan.unreadable:
            group = Group(build=build, model=model, block=block)
            self._record_without_engine(group, "failed", problem_kind(reason), reason)

    def _record_without_engine(self, group: Group, status: Status, kind: str, reason: str) -> None:
        """Rows for cells that are not handed to an engine; those that have one already are left out."""
        log_id = f"none-{group.group_id}"
        common = common_columns(group, self.session, self.bench)
        attempts = []
        for index, cell in enumerate(group.block.cells()):
            described = describe_cell(cell, group, self.session)
            key = self.session.key(described["cell_id"], group.build, group.round_index)
            if self.session.is_done(key, retry_failed=self.retry_failed):
                continue
            attempts.append(
                row_without_engine(
                    common,
                    described,
                    cell.test,
                    f"{log_id}-{index:04d}-{described['attempt_index']}",
                    status,
                    kind,
                    reason,
                )
            )
        if not attempts:
            return
        self.session.store.write_group(log_id, attempts)
        self._count(attempts)
        self.progress.cells_refused(attempts, self.standing())

    def _record_like(self, group: Group, broken: Attempt, why: str) -> None:
        """What brought that attempt down a moment ago will bring this group down too."""
        reason = f"{broken.error_message} (not tried again: {why} {broken.attempt_id})"
        self._record_without_engine(group, broken.status, broken.error_kind or "load", reason)
        self._n_done += group.n_cells

    def _record_changed(self, group: Group, change: str) -> None:
        """A file was replaced under the run: its rows would carry the wrong hash."""
        reason = f"{change}; start the sweep again to measure it"
        self._record_without_engine(group, "failed", "file_changed", reason)
        self._n_done += group.n_cells

    # -- measuring

    def _measure(self, group: Group) -> None:
        cells = tuple(group.block.cells())
        self._price(group)
        self.progress.group_started(group, cells, self.standing())
        measured = self._measured(group, cells)
        self.lock.name_engine(None, None)
        self._n_done += len(measured.found.attempts)
        self._n_rows_now = 0
        self.rates = self.rates.updated(as_measured(measured.found.attempts, [group.model]))
        self._take(measured.found.attempts)
        self._queue_rest(group, cells, measured)
        self._write_info_sometimes()
        if not self.stop.is_over:
            self.flags = self.cooler.after_group(self.stop, self.progress)

    def _measured(self, group: Group, cells: Sequence[Cell]) -> Measured:
        try:
            return measure(
                group,
                self.session,
                self.bench,
                stop=self.stop,
                expected=self._expected(group),
                flags=self.flags,
                on_start=self._engine_started,
                on_event=self._teller(cells),
            )
        except OSError as problem:
            raise StoreError(
                f"the disk refuses the results: {problem.strerror or problem}",
                hint="Everything finished is kept. Mend the disk and start the same sweep again; it continues.",
            ) from problem

    def _expected(self, group: Group) -> Callable[[Cell], Expected]:
        def expected(cell: Cell) -> Expected:
            # the first turn that is asked for waits for all of them
            is_turn = cell.get("turn") is not None
            block = group.block if is_turn else _block_of(cell)
            cost = self._cost(group.model, block, n_reps=self.bench.spec.repetitions)
            step = self._cost(group.model, block, n_reps=1)
            took_s = self.session.longest_s.get(cell_id(cell, group.model.identity))
            return Expected(
                cell_s=cost.once_s + cost.cells_s,
                longest_step_s=max(step.once_s, step.cells_s),
                history_s=None if is_turn else took_s,
            )

        return expected

    def _engine_started(self, process: EngineProcess) -> None:
        self.lock.name_engine(process.pid, process.started_at_s)

    def _teller(self, cells: Sequence[Cell]) -> OnEvent:
        def tell(event: EngineEvent, readings: Sequence[Reading]) -> None:
            index = event.cell_index
            cell = cells[index] if index is not None and index < len(cells) else None
            self.progress.engine_said(event, cell, readings)
            if event.row is not None and index is not None and cell is not None:
                self._n_rows_now = index + 1
                self._group_share_left = 1 - self._n_rows_now / len(cells)
                tps = self._median_tps(cell, event.row)
                self.progress.row_arrived(cell, tps, self.standing())

        return tell

    def _median_tps(self, cell: Cell, row: dict[str, Any]) -> float:
        durations_ns: list[int] = row["samples_ns"]
        of_the_test = [cell.test.n_prompt + cell.test.n_gen] * len(durations_ns)
        n_tokens = self.bench.engine.repetition_tokens(row) or of_the_test
        return statistics.median(n * 1e9 / ns for n, ns in zip(n_tokens, durations_ns, strict=True))

    def _queue_rest(self, group: Group, cells: Sequence[Cell], measured: Measured) -> None:
        """What the process did not get to goes first in line, in a process of its own."""
        found = measured.found
        if measured.outcome.reason == "stopped" or found.failure is None:
            return
        failed = found.attempts[-1] if found.attempts else None
        if failed is not None and self._is_hopeless(group, measured):
            self._broken_loads[_load_key(group)] = failed
        rest = cells[found.next_index :]
        if not rest or failed is None:
            return
        lost = self._lost_turns.after_failure(group, cells[found.next_index - 1], rest)
        for part in _parts(group, lost):
            self._record_like(part, failed, "a turn before it failed again, in")
        self._rest.extendleft(reversed(_parts(group, [c for c in rest if c not in lost])))

    def _is_hopeless(self, group: Group, measured: Measured) -> bool:
        """The model does not load with these settings: the engine says so, or it died of it a few times in a row."""
        failure = measured.found.failure
        if failure is not None and failure.reach == "load":
            return measured.outcome.n_rows == 0
        steps = [t for t in measured.record.events if t.event.step not in {None, "starting"}]
        if steps or measured.outcome.n_rows:
            return False
        self._load_deaths[_load_key(group)] += 1
        return self._load_deaths[_load_key(group)] >= LOAD_DEATHS

    def _take(self, attempts: Sequence[Attempt]) -> None:
        self._count(attempts)
        for attempt in attempts:
            self.progress.cell_ended(attempt, self.standing())

    def _count(self, attempts: Sequence[Attempt]) -> None:
        self.session.learn(attempts)
        if self.auto is not None:
            self.auto.learn(attempts)
        self.n_measured += len(attempts)
        for attempt in attempts:
            self._counts[attempt.status] = self._counts.get(attempt.status, 0) + 1

    # -- standing and end

    def standing(self) -> Standing:
        """How far the run is, with what is left priced by the rates seen so far."""
        return Standing(
            n_cells=self.plan.n_cells,
            n_done=self._n_done + self._n_rows_now,
            n_failed=sum(self._counts.get(s, 0) for s in FAILED_STATUSES),
            n_unsupported=self.plan.n_unsupported,
            n_groups_left=len(self.plan.groups) - self._n_groups_taken + len(self._rest),
            eta_s=self._later_s + self._group_s * self._group_share_left,
            cells=self.auto.stands() if isinstance(self.auto, StandTeller) else (),
        )

    def _cost(self, model: Model, block: Block, *, n_reps: int) -> Cost:
        return group_cost(
            model, block, self.rates, repetitions=n_reps, warmup=self.bench.spec.warmup
        )

    def _price(self, group: Group) -> None:
        """Predict what is left, once per group: with thousands of groups it is too dear for every row."""
        costs = [
            self._cost(g.model, g.block, n_reps=self.bench.spec.repetitions)
            for g in (group, *self._rest)
        ]
        self._group_s, *rest = (cost.once_s + cost.cells_s for cost in costs)
        self._later_s = sum(rest) + self.plan.remaining_s(self._n_groups_taken, self.rates)
        self._group_share_left = 1.0

    def _write_info_sometimes(self) -> None:
        now_s = time.monotonic()
        if now_s - self._info_written_s > _INFO_EVERY_S:
            self.session.update()
            self._info_written_s = now_s

    def _finish(self) -> RunSummary:
        n_left = max(self.plan.n_cells - self._n_done, 0)
        stopped_by = "signal" if self.stop.is_asked else "time" if n_left else None
        finished = datetime.now(tz=UTC).isoformat() if not n_left else None
        self.session.update(finished_at=finished)
        notes = list(self.session.store.compact())
        counts: dict[str, int] = {}
        for status, _tries in self.session.done.values():
            counts[status] = counts.get(status, 0) + 1
        return RunSummary(
            run_dir=self.session.store.run_dir,
            run_id=self.session.info.run_id,
            counts=counts,
            n_measured=self.n_measured,
            n_left=n_left,
            stopped_by=stopped_by,
            notes=(*self.session.info.notes, *notes),
        )


def _load_key(group: Group) -> tuple[Any, ...]:
    """What a model load depends on."""
    light = {"context", "request"}
    shared = tuple((n, v) for n, v in group.block.axes if BY_NAME[n].scope not in light)
    return (group.build.content_hash, group.model.identity, shared)


def _parts(group: Group, cells: Sequence[Cell]) -> list[Group]:
    return [replace(group, block=block) for block in decompose(cells)]


def _block_of(cell: Cell) -> Block:
    axes = tuple((k, (v,)) for k, v in cell.params)
    return Block(model=cell.model, axes=axes, tests=(cell.test,), engine=cell.engine)
