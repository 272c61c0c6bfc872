"""What is sent at each turn of a conversation, and what becomes of one that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import pytest
from tests.unit.engines.made import PG, PP, cell

from llamasweep.drivers.conversations import (
    Held,
    Prompt,
    Talk,
    hold,
    key_of,
    prompt_of,
    turns_of,
    was_read_again,
)
from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.openai_client import Answer
from llamasweep.results.latency import RequestTiming


def answer(n_prompt: int | None, n_cached: int | None = None, text: str = "yes") -> Answer:
    timing = RequestTiming(
        sent_ns=0, event_ns=(1, 2), n_gen=2, n_prompt=n_prompt, n_cached=n_cached
    )
    return Answer(timing=timing, text=text)


def talk(*, is_warm: bool = True, is_chat: bool = False) -> Talk:
    return Talk(n_message=10, is_chat=is_chat, is_warm=is_warm)


class Server:
    """Counts ten tokens a message; fails the requests with these numbers."""

    def __init__(self, *failing: int, n_per_turn: int = 10) -> None:
        self.asked: list[Prompt] = []
        self.failing, self.n_per_turn = failing, n_per_turn

    def ask(self, turn: int, prompts: Sequence[Prompt]) -> list[Answer]:
        self.asked += prompts
        if len(self.asked) in self.failing:
            raise RequestError("cut_short", "the stream ended")
        return [answer(self.n_per_turn * turn) for _ in prompts]


def messages(n_streams: int = 1) -> Callable[[], list[str]]:
    numbers = count(1)
    return lambda: [f"m{next(numbers)}" for _ in range(n_streams)]


def held(server: Server, *, n_reps: int = 1, n_turns: int = 3, is_warm: bool = True) -> Held:
    return hold(
        talk(is_warm=is_warm), n_turns=n_turns, n_reps=n_reps, fresh=messages(), ask=server.ask,
        tell=lambda _repetition, _turn: None,
    )  # fmt: skip


def test_a_warm_conversation_only_grows() -> None:
    server = Server()
    held(server)
    assert server.asked == ["m1", "m1yes\nm2", "m1yes\nm2yes\nm3"]


def test_a_cold_conversation_begins_with_another_message_each_turn() -> None:
    server = Server()
    held(server, is_warm=False)
    assert server.asked == ["m1", "m3yes\nm2", "m5yes\nm2yes\nm4"]


def test_a_chat_is_sent_as_its_messages() -> None:
    said = prompt_of(["a", "b"], ["yes"], talk(is_chat=True))
    assert said == (("user", "a"), ("assistant", "yes"), ("user", "b"))


def test_each_repetition_is_a_conversation_of_its_own() -> None:
    server, told = Server(), []
    found = hold(
        talk(), n_turns=2, n_reps=2, fresh=messages(2), ask=server.ask,
        tell=lambda repetition, turn: told.append((repetition, turn)),
    )  # fmt: skip
    assert told == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert [len(found.of_turn(turn)) for turn in (1, 2)] == [2, 2]
    assert server.asked[-2:] == ["m5yes\nm7", "m6yes\nm8"]


def test_turns_before_a_failure_are_measured_in_all_repetitions() -> None:
    found = held(Server(3), n_reps=3)
    assert [len(found.of_turn(turn)) for turn in (1, 2)] == [3, 3]
    with pytest.raises(RequestError, match="at turn 3: the stream ended") as caught:
        found.of_turn(3)
    assert caught.value.kind == "cut_short"


def test_a_second_failure_ends_it_with_what_is_there() -> None:
    server = Server(3, 4)
    found = held(server, n_reps=5)
    assert len(server.asked) == 4
    assert [len(found.of_turn(turn)) for turn in (1, 2)] == [1, 1]


def test_turns_that_nobody_asked_for_are_not_repeated_when_a_later_one_fails() -> None:
    server = Server(2)
    found = hold(
        talk(), n_turns=5, first_turn=4, n_reps=3, fresh=messages(), ask=server.ask,
        tell=lambda _repetition, _turn: None,
    )  # fmt: skip
    assert (found.failed_turn, len(server.asked)) == (2, 2)


def test_a_failure_in_a_later_repetition_leaves_no_turn_with_fewer_behind_it() -> None:
    found = held(Server(5), n_reps=3)
    assert found.failed_turn == 2
    assert len(found.of_turn(1)) == 3
    for turn in (2, 3):
        with pytest.raises(RequestError, match="at turn 2"):
            found.of_turn(turn)


def test_a_prompt_that_does_not_grow_was_cut() -> None:
    found = held(Server(n_per_turn=4))
    with pytest.raises(RequestError, match="8 tokens in a conversation that had 4") as caught:
        found.of_turn(2)
    assert caught.value.kind == "prompt_truncated"


@pytest.mark.parametrize(
    ("n_before", "n_cached", "is_told"),
    [(500, 480, False), (500, 460, True), (500, None, False), (None, 0, False)],
)
def test_a_cache_that_holds_less_than_the_turn_before_is_noticed(
    n_before: int | None, n_cached: int | None, is_told: bool
) -> None:
    assert was_read_again([answer(n_before)], [answer(700, n_cached)]) == is_told


def test_cells_that_differ_in_the_turn_alone_are_one_conversation() -> None:
    cells = [cell(PG, turn=1), cell(PP, turn=1), cell(PG, turn=4), cell(PG)]
    found = turns_of(cells)
    assert found == {key_of(cells[0]): {1: 0, 4: 2}, key_of(cells[1]): {1: 1}}
    assert key_of(cells[3]) == key_of(cells[0])
