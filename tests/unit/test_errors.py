"""How values from outside stand in messages."""

from __future__ import annotations

import re

import pytest

from llamasweep.errors import plain_reason, quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("depth", "'depth'"),
        (12, "12"),
        ("a\n\x1b[31mb", r"'a\n\x1b[31mb'"),
        ("left\u202eright", r"'left\u202eright'"),
        (["x\x07"], r"['x\x07']"),
        (None, "None"),
    ],
)
def test_a_value_in_a_message_is_told_apart_and_harmless(value: object, text: str) -> None:
    assert quoted(value) == text


def test_a_long_value_is_cut_and_says_so() -> None:
    assert quoted("x" * 81) == repr("x" * 79 + "…")
    assert quoted("x" * 80) == repr("x" * 80)
    assert quoted([1] * 100, max_characters=10) == "[1, 1, 1,…"


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "x"), "No such file or directory"),
        (TypeError("list indices must be integers or slices, not str"), "of another kind"),
        (KeyError("name"), "'name' is missing"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "invalid"), "it is no UTF-8 text"),
        (ValueError("no cell was measured\nmore"), "no cell was measured"),
        (ValueError(), "no reason was given"),
    ],
)
def test_a_reason_is_told_without_pythons_words(problem: Exception, said: str) -> None:
    told = plain_reason(problem)
    assert said in told
    assert not re.search("Errno|indices|codec|\n", told)
