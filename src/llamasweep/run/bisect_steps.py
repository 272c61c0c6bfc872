"""The steps of a bisection measured in one run: the ends, a build against both ends, and fresh rounds of two builds.

Each step has rounds of its own, from its number times `STRIDE` on, so that rows tell which step they belong to and a step
that is there already is not measured again. Which step comes next is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llamasweep.builds.build_line import BuildLine
from llamasweep.engines.known import engine_named
from llamasweep.errors import BrokenBuildError, BuildError, StoreError, UsageError
from llamasweep.run.bisect_journal import Journal
from llamasweep.run.campaign import Begun, build_facts, runner_of
from llamasweep.run.progress import Progress
from llamasweep.run.round_table import RoundTable, StepRounds
from llamasweep.run.stop import StopSignals
from llamasweep.stats.bisection import Outcome
from llamasweep.stats.bisection_step import (
    STEP_ROUNDS,
    StepJudged,
    StepRates,
    confirm_answer,
    ends_decision,
    ends_differ_again,
    fresh_rounds,
    half_way,
    is_settled,
    judge_step,
)
from llamasweep.stats.confirm import Confirmation
from llamasweep.stats.judged import FloorOf
from llamasweep.stats.rounds import Rate, is_usable
from llamasweep.stats.sequential import HOPELESS_ROUNDS, Decision
from llamasweep.stats.verdicts import Comparison
from llamasweep.sweep.cell import Block, Cell, cell_id
from llamasweep.sweep.plan import Plan, Surroundings, make_plan
from llamasweep.sweep.subjects import Build, Model

STRIDE = 64
"""Rounds set apart for a step."""


class StoppedError(Exception):
    """The measuring was stopped. why: "signal" or "time"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTold:
    """One step for people. name: of the build. reason: in words where not its rates decided, else None. judged: None without
    a measured round.
    """

    name: str
    outcome: Outcome
    reason: str | None = None
    judged: StepJudged | None = None
    n_rounds: int = 0


