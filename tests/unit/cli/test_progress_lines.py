"""Progress in plain lines: one is not many, and no time where none is left."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from llamasweep.cli.progress_lines import PlainProgress, left_words


@pytest.mark.parametrize(
    ("n_cells", "eta_s", "said"),
    [
        (1, 0.0, "1 cell in one process (0/4 done)"),
        (1, None, "1 cell in one process (0/4 done)"),
        (2, 12.3, "2 cells in one process (0/4 done, about 12.3 s left)"),
    ],
)
def test_a_group_is_told_with_its_cells_and_what_is_left(
    n_cells: int, eta_s: float | None, said: str
) -> None:
    stream = io.StringIO()
    named: Any = SimpleNamespace(source=SimpleNamespace(label="m"), label="b1")
    group: Any = SimpleNamespace(model=named, build=named)
    standing: Any = SimpleNamespace(n_done=0, n_cells=4, eta_s=eta_s)
    cells: Any = [None] * n_cells

    PlainProgress(stream).group_started(group, cells, standing)

    assert stream.getvalue() == f"-- m on b1: {said}\n"


def test_a_time_that_has_run_out_is_not_told_as_nothing() -> None:
    assert [left_words(s) for s in (None, -3.0, 0.0, 0.0004)] == [""] * 4
    assert left_words(0.25) == "about 250 ms left"
