"""Prompts of an asked length, under several ways of counting."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.prompts import WORDS, answered_count, calibrate

COUNTERS: dict[str, Callable[[str], int]] = {
    "one token a character": len,
    "one token a character, a template of 23": lambda text: len(text) + 23,
    "words, digits and signs": lambda text: len(re.findall(r"[a-z]+|\d|[^\w\s]", text)),
    "digits by three": lambda text: len(re.findall(r"\d{1,3}|[a-z]+|\.+", text)) + 9,
    "words in two pieces": lambda text: len(re.findall(r"[a-z]{1,2}|\d|\.", text)) + 1,
}


@pytest.mark.parametrize("name", list(COUNTERS))
@pytest.mark.parametrize("n_tokens", [64, 127, 512, 2048])
def test_a_prompt_has_exactly_the_asked_tokens(name: str, n_tokens: int) -> None:
    count = COUNTERS[name]
    n_calls = 0

    def counted(text: str) -> int:
        nonlocal n_calls
        n_calls += 1
        return count(text)

    shape = calibrate(n_tokens, counted)
    assert shape.is_exact
    assert count(shape.text(0)) == n_tokens
    assert n_calls <= 24


def test_other_tags_have_the_same_count() -> None:
    for count in COUNTERS.values():
        shape = calibrate(256, count)
        assert {count(shape.text(seed)) for seed in range(50)} == {256}


def test_prompts_differ_from_their_start_and_are_the_same_again() -> None:
    shape = calibrate(200, len)
    texts = [shape.text(seed) for seed in range(100)]
    assert len({text[:8] for text in texts}) == 100
    assert all(re.match(r"\d{8} ", text) for text in texts)
    assert shape.text(7) == texts[7]


def test_a_count_that_jumps_gives_the_nearest_below() -> None:
    shape = calibrate(100, lambda text: len(text) // 7 * 7)
    assert not shape.is_exact
    assert 100 - 7 < shape.n_tokens < 100
    assert shape.n_asked == 100


def test_a_prompt_shorter_than_its_tag_is_refused() -> None:
    with pytest.raises(RequestError, match="the shortest prompt with a tag has 8 tokens here"):
        calibrate(5, len)


def test_a_server_that_does_not_count_is_told() -> None:
    with pytest.raises(RequestError, match="does not tell how many tokens"):
        calibrate(100, answered_count(lambda _text: None))


def test_words_are_of_one_length_so_that_every_choice_counts_alike() -> None:
    assert {len(word) for word in WORDS} == {4}
    assert len(set(WORDS)) == len(WORDS)
