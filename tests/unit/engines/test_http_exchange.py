"""Addresses and words of servers, hostile ones among them."""

from __future__ import annotations

import pytest

from llamasweep.engines.http_exchange import parse_base_url, said_error
from llamasweep.errors import UsageError


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("https://example.org/api", "https://example.org:443/api"),
        ("http://[::1]:8000/x/", "http://[::1]:8000/x"),
    ],
)
def test_an_address_is_read(text: str, url: str) -> None:
    assert parse_base_url(text).url == url


@pytest.mark.parametrize(
    "text",
    ["", "ftp://x", "http://", "http://u:p@x", "http://x?key=1", "http://x#y", "http://x:99999", "http://x:0", "http://a b",
     "http://x\r\nA: b", "http://ex\u0430mple", "http://" + "x" * 3000],
)  # fmt: skip
def test_what_is_no_address_is_refused_without_repeating_a_sign_in(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_base_url(text)
    assert "u:p" not in caught.value.message


def test_a_key_with_a_line_break_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError) as caught:
        parse_base_url("http://x", key="abc\r\nEvil: 1")
    assert "abc" not in caught.value.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "out of slots", "code": 1}}', "out of slots"),
        (b'{"error":"model \'x\' not found"}', "model 'x' not found"),
        (b'{"error": {"code": 7}}', '{"code": 7}'),
        (b'{"detail": "no"}', "no"),
        (b"plain words\n", "plain words"),
        (b"", ""),
        (b"{}", ""),
        (b"\x1b[2Jboo\xff", "\\x1b[2Jboo\ufffd"),
        (b"[" * 5000, "[" * 299 + "…"),
    ],
)
def test_the_words_of_a_server_are_found_escaped_and_cut(body: bytes, said: str) -> None:
    assert said_error(body) == said
