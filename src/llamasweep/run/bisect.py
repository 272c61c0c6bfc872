"""A bisection from two ends to an answer, in one run that resumes; and one step of somebody else's (`git bisect run`).

Joins the search (`stats.bisection`), the builds in a line and the measuring of steps; what is printed is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from llamasweep.builds.build_line import BuildLine
from llamasweep.builds.registry import Registry
from llamasweep.errors import UsageError
from llamasweep.run.bisect_cost import compile_lines, cost_lines
from llamasweep.run.bisect_journal import open_journal
from llamasweep.run.bisect_steps import Steps, StepTold, StoppedError, choose_cell
from llamasweep.run.campaign import RunOptions, begin, deadline_s
from llamasweep.run.noise import SPOILED
from llamasweep.run.progress import Progress
from llamasweep.run.resolve import OnSynth
from llamasweep.run.sides import floor_finder
from llamasweep.stats.bisection import Answer, Bisection, Confirm
from llamasweep.stats.bisection_step import STEP_ROUNDS, share_explained
from llamasweep.stats.confirm import Confirmation
from llamasweep.stats.differences import Difference, differences
from llamasweep.stats.sequential import Decision
from llamasweep.stats.verdicts import Comparison
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import Build
from llamasweep.units import counted

State = Literal["found", "unconfirmed", "not_slower", "same_again", "stopped"]
"""found: fresh rounds confirm the answer. unconfirmed: they do not. not_slower: the bad end is not slower for sure.
same_again: it was, and is not in the steps. stopped: by a signal or the time."""

MEASURES_WITH = "llama-bench"
LEAST_PAIRS_AGAIN = 6
MOST_TITLES = 20
NOT_ASKED = ("unsupported", "skipped")
"""Rows for which no engine ran."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectFound:
    """What a bisection found so far.

    names: all builds in order. cell: of the decision, in words; None before one is chosen. ends: every cell, by its id, on the
    ends; cells: id -> words. whole: the chosen cell on the ends over all rounds. answer: None before the end. step: the first
    slow build against the last fast one on fresh rounds. share: how much of the way between the ends that is. n_measured:
    processes of this call; n_measurements: of all calls. least_steps: log2 minimum.
    """

    state: State
    run_dir: Path
    run_id: str
    names: tuple[str, ...]
    cell: str | None
    cells: dict[str, str]
    ends: dict[str, Decision]
    whole: Comparison | None
    steps: tuple[StepTold, ...]
    answer: Answer | None
    step: Comparison | None
    share: float | None
    titles: dict[str, str]
    differences: tuple[Difference, ...]
    n_spoiled: int
    n_measured: int
    n_measurements: int
    least_steps: int
    stopped_by: str | None


class _LineRegistry(Registry):
    """Hands the ends of a line to whoever resolves the sweep's builds."""

    def __init__(self, line: BuildLine) -> None:
        super().__init__()
        self._line = line

    def get(self, name_or_path: str) -> Build:
        return self._line.build(name_or_path)


def run_bisect(
    spec: SweepSpec,
    options: RunOptions,
    line: BuildLine,
    progress: Progress,
    on_synth: OnSynth | None = None,
) -> BisectFound:
    """Search, or go on with it: nothing is measured twice. Raises the errors of its parts; everything finished is kept."""
    good, bad = line.names[0], line.names[-1]
    for sentence in compile_lines(line):
        progress.note(sentence)
    name = " ".join((spec.name, "bisect", *([line.source] if line.source != "registered" else [])))
    with ExitStack() as stack:
        steps = open_steps(
            replace(spec, name=f"{name} {good} {bad}"),
            options,
            line,
            line.names,
            progress,
            stack,
            on_synth,
        )
        if steps.journal.names != list(line.names):
            raise UsageError(
                f"the builds from {good} to {bad} are not those that this bisection began with",
                hint="Begin anew with --fresh.",
            )
        for sentence in cost_lines(line, steps.begun.prepared.plan):
            progress.note(sentence)
        search = _Search(steps, line)
        try:
            search.run()
        except StoppedError as stopped:
            search.stopped_by = stopped.why
        found = search.found()
        if search.stopped_by is None:
            steps.begun.session.update(finished_at=datetime.now(tz=UTC).isoformat())
    return found


