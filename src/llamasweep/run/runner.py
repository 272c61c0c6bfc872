"""The run: groups one after another until all are measured, whatever happens to some of them.

Every finished group is in Parquet before the next one starts. A failed cell is a row and the rest goes on in a new process; a
signal or the clock ends the run with everything finished kept.
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llamasweep.engines.base import EngineEvent
from llamasweep.errors import StoreError
from llamasweep.results.records import FAILED_STATUSES, Attempt, Reading, Status
from llamasweep.run.cooldown import Cooler
from llamasweep.run.group_run import OnEvent
from llamasweep.run.lock import SweepLock
from llamasweep.run.measure import Bench, Measured, common_columns, describe_cell, measure
from llamasweep.run.process import EngineProcess, adopt_orphans
from llamasweep.run.progress import Progress, Standing
from llamasweep.run.session import Session
from llamasweep.run.stop import StopSignals
from llamasweep.run.timeouts import Expected
from llamasweep.sweep.cell import Cell, Group, Test, cell_id
from llamasweep.sweep.parameters import BY_NAME
from llamasweep.sweep.plan import Plan, decompose, remaining
from llamasweep.sweep.predict import Rates, predict_cell_s, predict_group_s

LEAST_FREE_BYTES = 256 << 20
_BYTES_PER_CELL = 64 << 10
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
    """One run in progress. flags: doubts that concern the next group (not quiet, contaminated …)."""

    plan: Plan
    session: Session
    bench: Bench
    rates: Rates
    progress: Progress
    lock: SweepLock
    stop: StopSignals
    cooler: Cooler
    retry_failed: bool = False
    flags: tuple[str, ...] = ()
    queue: deque[Group] = field(default_factory=deque)
    n_measured: int = 0
    n_planned_done: int = 0
    _counts: dict[str, int] = field(default_factory=dict)
    _broken_loads: dict[tuple[Any, ...], Attempt] = field(default_factory=dict)
    _info_written_s: float = 0.0
    _queue_s: float = 0.0
    _group_s: float = 0.0
    _group_share_left: float = 0.0

    def run(self) -> RunSummary:
        """Measure what is left of the plan."""
        adopt_orphans()
        self._record_unsupported()
        self._fill_queue()
        self._price(None)
        while self.queue and not self.stop.is_over:
            self._check_disk()
            group = self.queue.popleft()
            if group.model.problem is not None:
                self._record_without_engine(
                    group, "failed", _problem_kind(group.model.problem), group.model.problem
                )
            elif (broken := self._broken_loads.get(_load_key(group))) is not None:
                self._record_like(group, broken)
            else:
                self._measure(group)
        return self._finish()

    # -- before

    def _fill_queue(self) -> None:
        n_all = n_left = 0
        for group in self.plan.groups:
            n_all += group.n_cells
            for rest in remaining(group, self._is_done_in(group)):
                n_left += rest.n_cells
                self.queue.append(rest)
        self.n_planned_done = n_all - n_left

    def _is_done_in(self, group: Group) -> Callable[[Cell], bool] | None:
        """None where nothing of this run is done, so that nothing needs to be looked at."""
        if not self.session.done:
            return None
        identity, build_hash, round_index = (
            group.model.identity,
            group.build.content_hash,
            group.round_index,
        )

        def is_done(cell: Cell) -> bool:
            key = (cell_id(cell, identity), build_hash, round_index)
            return self.session.is_done(key, retry_failed=self.retry_failed)

        return is_done

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.session.store.run_dir).free
        if free < LEAST_FREE_BYTES:
            raise StoreError(
                f"only {free >> 20} MiB are free where the results go",
                hint="Free some space (`llamasweep results prune` helps) and start the same sweep again; it continues.",
            )

    # -- rows without an engine

    def _record_unsupported(self) -> None:
        for item in self.plan.unsupported:
            group = Group(build=item.build, model=item.model, block=item.block)
            self._record_without_engine(group, "unsupported", "unsupported", item.reason, once=True)

    def _record_without_engine(
        self, group: Group, status: Status, kind: str, reason: str, *, once: bool = False
    ) -> None:
        """Rows for cells that are not handed to an engine; with `once`, those that have a row already are left out."""
        log_id = f"none-{group.group_id}"
        common = common_columns(group, self.session, self.bench)
        attempts = []
        for index, cell in enumerate(group.block.cells()):
            described = describe_cell(cell, group, self.session)
            key = (described["cell_id"], group.build.content_hash, group.round_index)
            if once and self.session.n_tries(key):
                continue
            attempts.append(
                _row_without_engine(
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
        self._take(attempts)

    def _record_like(self, group: Group, broken: Attempt) -> None:
        """The model did not load with these settings a moment ago, and will not now."""
        reason = (
            f"{broken.error_message} (not tried again: the load failed for {broken.attempt_id})"
        )
        self._record_without_engine(group, broken.status, broken.error_kind or "load", reason)

    # -- measuring

    def _measure(self, group: Group) -> None:
        cells = tuple(group.block.cells())
        self._price(group)
        self.progress.group_started(group, cells, self.standing())
        measured = measure(
            group,
            self.session,
            self.bench,
            stop=self.stop,
            expected=self._expected(group),
            flags=self.flags,
            on_start=self._engine_started,
            on_event=self._teller(cells),
        )
        self.lock.name_engine(None, None)
        self._take(measured.found.attempts)
        self.rates = self.rates.updated(measured.found.attempts)
        self._queue_rest(group, cells, measured)
        self._write_info_sometimes()
        if self.queue and not self.stop.is_over:
            self.flags = self.cooler.after_group(self.stop, self.progress)

    def _expected(self, group: Group) -> Callable[[Cell], Expected]:
        def expected(cell: Cell) -> Expected:
            seconds = predict_cell_s(
                cell, group.model, self.rates, n_reps=self.bench.spec.repetitions
            )
            history_s = self.session.longest_s.get(cell_id(cell, group.model.identity))
            return Expected(
                cell_s=seconds.total_s, longest_step_s=seconds.longest_step_s, history_s=history_s
            )

        return expected

    def _engine_started(self, process: EngineProcess) -> None:
        self.lock.name_engine(process.pid, process.started_at_s)

    def _teller(self, cells: Sequence[Cell]) -> OnEvent:
        def tell(event: EngineEvent, readings: Sequence[Reading]) -> None:
            index = event.cell_index
            cell = cells[index] if index is not None and index < len(cells) else None
            if event.kind == "row" and index is not None:
                self._group_share_left = 1 - (index + 1) / len(cells)
            self.progress.engine_said(event, cell, readings)

        return tell

    def _queue_rest(self, group: Group, cells: Sequence[Cell], measured: Measured) -> None:
        """What the process did not get to goes first in line, in a process of its own."""
        found = measured.found
        if measured.outcome.reason == "stopped" or found.failure is None:
            return
        failed = found.attempts[-1] if found.attempts else None
        if (
            found.failure.reach == "load"
            and failed is not None
            and len(found.attempts) == len(cells)
        ):
            self._broken_loads[_load_key(group)] = failed
        rest = cells[found.next_index :]
        if rest:
            groups = [replace(group, block=block) for block in decompose(rest)]
            self.queue.extendleft(reversed(groups))

    def _take(self, attempts: Sequence[Attempt]) -> None:
        self.session.learn(attempts)
        for attempt in attempts:
            self.n_measured += 1
            self._counts[attempt.status] = self._counts.get(attempt.status, 0) + 1
            self.progress.cell_ended(attempt, self.standing())

    # -- standing and end

    def standing(self) -> Standing:
        """How far the run is, with what is left priced by the rates seen so far."""
        n_unsupported = sum(item.block.n_cells for item in self.plan.unsupported)
        n_left = sum(group.n_cells for group in self.queue)
        return Standing(
            n_cells=self.plan.n_cells,
            n_done=max(self.plan.n_cells - n_left, 0),
            n_failed=sum(self._counts.get(s, 0) for s in FAILED_STATUSES),
            n_unsupported=n_unsupported,
            n_groups_left=len(self.queue),
            eta_s=self._queue_s + self._group_s * self._group_share_left,
        )

    def _price(self, group: Group | None) -> None:
        """Predict what is left, once per group: with thousands of groups it is too dear for every row."""
        spec = self.bench.spec

        def seconds(g: Group) -> float:
            return predict_group_s(g, self.rates, n_reps=spec.repetitions, warmup=spec.warmup)

        self._queue_s = sum(seconds(g) for g in self.queue)
        self._group_s, self._group_share_left = (
            (seconds(group), 1.0) if group is not None else (0.0, 0.0)
        )

    def _write_info_sometimes(self) -> None:
        now_s = time.monotonic()
        if now_s - self._info_written_s > _INFO_EVERY_S:
            self.session.update()
            self._info_written_s = now_s

    def _finish(self) -> RunSummary:
        stopped_by = "signal" if self.stop.is_asked else "time" if self.queue else None
        n_left = sum(group.n_cells for group in self.queue)
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
    shared = tuple((n, v) for n, v in group.block.axes if BY_NAME[n].scope != "context")
    return (group.build.content_hash, group.model.identity, shared)


def _problem_kind(problem: str) -> str:
    return (
        "model_missing"
        if problem.startswith("no such file") or problem.startswith("no file")
        else "model_damaged"
    )


def _row_without_engine(
    common: dict[str, Any],
    described: dict[str, Any],
    test: Test,
    attempt_id: str,
    status: Status,
    kind: str,
    reason: str,
) -> Attempt:
    return Attempt(
        **common,
        attempt_id=attempt_id,
        cell_id=described["cell_id"],
        attempt_index=described["attempt_index"],
        status=status,
        error_kind=kind,
        error_message=reason,
        test_kind=test.kind,
        test_label=test.label,
        n_prompt=test.n_prompt,
        n_gen=test.n_gen,
        n_depth=int(described["requested"].get("n_depth", 0)),
        requested=described["requested"],
    )
