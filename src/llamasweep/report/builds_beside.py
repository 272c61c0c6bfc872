"""Builds side by side: the same question asked of several builds on one machine. Rows in, plain data out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import Verdict, compare, is_repeated, median
from llamasweep.report.names import value_word
from llamasweep.report.rows import Row
from llamasweep.report.strips import of_least_load

MAX_LINES = 16
MAX_BUILDS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Questions of one kind. builds: in the order met. lines: (question in words, its rows in the order of builds).

    n_left_out: questions beyond the bound.
    """

    kind: str
    test: str
    builds: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Row, ...]], ...]
    n_left_out: int


def builds_beside(rows: Sequence[Row]) -> tuple[Beside, ...]:
    """tg and pp, each model and quantisation at the least depth in the setting in which some build was fastest."""
    found = []
    for kind in ("tg", "pp"):
        timed = [row for row in of_least_load(rows, kind) if row.rates is not None]
        builds = tuple(dict.fromkeys(row.build for row in timed))[:MAX_BUILDS]
        lines = _lines(timed, builds)
        if lines:
            found.append(
                Beside(
                    kind=kind,
                    test=timed[0].test,
                    builds=builds,
                    lines=tuple(lines[:MAX_LINES]),
                    n_left_out=max(0, len(lines) - MAX_LINES),
                )
            )
    return tuple(found)


def title(view: Beside) -> str:
    """Which build is faster and which is slower, each with how many models, without a full stop."""
    verb = {"tg": "writes", "pp": "reads"}[view.kind]
    if len(view.builds) > 2:
        return _title_of_many(view, verb)
    first, second = view.builds
    verdicts = [compare(of_line[1], of_line[0]) for _, of_line in view.lines]
    parts = [part for word in _DIRECTIONS if (part := _direction(view, verdicts, word))]
    if parts:
        parts[0] += f" than {first}"
        return f"Build {second} {verb} {' and '.join(parts)}"
    rows = [row for _, of_line in view.lines for row in of_line]
    if "undecided" not in verdicts:
        return f"Builds {first} and {second} {verb.rstrip('s')} at the same speed (within 3 %)"
    if is_repeated(*rows):
        return f"Builds {first} and {second} show no difference beyond the spread"
    gaps = sorted(median(b) / median(a) - 1 for _, (a, b) in view.lines)
    return (
        f"Builds {first} and {second} were measured once, "
        f"{figures.span(*(figures.percent(abs(gap)) for gap in sorted((gaps[0], gaps[-1]), key=abs)))} apart"
    )


_DIRECTIONS: tuple[Verdict, Verdict] = ("faster", "slower")


def _direction(view: Beside, verdicts: Sequence[Verdict], word: Verdict) -> str:
    """`5 to 10 % faster for 2 of 5 models`; '' where none is."""
    ratios = sorted(
        median(of_line[1]) / median(of_line[0])
        for verdict, (_, of_line) in zip(verdicts, view.lines, strict=True)
        if verdict == word
    )
    if not ratios:
        return ""
    ends = sorted((abs(ratios[0] - 1), abs(ratios[-1] - 1)))
    whom = f" for {len(ratios)} of {len(verdicts)} models" if len(verdicts) > 1 else ""
    return f"{figures.span(*map(figures.percent, ends))} {word}{whom}"


def _title_of_many(view: Beside, verb: str) -> str:
    """The build that is faster than every other beyond the spread for most models."""
    wins = [
        row.build
        for _, of_line in view.lines
        for row in of_line
        if all(compare(row, other) == "faster" for other in of_line if other is not row)
    ]
    if not wins:
        return f"No build {verb} faster than all others beyond the spread"
    best = max(dict.fromkeys(wins), key=wins.count)
    n = len(view.lines)
    whom = f" for {wins.count(best)} of {n} models" if n > 1 else ""
    return f"Build {value_word(best)} {verb} faster than every other{whom}"


def _lines(timed: Sequence[Row], builds: tuple[str, ...]) -> list[tuple[str, tuple[Row, ...]]]:
    asked: dict[tuple[str, str], dict[str, Row]] = {}
    for row in timed:
        asked.setdefault((row.machine, row.attempt.cell_id), {})[row.build] = row
    most: dict[tuple[str, str], list[tuple[Row, ...]]] = {}
    for of_question in asked.values():
        answers = tuple(of_question[build] for build in builds if build in of_question)
        if len(answers) > 1 and len(answers) == len(builds):
            one = answers[0]
            most.setdefault((one.machine, one.subject), []).append(answers)
    chosen = [_least_depth_fastest(questions) for questions in most.values()]
    chosen.sort(key=lambda answers: -max(median(row) for row in answers))
    return [(answers[0].subject, answers) for answers in chosen]


def _least_depth_fastest(questions: Sequence[tuple[Row, ...]]) -> tuple[Row, ...]:
    return min(
        questions,
        key=lambda answers: (answers[0].attempt.n_depth, -max(median(row) for row in answers)),
    )
