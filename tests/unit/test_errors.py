"""How values from outside stand in messages."""

from __future__ import annotations

import pytest

from llamasweep.errors import quoted


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
