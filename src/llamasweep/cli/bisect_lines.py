"""What a bisection says at its end: the answer with its size and how sure it is, each step, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llamasweep.cli.terminal import printable, table_lines
from llamasweep.units import counted

if TYPE_CHECKING:
    from llamasweep.run.bisect import BisectFound
    from llamasweep.run.bisect_steps import StepTold
    from llamasweep.stats.verdicts import Comparison

_WORDS = {
    "good": "fast",
    "bad": "slow",
    "hang": "hangs",
    "skip": "skipped",
    "undecided": "undecided",
}
_MOST_NAMED = 8
_MOST_OF_STEP = 0.7
"""A step that explains less of the way between the ends is not the only change."""


def bisect_lines(found: BisectFound) -> list[str]:
    """Everything for people, the answer last."""
    lines = [f"Decided on: {found.cell}"] if found.cell else []
    if found.whole is not None:
        lines.append(
            f"{found.names[-1]} against {found.names[0]}: {change_words(found.whole)}, {counted(found.whole.n_rounds, 'round')}"
        )
    if found.steps:
        lines += [
            "",
            *table_lines(("build", "is", "against the good end", "rounds", ""), _rows(found)),
            "",
        ]
    if found.n_spoiled:
        is_one = found.n_spoiled == 1
        lines.append(
            f"{counted(found.n_spoiled, 'measurement')} {'was' if is_one else 'were'} spoiled (the machine throttled, or "
            f"memory was taken); {'it counts' if is_one else 'they count'} all the same."
        )
    lines += [*_answer_lines(found), _count_line(found)]
    return [printable(line) for line in lines]


def _rows(found: BisectFound) -> list[tuple[str, ...]]:
    return [
        (
            step.name,
            _WORDS[step.outcome],
            change_words(step.judged.to_good) if step.judged is not None else "",
            str(step.n_rounds) if step.n_rounds else "",
            _remark(step),
        )
        for step in found.steps
    ]


def _remark(step: StepTold) -> str:
    if step.judged is not None and step.judged.is_between:
        return "between both ends: there is more than one change"
    return "" if step.reason is None else step.reason.splitlines()[0][:100]


def change_words(comparison: Comparison) -> str:
    """`-6.1% [-7.0%, -5.2%]`; without an interval the change alone, without a rate that."""
    if comparison.ratio is None:
        return "no rate"
    change = f"{comparison.ratio - 1:+.1%}"
    if comparison.low is None or comparison.high is None:
        return change
    return f"{change} [{comparison.low - 1:+.1%}, {comparison.high - 1:+.1%}]"


def _answer_lines(found: BisectFound) -> list[str]:
    if found.state == "stopped":
        why = "Time is up" if found.stopped_by == "time" else "Stopped"
        return [f"{why}; the same command continues and measures nothing twice."]
    if found.state == "not_slower":
        told = [
            f"  {found.cells[c]}: {change_words(d.comparison)}, {d.comparison.verdict}"
            for c, d in found.ends.items()
        ]
        return [
            f"{found.names[-1]} is not slower than {found.names[0]} for sure in any cell:",
            *told,
        ]
    if found.state == "same_again":
        return [
            "Measured again beside the steps, the ends do not differ beyond the floor: there is nothing to find."
        ]
    return _found_lines(found)


def _found_lines(found: BisectFound) -> list[str]:
    from llamasweep.report.compare_words import difference_lines

    answer = found.answer
    assert answer is not None  # noqa: S101  (of these two states)
    good, suspects = found.names[answer.good], [found.names[i] for i in answer.suspects]
    lines = [f"Hangs, and the build after it is fast again: {found.names[i]}" for i in answer.hung]
    if answer.is_exact:
        lines.append(f"{suspects[0]} made it slower; {good} before it is fast.")
    else:
        lines.append(f"One of {_named(suspects)} made it slower; {good} before them is fast.")
    lines += [f"  {name}  {title}" for name, title in found.titles.items()]
    if found.step is not None:
        lines.append(
            f"On {found.step.n_rounds} fresh rounds {suspects[-1]} is {change_words(found.step)} against {good}."
        )
    told = difference_lines(found.differences)
    if told:
        lines += [f"What else differs ({good} | {suspects[-1]}):", *(f"  {line}" for line in told)]
    if answer.confidence is not None:
        lines.append(
            f"Confidence: at least {answer.confidence:.1%} that {suspects[-1]} is slower than {good}; that the speed changed "
            "once between A and B, as every bisection takes for true, is not counted in."
        )
    else:
        lines.append(
            "Fresh rounds do not confirm it, so this is open: the noise is too large for this change."
        )
    if found.share is not None and 0 < found.share < _MOST_OF_STEP:
        lines.append(
            f"That is {found.share:.0%} of the whole change: another one comes later. Search on: --good {suspects[-1]} "
            f"--bad {found.names[-1]}"
        )
    return lines


def _named(names: list[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)} builds)"


def _count_line(found: BisectFound) -> str:
    n = sum(step.n_rounds > 0 for step in found.steps)
    return (
        f"{counted(found.n_measurements, 'measurement')} in all, {found.n_measured} now; "
        f"{counted(n, 'build')} measured between the ends "
        f"(log2 minimum: {found.least_steps}). Run: {found.run_dir}"
    )


def plain_bisection(found: BisectFound, exit_code: int) -> dict[str, Any]:
    """The same as plain data."""
    answer = found.answer
    return {
        "state": found.state,
        "exit_code": exit_code,
        "run_id": found.run_id,
        "run_dir": str(found.run_dir),
        "good": found.names[0],
        "bad": found.names[-1],
        "n_builds": len(found.names),
        "cell": found.cell,
        "ends": [
            {"cell_id": key, "cell": found.cells[key], "state": d.state, **_figures(d.comparison)}
            for key, d in found.ends.items()
        ],
        "whole": None if found.whole is None else _figures(found.whole),
        "steps": [plain_step(step) for step in found.steps],
        "last_fast": None if answer is None else found.names[answer.good],
        "first_slow": None if answer is None else found.names[answer.bad],
        "suspects": [] if answer is None else [found.names[i] for i in answer.suspects],
        "titles": found.titles,
        "differences": [
            {"name": d.name, "a": d.a, "b": d.b, "is_default": d.is_default}
            for d in found.differences
        ],
        "n_spoiled": found.n_spoiled,
        "hung": [] if answer is None else [found.names[i] for i in answer.hung],
        "is_confirmed": None if answer is None else answer.is_confirmed,
        "confidence": None if answer is None else answer.confidence,
        "step": None if found.step is None else _figures(found.step),
        "share_of_whole": found.share,
        "n_measurements": found.n_measurements,
        "n_measured_now": found.n_measured,
        "least_steps": found.least_steps,
        "stopped_by": found.stopped_by,
    }


def plain_step(step: StepTold) -> dict[str, Any]:
    """One step as plain data."""
    judged = step.judged
    return {
        "build": step.name,
        "outcome": step.outcome,
        "reason": step.reason,
        "n_rounds": step.n_rounds,
        "is_between": None if judged is None else judged.is_between,
        "against_good": None if judged is None else _figures(judged.to_good),
        "against_bad": None if judged is None else _figures(judged.to_bad),
    }


def _figures(comparison: Comparison) -> dict[str, Any]:
    return {
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "n_rounds": comparison.n_rounds,
    }
