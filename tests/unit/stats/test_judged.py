"""Which changes may be called so: after a correction for many cells, or after fresh rounds."""

from __future__ import annotations

from tests.unit.stats.rounds_made import row, rows

from llamasweep.results.records import Attempt
from llamasweep.stats.judged import FIRST_ROUNDS, Judgement, judge

FIRST = range(7)


def _fresh(n: int) -> range:
    return range(FIRST_ROUNDS, FIRST_ROUNDS + n)


def _b(rounds: range, factor: float) -> list[Attempt]:
    return rows(rounds, factor, wobble=True, build_label="b")


def _auto(n_fresh: int, first: float, fresh: float) -> Judgement:
    a = [*rows(FIRST), *rows(_fresh(n_fresh))]
    return judge(a, [*_b(FIRST, first), *_b(_fresh(n_fresh), fresh)], is_auto=True)


def test_a_change_is_official_once_fresh_rounds_confirm_it_and_theirs_is_the_estimate() -> None:
    (found,) = _auto(10, 0.90, 0.93).cells
    assert (found.cell.verdict, found.is_official) == ("slower", True)
    assert found.cell.comparison is not None
    assert found.cell.comparison.ratio is not None
    assert abs(found.cell.comparison.ratio - 0.93) < 0.002
    assert found.note == "confirmed by 10 fresh rounds"
    assert {r.round_index for r in (*found.cell.a_rows, *found.cell.b_rows)} == set(_fresh(10))


def test_a_change_that_fresh_rounds_do_not_show_is_undecided() -> None:
    judgement = _auto(10, 0.90, 1.0)
    (found,) = judgement.cells
    assert (found.cell.verdict, found.is_official) == ("undecided", False)
    assert found.note == "−10.0 % in the first rounds was not confirmed by 10 fresh ones"
    assert judgement.alarms == ()


def test_a_change_without_all_of_its_fresh_rounds_is_not_yet_one() -> None:
    (found,) = _auto(4, 0.90, 0.90).cells
    assert (found.cell.verdict, found.is_official) == ("undecided", False)
    assert found.note is not None
    assert "4 of 10 fresh rounds are measured" in found.note


def test_fresh_rounds_have_no_part_in_finding_a_change() -> None:
    (found,) = _auto(10, 1.0, 0.9).cells
    assert found.cell.verdict == "same"
    assert found.cell.comparison is not None
    assert found.cell.comparison.n_rounds <= 7


def test_one_clear_cell_of_fixed_rounds_is_official() -> None:
    (found,) = judge(rows(range(8)), _b(range(8), 0.9)).cells
    assert (found.cell.verdict, found.is_official, found.note) == ("slower", True, None)


def test_among_many_cells_few_rounds_are_not_enough() -> None:
    """2^-5 of the two-sided test of six rounds, times ten cells."""
    a, b = [], []
    for number in range(10):
        factor = 0.9 if number == 0 else 1.0
        a += rows(range(6), cell_id=f"c{number}")
        b += rows(range(6), factor, wobble=True, cell_id=f"c{number}", build_label="b")
    judgement = judge(a, b)
    slowed = next(one for one in judgement.cells if one.cell.cell_id == "c0")
    assert slowed.cell.verdict == "undecided"
    assert slowed.note is not None
    assert slowed.note.startswith("−10.0 % with p = 0.031 alone, which is 0.31 among 10 cells")
    assert judgement.alarms == ()


def test_a_cell_that_newly_fails_is_an_alarm() -> None:
    failing = [row(r, None, build_label="b") for r in range(3)]
    judgement = judge(rows(range(3)), failing)
    assert [one.cell.verdict for one in judgement.alarms] == ["newly_failing"]


def test_a_failure_seen_once_may_be_an_accident() -> None:
    judgement = judge(rows(range(3)), [row(0, None, build_label="b")])
    (found,) = judgement.cells
    assert (found.cell.verdict, found.is_official) == ("newly_failing", False)
    assert found.note is not None
    assert found.note.startswith("failed once only")
    assert judgement.alarms == ()


def test_a_second_try_in_the_same_round_makes_a_failure_sure() -> None:
    tried = [row(0, None, build_label="b", attempt_index=n) for n in range(2)]
    assert [one.cell.verdict for one in judge(rows([0]), tried).alarms] == ["newly_failing"]


def test_a_program_that_was_gone_or_replaced_is_no_alarm() -> None:
    lost = [row(r, None, build_label="b", error_kind="file_changed") for r in range(3)]
    (found,) = judge(rows(range(3)), lost, is_auto=True).cells
    assert (found.cell.verdict, found.is_official) == ("not_comparable", False)


def test_tries_in_which_nothing_ran_do_not_make_a_failure_sure_nor_doubtful() -> None:
    lost = {"error_kind": "not_started"}
    once = [row(0, None, build_label="b"), row(1, None, build_label="b", **lost)]
    (found,) = judge(rows(range(2)), once).cells
    assert (found.cell.verdict, found.is_official) == ("newly_failing", False)
    twice = [*once, row(2, None, build_label="b")]
    assert len(judge([*rows(range(2)), row(2, None, **lost)], twice).alarms) == 1


def test_a_build_that_refuses_the_question_itself_needs_no_second_try() -> None:
    refused = [row(0, None, build_label="b", error_kind="unknown_architecture")]
    assert [one.is_official for one in judge(rows([0]), refused).cells] == [True]


def test_what_failed_on_the_old_build_at_times_may_be_nothing_new() -> None:
    a = [*rows(range(2)), row(2, None)]
    (found,) = judge(a, [row(r, None, build_label="b") for r in range(3)], is_auto=True).cells
    assert (found.cell.verdict, found.is_official) == ("newly_failing", False)
    assert found.note == "A failed in 1 of 3 tries as well, so it may be nothing new"


def test_what_was_demoted_stands_behind_what_is_sure() -> None:
    a = [*rows(range(8), cell_id="x"), *rows(range(8), cell_id="y")]
    b = [
        *rows(range(8), 0.9, wobble=True, cell_id="x", build_label="b"),
        *rows(range(8), 1.0, wobble=True, cell_id="y", build_label="b"),
    ]
    assert [one.cell.verdict for one in judge(a, b).cells] == ["slower", "same"]
