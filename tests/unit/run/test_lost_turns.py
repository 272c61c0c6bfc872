"""Which turns are given up when the process of a conversation fails."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.engines.made import PG, PP, block, build, cell, group

from llamasweep.run.lost_turns import LostTurns

TURNS = [cell(PG, turn=turn) for turn in (1, 2, 3, 4)]


def test_a_first_failure_leaves_the_later_turns_to_one_more_process() -> None:
    lost = LostTurns()
    assert lost.after_failure(group(block(PG)), TURNS[1], TURNS[2:]) == []


def test_a_second_failure_gives_up_the_later_turns_of_that_conversation_alone() -> None:
    others = [cell(PP, turn=4), cell(PG, turn=4, prompt_cache="warm"), cell(PG), TURNS[0]]
    lost = LostTurns()
    lost.after_failure(group(block(PG)), TURNS[1], TURNS[2:])
    assert lost.after_failure(group(block(PG)), TURNS[2], [*others, TURNS[3]]) == [TURNS[3]]


def test_failures_of_another_conversation_build_or_round_are_not_counted() -> None:
    lost = LostTurns()
    here = group(block(PG))
    lost.after_failure(here, TURNS[1], TURNS[2:])
    elsewhere = [
        (here, cell(PG, turn=2, prompt_cache="warm")),
        (replace(here, build=build("b8247")), TURNS[1]),
        (replace(here, round_index=1), TURNS[1]),
    ]
    for where, failed in elsewhere:
        assert lost.after_failure(where, failed, TURNS[2:]) == []


def test_cells_without_turns_are_never_given_up() -> None:
    lost = LostTurns()
    for _ in range(5):
        assert lost.after_failure(group(block(PG)), cell(PG), [cell(PP), *TURNS]) == []
