"""OLLAMA_HOST as Ollama reads it: the table of its own test (envconfig/config_test.go, v0.32.15), and what we refuse."""

from __future__ import annotations

import pytest

from llamasweep.engines.ollama_host import ollama_address
from llamasweep.errors import UsageError


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        (":1234", "http://127.0.0.1:1234"),
        ("1.2.3.4:1234", "http://1.2.3.4:1234"),
        ("example.com", "http://example.com:11434"),
        ("example.com:1234", "http://example.com:1234"),
        ("https://example.com", "https://example.com:443"),
        ("http://example.com", "http://example.com:80"),
        ("https://example.com:1234/ollama", "https://example.com:1234/ollama"),
        ("example.com/ollama", "http://example.com:11434/ollama"),
        ("example.com:66000", "http://example.com:11434"),
        ("example.com:-1", "http://example.com:11434"),
        ("https://example.com:x", "https://example.com:443"),
        ("[::1]", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:1337", "http://[::1]:1337"),
        (' "1.2.3.4" ', "http://1.2.3.4:11434"),
        ("'1.2.3.4'", "http://1.2.3.4:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104  (nothing is bound)
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]:8080", "http://[::1]:8080"),
        ("http://0.0.0.0:8080/", "http://127.0.0.1:8080"),
    ],
)
def test_the_variable_is_read_as_ollama_reads_it(said: str, url: str) -> None:
    assert ollama_address({"OLLAMA_HOST": said}).url == url


def test_without_the_variable_the_default_is_asked() -> None:
    assert ollama_address({}).url == "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    "said", ["tcp://1.2.3.4", "me:secret@host:1", "a host", "host\n:1", "http://host:80/?key=1", "x" * 5000]
)  # fmt: skip
def test_what_is_no_address_is_refused_with_the_variables_name(said: str) -> None:
    with pytest.raises(UsageError, match="OLLAMA_HOST"):
        ollama_address({"OLLAMA_HOST": said})