@dataclass(slots=True)
class Steps:
    """Measures and judges. deadline_s: monotonic, None for none. floor_of_row: the machine's floor of a row's cell. n_now: rows
    made by this call.
    """

    begun: Begun
    line: BuildLine
    journal: Journal
    progress: Progress
    deadline_s: float | None
    floor_of_row: FloorOf
    n_now: int = 0
    table: RoundTable = field(default_factory=RoundTable)
    _builds: dict[str, Build] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_same(self.begun.prepared.subjects.builds)
        self.table.learn(self.begun.session.store.attempts())
        for build in self.begun.prepared.subjects.builds:
            self._builds[build.label] = build

    @property
    def ends(self) -> tuple[str, str]:
        """Labels of the good and the bad end."""
        good, bad = self.begun.prepared.subjects.builds
        return good.label, bad.label

    # -- the ends

    def measure_ends(self) -> dict[str, Decision]:
        """Every cell on both ends until it is clear. Raises BuildError where a side gives no rate at all."""
        if self.journal.cell_id is None:
            rounds = StepRounds(
                table=self.table,
                labels=self.ends,
                first_round=0,
                is_open=self._is_end_open,
                told="both ends first, every cell",
            )
            self._run(self.begun.prepared.plan, self.begun.prepared.subjects.builds, rounds)
        decisions = {
            cell: self._ends_decision(cell, self.table.whole_rounds(cell, self.ends, 0, STRIDE))
            for cell in self.table.rows
        }
        for label in self.ends:
            rows = [row for of in self.table.rows.values() for row in of.get(label, {}).values()]
            if not any(row.status == "ok" for row in rows):
                said = next((row.error_message for row in rows if row.error_message), "no row")
                raise BuildError(
                    f"the build {label!r} gives no rate in any cell: {said}",
                    hint="Both ends must run; choose others with --good and --bad.",
                )
        return decisions

    def _is_end_open(self, cell: str, rounds: Sequence[int]) -> bool:
        return not is_settled(self._ends_decision(cell, rounds), len(rounds))

    def _ends_decision(self, cell: str, rounds: Sequence[int]) -> Decision:
        return ends_decision(*self._rates(cell, self.ends, rounds), self.floor_of(cell))

    def floor_of(self, cell: str) -> float:
        """The machine's floor of a cell that has a row, as it was when the bisection chose it."""
        if cell == self.journal.cell_id and self.journal.practical_floor is not None:
            return self.journal.practical_floor
        of_builds = self.table.rows[cell].values()
        return self.floor_of_row(next(row for of in of_builds for row in of.values()))

    def ends_rates(self, first_step: int, before_step: int) -> tuple[list[Rate], list[Rate]]:
        """The chosen cell on both ends over all whole rounds of these steps."""
        cell = self._cell()
        first, end = first_step * STRIDE, before_step * STRIDE
        rounds = self.table.whole_rounds(cell, self.ends, first, end)
        return self._rates(cell, self.ends, rounds)

    def ends_again(self, before_step: int) -> Comparison:
        """Both ends over the steps alone, which had no part in choosing the cell."""
        return ends_differ_again(*self.ends_rates(1, before_step), self.floor_of(self._cell()))

    # -- one build against both ends

    def probe(self, name: str, step: int) -> StepTold:
        """What a build is; measured unless that is known. Raises StoppedError, and BuildError where an end fails."""
        if name in self.journal.told:
            outcome, reason = self.journal.told[name]
            return StepTold(name=name, outcome=outcome, reason=reason)
        judged = self._judged(name, step)
        if judged is None or judged.outcome is None:
            told = self._measured(name, step)
            if told is not None:
                return told
            judged = self._judged(name, step)
        return self._told(name, step, judged)

    def _measured(self, name: str, step: int) -> StepTold | None:
        """Measure the step; what is told at once of a build that needs or allows no measuring."""
        try:
            build = self._build(name)
        except BrokenBuildError as problem:
            return self._tell(name, "skip", problem.message)
        twin = self._twin(build)
        if twin is not None:
            label, outcome = twin
            return self._tell(name, outcome, f"it is the same program as {label}")
        plan = self._plan((*self._both(), build), STEP_ROUNDS, step)
        refused = [reason for *_, reason in (*plan.unsupported, *plan.unreadable)]
        if refused:
            return self._tell(name, "skip", refused[0])
        rounds = StepRounds(
            table=self.table,
            labels=(*self.ends, name),
            first_round=step * STRIDE,
            is_open=lambda _, __: not self._is_over(name, step),
            told=f"step {step}: {name} against both ends",
        )
        self._run(plan, (*self._both(), build), rounds)
        return None

    def _told(self, name: str, step: int, judged: StepJudged | None) -> StepTold:
        rounds = self._step_rounds(name, step)
        if judged is None or judged.outcome is None:
            return StepTold(name=name, outcome="undecided", judged=judged, n_rounds=len(rounds))
        is_failure = judged.outcome in ("skip", "hang")
        reason = self.table.why(self._cell(), name, rounds) if is_failure else None
        return StepTold(
            name=name,
            outcome=judged.outcome,
            reason=reason,
            judged=judged,
            n_rounds=len(rounds),
        )

    def _tell(self, name: str, outcome: Outcome, reason: str) -> StepTold:
        self.journal.tell(name, outcome, reason)
        return StepTold(name=name, outcome=outcome, reason=reason)

    def _twin(self, build: Build) -> tuple[str, Outcome] | None:
        good, bad = self._both()
        for end, outcome in ((good, "good"), (bad, "bad")):
            if end.content_hash == build.content_hash:
                return end.label, "good" if outcome == "good" else "bad"
        return None

    def _is_over(self, name: str, step: int) -> bool:
        judged = self._judged(name, step)
        rounds = self._step_rounds(name, step)
        for label in self.ends:
            rates = self.table.rates(self._cell(), label, rounds)
            if len(rates) >= HOPELESS_ROUNDS and not any(map(is_usable, rates)):
                why = self.table.why(self._cell(), label, rounds)
                raise BuildError(
                    f"the build {label!r} gives no rate any more: {why}",
                    hint="Mend what is wrong with it; the same command continues, --fresh begins anew.",
                )
        return judged is not None and judged.outcome is not None

    def _judged(self, name: str, step: int) -> StepJudged | None:
        """Where a step stands, from its rows; None without a whole round."""
        cell, rounds = self._cell(), self._step_rounds(name, step)
        if not rounds:
            return None
        good, bad = self._rates(cell, self.ends, rounds)
        rates = StepRates(
            good_tps=good,
            build_tps=self.table.rates(cell, name, rounds),
            bad_tps=bad,
            fates=self.table.fates(cell, name, rounds),
        )
        floor = half_way(*self.ends_rates(0, step))
        return judge_step(rates, floor_fraction=floor, practical_floor=self.floor_of(cell))

    def _step_rounds(self, name: str, step: int) -> list[int]:
        labels = (*self.ends, name)
        return self.table.whole_rounds(self._cell(), labels, step * STRIDE, (step + 1) * STRIDE)

    # -- fresh rounds

    def confirm(self, good: str, bad: str, step: int) -> Confirmation:
        """Fresh rounds of two builds. Raises StoppedError, and BuildError where one cannot be had any more."""
        cell, first = self._cell(), step * STRIDE
        n_fresh = fresh_rounds(ends_differ_again(*self.ends_rates(0, step), self.floor_of(cell)))
        labels = (good, bad)
        if len(self.table.whole_rounds(cell, labels, first, first + n_fresh)) < n_fresh:
            builds = tuple(self._build(name) for name in labels)
            rounds = StepRounds(
                table=self.table,
                labels=labels,
                first_round=first,
                is_open=lambda _, so_far: len(so_far) < n_fresh,
                told=f"step {step}: {n_fresh} fresh rounds of {good} and {bad}",
            )
            self._run(self._plan(builds, n_fresh, step), builds, rounds)
        found = self.table.whole_rounds(cell, labels, first, first + n_fresh)
        floor = min(half_way(*self.ends_rates(0, step)), self.floor_of(cell))
        return confirm_answer(*self._rates(cell, labels, found), floor_fraction=floor)

    # -- measuring

    def _run(self, plan: Plan, builds: Sequence[Build], rounds: StepRounds) -> None:
        self._remember(builds)
        prepared = self.begun.prepared
        subjects = replace(prepared.subjects, builds=tuple(builds))
        begun = replace(self.begun, prepared=replace(prepared, plan=plan, subjects=subjects))
        with StopSignals(self.deadline_s) as stop:
            if stop.is_over:
                raise StoppedError("time")
            runner = runner_of(begun, self.progress, stop)
            runner.auto = rounds
            summary = runner.run()
        self.begun = replace(self.begun, prepared=replace(prepared, rates=runner.rates))
        self.begun.session.update(finished_at=None)
        self.n_now += summary.n_measured
        if summary.stopped_by is not None:
            raise StoppedError(summary.stopped_by)

    def _remember(self, builds: Sequence[Build]) -> None:
        """Every build that was measured stands in run.json, not only those of this step."""
        self._check_same(builds)
        home = os.path.expanduser("~")  # noqa: PTH111  (Path.home() raises where there is none)
        for build in builds:
            self.journal.add_facts(build_facts(build, home))
        self.begun.session.update(builds=self.journal.facts)

    def _check_same(self, builds: Sequence[Build]) -> None:
        """Raises UsageError where one is another program than the one that was measured under its name."""
        known = {facts.get("label"): facts.get("content_hash") for facts in self.journal.facts}
        changed = [b.label for b in builds if known.get(b.label, b.content_hash) != b.content_hash]
        if changed:
            raise UsageError(
                f"{changed[0]!r} is another program than the one that this bisection has measured",
                hint="It was rebuilt, or the compiler changed: begin anew with --fresh.",
            )

    def _plan(self, builds: Sequence[Build], n_rounds: int, step: int) -> Plan:
        prepared = self.begun.prepared
        model, cell = self._chosen()
        block = Block(
            model=cell.model,
            axes=tuple((name, (value,)) for name, value in cell.params),
            tests=(cell.test,),
            engine=cell.engine,
        )
        plan = make_plan(
            replace(prepared.spec, rounds=n_rounds),
            [block],
            models={cell.model: model},
            builds=builds,
            restrictions=engine_named(prepared.spec.engine).restrictions,
            rates=prepared.rates,
            surroundings=Surroundings(words={}),
        )
        return replace(plan, groups=plan.groups.starting_at(step * STRIDE, rounds=n_rounds))

    def asked_cells(self) -> set[str]:
        """Ids of the cells that the sweep asks for now, `--only` heeded; a run that is taken up may hold others."""
        return {key for key, _, _ in self._planned()}

    def _planned(self) -> Iterator[tuple[str, Model, Cell]]:
        for part in self.begun.prepared.plan.groups.parts:
            for index in range(part.n_keys * len(part.rests)):
                for cell in part.block(index).cells():
                    yield cell_id(cell, part.model.identity), part.model, cell

    def _chosen(self) -> tuple[Model, Cell]:
        for key, model, cell in self._planned():
            if key == self._cell():
                return model, cell
        raise StoreError(
            "the sweep no longer has the cell that this bisection decides on",
            hint="Give the sweep file that it began with, or begin anew with --fresh.",
        )

    def _cell(self) -> str:
        assert self.journal.cell_id is not None  # noqa: S101  (chosen before the first step)
        return self.journal.cell_id

    def _both(self) -> tuple[Build, Build]:
        good, bad = self.ends
        return self._builds[good], self._builds[bad]

    def _build(self, name: str) -> Build:
        if name not in self._builds:
            self._builds[name] = self.line.build(name)
        return self._builds[name]

    def _rates(
        self, cell: str, labels: tuple[str, str], rounds: Sequence[int]
    ) -> tuple[list[Rate], list[Rate]]:
        a, b = (self.table.rates(cell, label, rounds) for label in labels)
        return a, b


def choose_cell(decisions: Mapping[str, Decision]) -> str | None:
    """The cell that is slower on the bad end most clearly: the change against the width of its interval; None where none is."""

    def clearness(cell: str) -> float:
        found = decisions[cell].comparison
        if found.ratio is None or found.low is None or found.high is None:
            return 0.0
        return (1 - found.ratio) / (found.high - found.low + 1e-9)

    slower = [cell for cell, decision in decisions.items() if decision.state == "slower"]
    return max(slower, key=clearness, default=None)
