"""Addresses of models: which are taken, and what of them is shown."""

from __future__ import annotations

import pytest

from llamasweep.errors import ModelFileError
from llamasweep.gguf.remote_address import check_redirect, is_address, parse_address


def test_an_address_is_told_from_a_path() -> None:
    assert is_address("https://example.org/m.gguf")
    assert is_address("HTTP://example.org/m.gguf")
    assert not is_address("https.gguf")
    assert not is_address("/models/http:/m.gguf")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://user:word@example.org/m.gguf", "holds a sign-in"),
        ("https://@example.org/m.gguf", "holds a sign-in"),
        ("https://example.org", "a server, not a file"),
        ("https:///m.gguf", "not an http"),
        ("ftp://example.org/m.gguf", "not an http"),
        ("https://example.org:99999/m.gguf", "not an http"),
        ("https://[::1/m.gguf", "not an http"),
        ("https://example.org/m\r\nHost: x.gguf", "holds what no address holds"),
        ("https://example.org/" + "m" * 5000, "too long"),
    ],
)
def test_what_is_no_address_of_a_file_is_refused(text: str, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as why:
        parse_address(text)

    assert "word" not in why.value.message.replace(words, "")


def test_what_may_be_a_key_is_not_shown() -> None:
    address = parse_address("https://example.org/a/m.gguf?X-Sig=secret#part")

    assert address.public == "https://example.org/a/m.gguf"
    assert address.url == "https://example.org/a/m.gguf?X-Sig=secret"


def test_names_with_other_letters_are_written_as_servers_want_them() -> None:
    address = parse_address("https://bücher.example/a/größe.gguf")

    assert address.url == "https://xn--bcher-kva.example/a/gr%C3%B6%C3%9Fe.gguf"
    assert address.file_name == "größe.gguf"
    assert address.sibling("b c.gguf").url == "https://xn--bcher-kva.example/a/b%20c.gguf"


def test_a_page_about_a_file_is_recognised() -> None:
    assert parse_address("https://example.org/o/r/resolve/main/m.gguf").hint is None
    hint = parse_address("https://example.org/o/r/blob/main/m.gguf").hint
    assert hint is not None
    assert "/resolve/" in hint


def test_redirects_do_not_leave_https() -> None:
    check_redirect("http://a.example/m", "https://b.example/m")
    with pytest.raises(ModelFileError, match="from https to http"):
        check_redirect("https://a.example/m", "http://b.example/m")
