"""The last turn of each conversation, from the rows of a run."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.results.made import attempt

from llamasweep.results.conversations import last_turns, turn_words
from llamasweep.results.records import Attempt
from llamasweep.results.request_times import RequestTimes


def turn(
    number: int, turn: int, cache: str | None, ttft_s: float | None, **more: object
) -> Attempt:
    asked = {"turn": turn} | ({} if cache is None else {"prompt_cache": cache})
    row = attempt(number, test_label="pp96+tg16", requested=asked)
    return replace(row, requests=RequestTimes(ttft_median_s=ttft_s), **more)  # type: ignore[arg-type]


def test_both_rows_of_the_last_turn_are_found() -> None:
    rows = [turn(1, 1, "cold", 0.1), turn(2, 6, "cold", 0.442), turn(3, 6, "warm", 0.113)]
    (last,) = last_turns(rows)
    assert (last.turn, last.cold, last.warm) == (6, rows[1], rows[2])
    assert turn_words(last) == (
        "llama-8B-Q4_K_M, pp96+tg16: first token at turn 6 after 442 ms, 113 ms where earlier turns are cached"
    )


def test_what_was_not_measured_is_not_told() -> None:
    (cold,) = last_turns([turn(1, 1, None, 0.1), turn(2, 3, None, 1.5)])
    assert turn_words(cold).endswith("first token at turn 3 after 1.5 s")
    (warm,) = last_turns([turn(1, 3, "warm", 0.2)])
    assert turn_words(warm).endswith("at turn 3 after 200 ms where earlier turns are cached")


def test_first_turns_failures_and_rows_without_a_time_are_no_last_turn() -> None:
    rows = [
        turn(1, 1, "cold", 0.1), turn(2, 2, "cold", None), turn(3, 3, "cold", 0.3, status="failed"),
        attempt(4, requested={}),
    ]  # fmt: skip
    assert last_turns(rows) == ()


def test_a_retry_takes_the_place_of_what_it_repeats() -> None:
    first = turn(1, 2, "cold", 0.5)
    again = replace(first, attempt_id="later", requests=RequestTimes(ttft_median_s=0.7))
    (last,) = last_turns([first, again])
    assert last.cold == again


def test_of_several_rounds_the_middle_time_is_told() -> None:
    first = turn(1, 4, "cold", 0.9)
    rounds = [
        replace(first, attempt_id=str(i), round_index=i, requests=RequestTimes(ttft_median_s=s))
        for i, s in enumerate((0.9, 0.4, 0.5))
    ]
    failed = replace(first, attempt_id="3", round_index=3, status="failed", requests=None)
    (last,) = last_turns([*rounds, failed])
    assert last.cold == rounds[2]