def run_bisect_step(
    spec: SweepSpec,
    options: RunOptions,
    asked: tuple[BuildLine, str],
    progress: Progress,
    on_synth: OnSynth | None = None,
) -> tuple[StepTold | None, str | None]:
    """One build of a search that another program leads. asked: the ends and the build in a line, and the build's name.

    (what it is, None) or (None, why there is no answer). The ends' first rounds are those of the first call.
    """
    line, name = asked
    good, bad = line.names[0], line.names[-1]
    with ExitStack() as stack:
        steps = open_steps(
            replace(spec, name=f"{spec.name} bisect-step {good} {bad}"),
            options,
            line,
            (good, bad),
            progress,
            stack,
            on_synth,
        )
        try:
            decisions = steps.measure_ends()
            if not _chosen(steps, decisions):
                return None, "the bad build is not slower than the good one for sure"
            if name not in steps.journal.names:
                steps.journal.names.append(name)
                steps.journal.save()
            return steps.probe(name, steps.journal.names.index(name) - 1), None
        except StoppedError as stopped:
            return None, "stopped" if stopped.why == "signal" else "time is up"


def open_steps(
    spec: SweepSpec,
    options: RunOptions,
    line: BuildLine,
    names: Sequence[str],
    progress: Progress,
    stack: ExitStack,
    on_synth: OnSynth | None,
) -> Steps:
    """The run of a bisection, new or taken up again. names: for its journal, if new.

    Raises UsageError where both ends are one program, or not the ones that it began with.
    """
    if spec.engine != MEASURES_WITH:
        raise UsageError(
            f"a bisection measures with {MEASURES_WITH}, and this sweep asks for {spec.engine}",
            hint="Give a sweep without `engine`.",
        )
    ends = (line.names[0], line.names[-1])
    by_turns = replace(spec, order="interleaved", rounds=STEP_ROUNDS, builds=ends)
    end_s = deadline_s(spec, options.max_time_s)
    begun = begin(
        by_turns,
        replace(options, wishes=replace(options.wishes, build_names=ends)),
        progress,
        stack,
        registry=_LineRegistry(line),
        on_synth=on_synth,
    )
    good, bad = begun.prepared.subjects.builds
    if good.content_hash == bad.content_hash:
        raise UsageError(
            f"{good.label!r} and {bad.label!r} are the same program",
            hint="Nothing can be slower; name two different builds.",
        )
    return Steps(
        begun=begun,
        line=line,
        journal=open_journal(begun.session.store.run_dir, list(names)),
        progress=progress,
        deadline_s=end_s,
        floor_of_row=floor_finder(),
    )


def _chosen(steps: Steps, decisions: dict[str, Decision]) -> bool:
    """Whether there is a cell to decide on; the first time it is chosen. Raises UsageError where it is not asked for any more."""
    asked = steps.asked_cells()
    if steps.journal.cell_id is None:
        cell = choose_cell({key: found for key, found in decisions.items() if key in asked})
        if cell is not None:
            steps.journal.choose(cell, steps.floor_of(cell))
    elif steps.journal.cell_id not in asked:
        raise UsageError(
            f"this bisection decides on {_cell_words(steps, steps.journal.cell_id)}, which the sweep with --only leaves out",
            hint="Give the sweep and the --only that it began with, or begin anew with --fresh.",
        )
    return steps.journal.cell_id is not None


