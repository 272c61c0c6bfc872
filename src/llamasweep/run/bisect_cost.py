"""What a bisection will cost, in sentences, before it starts: builds to make, measurements, and a time where one is known."""

from __future__ import annotations

import math

from llamasweep.builds.build_line import BuildLine
from llamasweep.stats.bisection_step import STEP_ROUNDS
from llamasweep.stats.confirm import LEAST_ROUNDS
from llamasweep.sweep.plan import Plan
from llamasweep.sweep.predict import UNKNOWN_MODEL
from llamasweep.units import format_seconds

LIKELY_ROUNDS = 8
COMPILE_MINUTES = 5


def cost_lines(line: BuildLine, plan: Plan) -> list[str]:
    """What it will take, in sentences, from the plan of the ends; nothing where that has no cell, no time where none is known."""
    n_cells = plan.n_cells // (2 * STEP_ROUNDS)
    if n_cells == 0:
        return []
    n_steps = _likely_steps(line)
    n_all = 2 * LIKELY_ROUNDS * n_cells + 3 * LIKELY_ROUNDS * n_steps + 2 * LEAST_ROUNDS
    is_known = UNKNOWN_MODEL not in plan.basis
    time = f"about {format_seconds(n_all * plan.predicted_s / plan.n_cells)}" if is_known else ""
    between = len(line.names) - 2
    return [
        f"{line.what}: {_steps_words(between, n_steps)}; with the ends before and fresh rounds after, some {n_all} measurements, "
        f"{time or 'nobody knows how long: files of some models are not known'}"
    ]


def _steps_words(n_between: int, n_steps: int) -> str:
    if n_between == 0:
        return "none lies between them"
    if n_between == 1:
        return "the one between the ends is measured, with both beside it"
    how_many = f"about {n_steps} of" if n_steps < n_between else "at most"
    return f"{how_many} the {n_between} between the ends are measured, with both beside each"


def compile_lines(line: BuildLine) -> list[str]:
    """What is fetched and compiled, said before anything is."""
    n_missing = sum(not line.is_ready(name) for name in line.names)
    if not n_missing:
        return []
    n_made = min(n_missing, _likely_steps(line) + 2)
    fetched = "fetched from PyPI and compiled" if line.source == "pypi" else "compiled"
    minutes = f"some {COMPILE_MINUTES} minutes"
    if n_missing == 1:
        return [
            f"{line.what}: one is not here and is {fetched} when it is asked for, {minutes} on two cores"
        ]
    which = "all of them" if n_made == n_missing else f"about {n_made} of them"
    return [
        f"{line.what}: builds that are not here are {fetched} when they are asked for, {which}, {minutes} "
        "each on two cores"
    ]


def _likely_steps(line: BuildLine) -> int:
    """Of the builds between the ends, so at most as many as there are."""
    n_between = len(line.names) - 2
    return min(n_between, math.ceil(math.log2(n_between + 1)) + 1)
