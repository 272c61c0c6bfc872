from __future__ import annotations

import pytest

from llamasweep.run.timeouts import (
    CELL_FLOOR_S,
    STALL_FLOOR_S,
    Expected,
    Watch,
    cell_limit_s,
    stall_limit_s,
)


def expected(cell_s: float = 1, step_s: float = 1, history_s: float | None = None) -> Expected:
    return Expected(cell_s=cell_s, longest_step_s=step_s, history_s=history_s)


@pytest.mark.parametrize(
    ("of", "asked_s", "limit_s"),
    [
        (expected(cell_s=100), 7.0, 7.0),  # the sweep's word is the last
        (expected(cell_s=100, history_s=1000), 7.0, 7.0),
        (expected(cell_s=100, history_s=1000), None, 2500.0),
        (expected(cell_s=100, history_s=10), None, CELL_FLOOR_S),
        (expected(cell_s=100), None, 2000.0),
        (expected(cell_s=1), None, CELL_FLOOR_S),
    ],
)
def test_the_limit_of_a_cell(of: Expected, asked_s: float | None, limit_s: float) -> None:
    assert cell_limit_s(of, asked_s) == limit_s


@pytest.mark.parametrize(
    ("of", "longest_seen_s", "limit_s"),
    [
        (expected(step_s=1), None, STALL_FLOOR_S),
        (expected(step_s=60), None, 1200.0),
        (expected(step_s=1), 5.0, STALL_FLOOR_S),
        (expected(step_s=1), 30.0, 300.0),
        (expected(step_s=60), 30.0, 1200.0),
    ],
)
def test_the_limit_of_silence(of: Expected, longest_seen_s: float | None, limit_s: float) -> None:
    assert stall_limit_s(of, longest_seen_s) == limit_s


def watch(*cells: Expected, asked_s: float | None = None, now_s: float = 1000.0) -> Watch:
    return Watch(expected=lambda i: cells[min(i, len(cells) - 1)], asked_s=asked_s, now_s=now_s)


def test_at_first_silence_ends_a_process() -> None:
    w = watch(expected())
    assert w.deadline_s() == 1000 + STALL_FLOOR_S
    assert w.why(1121) == "no sign of life for 121.0 s; the engine hangs"


def test_every_sign_moves_the_limit_of_silence_but_not_that_of_the_cell() -> None:
    w = watch(expected())
    for now_s in (1100.0, 1200.0, 1290.0):
        w.sign(now_s)
    assert w.deadline_s() == 1000 + CELL_FLOOR_S
    assert w.why(1301.0) == (
        "not finished after 301.0 s (the limit from history or prediction is 300.0 s)"
    )


def test_the_sweeps_own_timeout_is_named() -> None:
    w = watch(expected(), asked_s=5.0)
    assert w.deadline_s() == 1005.0
    assert w.why(1006.0) == "not finished after 6.0 s (the sweep's timeout is 5.0 s)"


def test_a_slow_step_makes_the_watch_patient() -> None:
    w = watch(expected(cell_s=1000))
    w.sign(1100.0)
    w.sign(1101.0)
    assert w.longest_step_s == 100.0
    assert w.deadline_s() == 1101.0 + 1000.0


def test_the_next_cell_has_a_clock_of_its_own() -> None:
    w = watch(expected(cell_s=1), expected(cell_s=1000, step_s=1000))
    w.next_cell(1, 1250.0)
    w.sign(1250.0)
    assert w.deadline_s() == 1250.0 + 20_000.0
