"""What a bisection says that it will cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from llamasweep.run.bisect_cost import compile_lines, cost_lines
from llamasweep.stats.bisection_step import STEP_ROUNDS
from llamasweep.sweep.predict import UNKNOWN_MODEL


def _line(n_builds: int, n_ready: int = 0, source: str = "git") -> Any:
    names = tuple(f"b{i}" for i in range(n_builds))
    return SimpleNamespace(
        what=f"{n_builds} builds",
        names=names,
        source=source,
        is_ready=lambda name: names.index(name) < n_ready,
    )


def _plan(n_cells: int = 1, each_s: float = 2.0, basis: tuple[str, ...] = ()) -> Any:
    n_rows = n_cells * 2 * STEP_ROUNDS
    return SimpleNamespace(n_cells=n_rows, predicted_s=n_rows * each_s, basis=basis)


@pytest.mark.parametrize(
    ("n_builds", "words"),
    [
        (2, "none lies between them; "),
        (3, "the one between the ends is measured, with both beside it; "),
        (4, "at most the 2 between the ends are measured, with both beside each; "),
        (9, "about 4 of the 7 between the ends are measured, with both beside each; "),
    ],
)
def test_how_many_builds_are_measured_is_told_in_words_that_fit(n_builds: int, words: str) -> None:
    (said,) = cost_lines(_line(n_builds), _plan())
    assert said.startswith(f"{n_builds} builds: {words}with the ends before and fresh rounds after")


def test_the_time_is_that_of_all_measurements() -> None:
    (said,) = cost_lines(_line(2), _plan(n_cells=3))
    assert said.endswith("some 68 measurements, about 2 min 16 s")


def test_no_time_is_told_where_none_is_known() -> None:
    (said,) = cost_lines(_line(2), _plan(each_s=0.0, basis=(UNKNOWN_MODEL,)))
    assert said.endswith(
        "some 36 measurements, nobody knows how long: files of some models are not known"
    )


def test_a_plan_without_a_cell_costs_nothing_and_promises_nothing() -> None:
    assert cost_lines(_line(9), _plan(n_cells=0)) == []


@pytest.mark.parametrize(
    ("n_builds", "n_ready", "words"),
    [
        (3, 2, "one is not here and is compiled when it is asked for, some 5 minutes on two cores"),
        (3, 1, "compiled when they are asked for, all of them, some 5 minutes each on two cores"),
        (40, 0, "compiled when they are asked for, about 9 of them, some 5 minutes each"),
    ],
)
def test_what_is_compiled_is_told_with_its_minutes(n_builds: int, n_ready: int, words: str) -> None:
    (said,) = compile_lines(_line(n_builds, n_ready))
    assert words in said


def test_what_comes_from_pypi_is_fetched_too_and_what_is_here_is_not_told() -> None:
    assert "fetched from PyPI and compiled" in compile_lines(_line(3, 0, source="pypi"))[0]
    assert compile_lines(_line(3, 3)) == []