class _Search:
    """Goes through the steps in their order; those that are there already cost nothing."""

    def __init__(self, steps: Steps, line: BuildLine) -> None:
        self.steps, self.line, self.names = steps, line, line.names
        self.bisection = Bisection(n_builds=len(line.names))
        self.decisions: dict[str, Decision] = {}
        self.told: list[StepTold] = []
        self.answer: Answer | None = None
        self.confirmed: Confirmation | None = None
        self.stopped_by: str | None = None
        self.is_same_again = False
        self.n_steps = 0

    def run(self) -> None:
        """Until there is an answer. Raises StoppedError."""
        self.decisions = self.steps.measure_ends()
        if not _chosen(self.steps, self.decisions):
            return
        while not isinstance(action := self.bisection.next(), Answer):
            self.n_steps += 1
            if isinstance(action, Confirm):
                good, bad = self.names[action.good], self.names[action.bad]
                self.confirmed = self.steps.confirm(good, bad, self.n_steps)
                self.bisection.tell_confirmed(action, is_confirmed=self.confirmed.is_confirmed)
                continue
            told = self.steps.probe(self.names[action.index], self.n_steps)
            self.told.append(told)
            self.bisection.tell(action.index, told.outcome)
            self.steps.progress.note(_step_line(told, self.bisection))
            again = self.steps.ends_again(self.n_steps + 1)
            if again.verdict in ("same", "faster") and again.n_rounds >= LEAST_PAIRS_AGAIN:
                self.is_same_again = True
                return
        self.answer = action

    def found(self) -> BisectFound:
        """What there is, whether at the end or not."""
        session = self.steps.begun.session
        cell = self.steps.journal.cell_id
        whole = self.steps.ends_again(self.n_steps + 1) if cell and self.told else None
        if cell in self.decisions and (whole is None or whole.ratio is None):
            whole = self.decisions[cell].comparison
        is_told = self.confirmed is not None and self.answer is not None
        step = self.confirmed.comparison if self.confirmed is not None and is_told else None
        return BisectFound(
            state=self._state(),
            run_dir=session.store.run_dir,
            run_id=session.info.run_id,
            names=self.names,
            cell=_cell_words(self.steps, cell),
            cells={key: _cell_words(self.steps, key) or key for key in self.decisions},
            ends=self.decisions,
            whole=whole,
            steps=tuple(self.told),
            answer=self.answer,
            step=step,
            share=None if step is None or whole is None else share_explained(step, whole),
            titles=self._titles(),
            differences=self._differences(cell),
            n_spoiled=self._n_spoiled(),
            n_measured=self.steps.n_now,
            n_measurements=sum(status not in NOT_ASKED for status, _ in session.done.values()),
            least_steps=self.bisection.least_steps,
            stopped_by=self.stopped_by,
        )

    def _titles(self) -> dict[str, str]:
        suspects = self.answer.suspects if self.answer is not None else ()
        told = {self.names[i]: self.line.title(self.names[i]) for i in suspects[:MOST_TITLES]}
        return {name: title for name, title in told.items() if title is not None}

    def _differences(self, cell: str | None) -> tuple[Difference, ...]:
        if self.answer is None or cell is None:
            return ()
        ends = (self.names[self.answer.good], self.names[self.answer.bad])
        good, bad = (list(self.steps.table.of(cell, name).values()) for name in ends)
        return differences(good, bad)

    def _n_spoiled(self) -> int:
        return sum(
            bool(SPOILED & set(row.flags))
            for of_cell in self.steps.table.rows.values()
            for of_build in of_cell.values()
            for row in of_build.values()
        )

    def _state(self) -> State:
        if self.stopped_by is not None:
            return "stopped"
        if self.is_same_again:
            return "same_again"
        if self.answer is None:
            return "not_slower"
        return "found" if self.answer.is_confirmed else "unconfirmed"


def _step_line(told: StepTold, bisection: Bisection) -> str:
    words = {
        "good": "fast",
        "bad": "slow",
        "hang": "hangs, which counts as slow",
        "skip": "skipped",
    }
    what = words.get(told.outcome, told.outcome)
    reason = f" ({told.reason.splitlines()[0]})" if told.reason else ""
    good, slow = bisection.bounds()
    rounds = f" after {counted(told.n_rounds, 'round')}" if told.n_rounds else ""
    left = f"{slow - good} builds are left" if slow - good > 1 else "one build is left"
    return f"{told.name}: {what}{rounds}{reason}; {left} that may have made it slower"


def _cell_words(steps: Steps, cell: str | None) -> str | None:
    rows = (row for of in steps.table.rows.get(cell or "", {}).values() for row in of.values())
    row = next(rows, None)
    if row is None:
        return None
    depth = f" @ d{row.n_depth}" if row.n_depth else ""
    asked = [f"{name} {value}" for name, value in row.requested.items() if name != "n_depth"]
    return " · ".join([f"{row.model_label} {row.test_label}{depth}", *asked])
