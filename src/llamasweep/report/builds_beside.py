"""Builds side by side: the same question asked of several builds on one machine. Rows in, plain data out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import compare, median
from llamasweep.report.names import value_word
from llamasweep.report.rows import Row
from llamasweep.report.strips import representative

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
        timed = [row for row in representative(rows, kind) if row.rates is not None]
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
    """Which build is faster, and for how many models, without a full stop."""
    verb = {"tg": "writes", "pp": "reads"}[view.kind]
    if len(view.builds) > 2:
        fastest = [max(of_line, key=median).build for _, of_line in view.lines]
        best = max(dict.fromkeys(fastest), key=fastest.count)
        whom = f"{fastest.count(best)} of {len(fastest)} models" if len(fastest) > 1 else "it"
        return f"Build {value_word(best)} {verb} fastest for {whom}"
    first, second = view.builds
    verdicts = [compare(of_line[1], of_line[0]) for _, of_line in view.lines]
    n = len(verdicts)
    if verdicts.count("faster") + verdicts.count("slower") == 0:
        if "undecided" in verdicts:
            return f"Builds {first} and {second} show no difference beyond the spread"
        return f"Builds {first} and {second} {verb.rstrip('s')} at the same speed (within 3 %)"
    word = "faster" if verdicts.count("faster") >= verdicts.count("slower") else "slower"
    ratios = [
        median(of_line[1]) / median(of_line[0])
        for verdict, (_, of_line) in zip(verdicts, view.lines, strict=True)
        if verdict == word
    ]
    by = figures.span(
        *(figures.percent(abs(ratio - 1)) for ratio in sorted((min(ratios), max(ratios))))
    )
    whom = f" for {len(ratios)} of {n} models" if n > 1 else ""
    return f"Build {second} {verb} {by} {word} than {first}{whom}"


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
