"""`rounds: auto`: each cell leaves when it is clear, changes come back for fresh rounds, and a restart decides the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.unit.stats.rounds_made import BASE_TPS, WOBBLE, row

from llamasweep.results.records import Attempt
from llamasweep.run.auto_rounds import AutoRounds
from llamasweep.stats.judged import FIRST_ROUNDS, judge
from llamasweep.sweep.spec import AUTO_ROUNDS

Measure = Callable[[str, str, int], Attempt | None]


def _auto() -> AutoRounds:
    return AutoRounds(a_label="a", b_label="b", floor_of_row=lambda _: 0.03)


def _by_factor(factors: dict[str, float | None]) -> Measure:
    """Rates of b are those of a times the cell's factor; None: b fails."""

    def measure(cell_id: str, build: str, r: int) -> Attempt | None:
        factor = 1.0 if build == "a" else factors[cell_id]
        tps = None
        if factor is not None:
            noise = WOBBLE[r % len(WOBBLE)] if build == "b" else 1.0
            tps = BASE_TPS[r % len(BASE_TPS)] * factor * noise
        return row(r, tps, cell_id=cell_id, build_label=build)

    return measure


def _run(
    auto: AutoRounds, cells: list[str], measure: Measure, done: list[Attempt]
) -> list[Attempt]:
    """What a runner does: each cell of each round on both builds, unless it is there or not wanted."""
    have = {(r.cell_id, r.build_label, r.round_index) for r in done}
    rows = list(done)
    for r in range(AUTO_ROUNDS):
        for cell_id in cells:
            for build in ("a", "b"):
                if not auto.wants(cell_id, r) or (cell_id, build, r) in have:
                    continue
                made = measure(cell_id, build, r)
                if made is not None:
                    auto.learn([made])
                    rows.append(made)
    return rows


FACTORS: dict[str, float | None] = {"same": 1.0, "slower": 0.9, "faster": 1.1, "broken": None}


def test_cells_leave_when_they_are_clear_and_only_changes_get_fresh_rounds() -> None:
    rows = _run(_auto(), list(FACTORS), _by_factor(FACTORS), [])
    first = Counter(
        r.cell_id for r in rows if r.build_label == "b" and r.round_index < FIRST_ROUNDS
    )
    fresh = Counter(
        r.cell_id for r in rows if r.build_label == "b" and r.round_index >= FIRST_ROUNDS
    )
    assert first == {"same": 6, "slower": 7, "faster": 7, "broken": 3}
    assert fresh == {"slower": 10, "faster": 10}
    assert Counter(r.build_label for r in rows)["a"] == Counter(r.build_label for r in rows)["b"]


def test_what_was_measured_is_what_the_judge_needs() -> None:
    rows = _run(_auto(), list(FACTORS), _by_factor(FACTORS), [])
    a, b = ([r for r in rows if r.build_label == label] for label in ("a", "b"))
    found = {
        one.cell.cell_id: one
        for one in judge(a, b, is_auto=True, floor_of_row=lambda _: 0.03).cells
    }
    assert {key: one.cell.verdict for key, one in found.items()} == {
        "same": "same",
        "slower": "slower",
        "faster": "faster",
        "broken": "newly_failing",
    }
    assert found["slower"].is_official
    assert found["faster"].is_official


@pytest.mark.parametrize("n_before", [1, 2, 7, 20, 33, 47, 60])
def test_killed_anywhere_and_started_again_the_rows_are_the_same(n_before: int) -> None:
    measure = _by_factor(FACTORS)
    whole = _run(_auto(), list(FACTORS), measure, [])
    again = _auto()
    again.learn(whole[:n_before])
    resumed = _run(again, list(FACTORS), measure, whole[:n_before])
    assert resumed == whole


def test_a_cell_that_one_build_cannot_run_is_measured_once() -> None:
    def measure(cell_id: str, build: str, r: int) -> Attempt | None:
        return None if build == "b" else row(r, 100.0, cell_id=cell_id, build_label="a")

    refused = row(0, None, cell_id="cell", build_label="b", status="unsupported")
    auto = _auto()
    auto.learn([refused])
    rows = _run(auto, ["cell"], measure, [refused])
    assert [r.round_index for r in rows if r.build_label == "a"] == [0]


def test_a_round_that_only_one_build_has_does_not_count() -> None:
    auto = _auto()
    auto.learn(row(r, 100.0, build_label="a") for r in range(7))
    auto.learn(row(r, 90.0, build_label="b") for r in range(6))
    assert auto.wants("cell", 6)
    fuller = _auto()
    fuller.learn(row(r, 100.0 + r % 3, build_label="a") for r in range(7))
    fuller.learn(row(r, (100.0 + r % 3) * 0.9, build_label="b") for r in range(7))
    assert not fuller.wants("cell", 7)


def test_where_cells_stand_is_told_before_each_round() -> None:
    auto = _auto()
    for r in range(3):
        auto.learn([row(r, 100.0, build_label="a"), row(r, 90.0 + r, build_label="b")])
    told = auto.standing_lines(3)
    assert told[0] == "after round 3: 0 of 1 cells need no more rounds"
    assert told[1] == "tiny tg128: -9.0%, no interval yet"
    assert auto.standing_lines(0) == []


def test_rounds_in_which_nothing_was_measured_any_more_are_not_told() -> None:
    auto = _auto()
    for r in range(7):
        auto.learn([row(r, 100.0, build_label="a"), row(r, 90.0, build_label="b")])
    assert auto.standing_lines(7) == ["after round 7: 1 of 1 cells need no more rounds"]
    assert auto.standing_lines(8) == []
    assert auto.standing_lines(FIRST_ROUNDS) == ["one cell has changed; fresh rounds confirm it"]


def test_each_cell_tells_its_interval_as_it_closes_in_and_what_became_of_it() -> None:
    auto, measure = _auto(), _by_factor(FACTORS)
    seen: dict[str, list[tuple[str, float | None]]] = {cell_id: [] for cell_id in FACTORS}
    for r in range(AUTO_ROUNDS):
        for cell_id in FACTORS:
            if auto.wants(cell_id, r):
                made = (measure(cell_id, build, r) for build in ("a", "b"))
                auto.learn([one for one in made if one is not None])
        for cell_id, stand in zip(FACTORS, auto.stands(), strict=True):
            found = stand.comparison
            width = None if found.low is None or found.high is None else found.high / found.low
            seen[cell_id].append((stand.state, width))
    assert [state for state, _ in seen["same"][:7]] == ["open"] * 5 + ["same"] * 2
    assert [state for state, _ in seen["slower"][5:8]] == ["open", "slower", "slower"]
    assert seen["broken"][-1] == ("failing", None)
    assert seen["slower"][-1][0] == "confirming"
    assert [width is None for _, width in seen["slower"][:7]] == [True] * 5 + [False] * 2
    (slower,) = [one for one in auto.stands() if one.row.cell_id == "slower"]
    assert (slower.n_wanted, slower.comparison.n_rounds) == (10, 10)
