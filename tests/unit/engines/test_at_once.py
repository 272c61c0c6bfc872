"""Requests that start together: who waits for whom, and what becomes of the others where one cannot start."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llamasweep.engines.at_once import MAX_STREAMS, ask_at_once, first_reason
from llamasweep.engines.http_exchange import RequestError
from llamasweep.errors import UsageError


def test_nobody_sends_before_all_are_connected() -> None:
    events: list[str] = []

    def ask(index: int, ready: Callable[[], object]) -> int:
        events.append("connected")
        ready()
        events.append("sent")
        return index

    assert ask_at_once(3, ask) == (0, 1, 2)
    assert events == ["connected"] * 3 + ["sent"] * 3


def test_one_that_cannot_connect_ends_the_wait_of_the_others_and_tells_why() -> None:
    def ask(index: int, ready: Callable[[], object]) -> int:
        if index == 1:
            raise RequestError("model_missing", "no such model")
        ready()
        return index

    outcomes = ask_at_once(3, ask)

    assert all(isinstance(outcome, RequestError) for outcome in outcomes)
    reason = first_reason(outcomes)
    assert reason is not None
    assert reason.kind == "model_missing"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_our_own_in_one_stream_leaves_nobody_waiting() -> None:
    def ask(index: int, ready: Callable[[], object]) -> int:
        if index == 0:
            raise ZeroDivisionError
        ready()
        return index

    outcomes = ask_at_once(3, ask)

    kinds = [outcome.kind for outcome in outcomes if isinstance(outcome, RequestError)]
    assert kinds == ["garbage_output", "not_reachable", "not_reachable"]


def test_outcomes_without_a_failure_have_no_reason() -> None:
    assert first_reason((1, 2)) is None


@pytest.mark.parametrize("n_streams", [0, MAX_STREAMS + 1])
def test_a_number_of_streams_that_cannot_be_is_refused(n_streams: int) -> None:
    with pytest.raises(UsageError, match="streams at once"):
        ask_at_once(n_streams, lambda index, _: index)
