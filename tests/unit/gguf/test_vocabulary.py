"""The made-up vocabulary can only say valid text, and can be loaded."""

from __future__ import annotations

import pytest

from llamasweep.gguf.shapes import read_shape, shape_names
from llamasweep.gguf.vocabulary import BOS, EOS, N_SILENT, vocabulary_metadata


def _tokens(n_vocab: int) -> list[str]:
    tokens = vocabulary_metadata(n_vocab)["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    return tokens


@pytest.mark.parametrize("n_vocab", [1_000, 16_384, 262_400])
def test_there_are_as_many_unique_tokens_as_the_shape_has_rows(n_vocab: int) -> None:
    tokens = _tokens(n_vocab)

    assert len(tokens) == n_vocab
    assert len(set(tokens)) == n_vocab


def test_every_token_that_can_be_sampled_is_printable_ascii() -> None:
    decoded = [token.replace("Ġ", " ") for token in _tokens(50_000)[N_SILENT:]]

    assert all(text.isascii() and text.isprintable() and text for text in decoded)


def test_control_tokens_are_silent_and_nothing_else_is_a_control_token() -> None:
    metadata = vocabulary_metadata(1_000)

    kinds = metadata["tokenizer.ggml.token_type"]
    assert isinstance(kinds, list)
    assert BOS < N_SILENT
    assert EOS < N_SILENT
    assert [i for i, kind in enumerate(kinds) if kind == 3] == [0, 1, 2]


def test_any_ascii_prompt_can_be_tokenised_character_by_character() -> None:
    tokens = set(_tokens(1_000))

    assert {chr(code) for code in range(0x21, 0x7F)} <= tokens
    assert {"Ġ", "Ċ"} <= tokens


def test_merges_join_known_tokens_to_a_known_token() -> None:
    metadata = vocabulary_metadata(1_000)

    merges = metadata["tokenizer.ggml.merges"]
    assert isinstance(merges, list)
    tokens = set(_tokens(1_000))
    assert merges
    for merge in merges:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= tokens


@pytest.mark.parametrize("name", shape_names())
def test_every_shape_has_a_vocabulary_of_its_stated_size(name: str) -> None:
    shape = read_shape(name)

    assert shape.metadata[f"{shape.arch}.vocab_size"] == shape.n_vocab
