"""Each cell of `ab` in the live view: its interval as a picture, how many are clear, and the words beside it."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from tests.unit.stats.rounds_made import row

from llamasweep.cli.interval_lines import (
    change_words,
    interval_picture,
    stand_table,
    summary_line,
)
from llamasweep.run.progress import CellStand, CellState
from llamasweep.stats.verdicts import Comparison


def _comparison(
    ratio: float | None, low: float | None = None, high: float | None = None, n_rounds: int = 6
) -> Comparison:
    return Comparison(
        verdict="undecided",
        ratio=ratio,
        low=low,
        high=high,
        p_value=None,
        n_rounds=n_rounds,
        n_dropped=0,
        floor_fraction=0.03,
        alpha=0.05,
        evidence="paired",
    )


@pytest.mark.parametrize(
    ("ratio", "low", "high", "picture"),
    [
        (None, None, None, "          :   |   :          "),
        (1.0, None, None, "          :   o   :          "),
        (1.01, 0.97, 1.05, "          :---|o--:--        "),
        (0.94, 0.92, 0.95, "     --o- :   |   :          "),
        (0.5, 0.4, 0.6, "<         :   |   :          "),
        (1.2, 0.99, 1.5, "          :  -|---:--------->"),
        (1.01, 0.7, 1.5, "<---------:---|o--:--------->"),
    ],
)
def test_the_interval_lies_about_no_change_and_the_floor(
    ratio: float | None, low: float | None, high: float | None, picture: str
) -> None:
    drawn = interval_picture(_comparison(ratio, low, high))
    assert len(drawn) == 29
    assert drawn.rstrip() == picture.rstrip()


def test_a_narrower_interval_makes_a_shorter_line() -> None:
    widths = [
        interval_picture(_comparison(1.0, 1 - half, 1 + half)).count("-")
        for half in (0.08, 0.04, 0.02)
    ]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3


def test_words_tell_what_there_is() -> None:
    assert change_words(_comparison(None)) == "no rate on both sides"
    assert change_words(_comparison(0.91)) == "-9.0 %"
    assert change_words(_comparison(1.012, 0.996, 1.028)) == "+1.2 % [-0.4, +2.8]"


def _stand(state: CellState, label: str = "tiny", n_wanted: int | None = None) -> CellStand:
    made = _comparison(0.9, 0.88, 0.92, n_rounds=7)
    return CellStand(
        row=row(0, 100.0, model_label=label), state=state, comparison=made, n_wanted=n_wanted
    )


def test_cells_are_counted_by_where_they_stand() -> None:
    cells = [_stand("open"), _stand("same"), _stand("same"), _stand("slower")]
    assert summary_line(cells) == "3 of 4 cells clear: 2 same, 1 slower; 1 open"
    confirming = _stand("confirming", n_wanted=10)
    assert summary_line([confirming]) == "0 of 1 cells clear; 1 confirming a change"


def _drawn(cells: list[CellStand], most: int) -> list[str]:
    console = Console(file=StringIO(), width=120, no_color=True)
    with console.capture() as captured:
        console.print(stand_table(cells, most=most))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_cells_at_work_are_shown_first_and_the_rest_counted() -> None:
    cells = [
        _stand("same", "one"),
        _stand("open", "two"),
        _stand("confirming", "three", n_wanted=10),
    ]
    two, three, more = _drawn(cells, 2)
    assert two.startswith("  two · tg128    -10.0 % [-12.0, -8.0]  ")
    assert two.endswith("7 rounds, open")
    assert three.endswith("7 of 10 fresh rounds")
    assert more == "  and 1 more"


def test_a_name_does_not_move_the_cursor() -> None:
    (line,) = _drawn([_stand("open", "a\x1b[2Jb\u202e")], 5)
    assert "\x1b" not in line
    assert "\u202e" not in line
