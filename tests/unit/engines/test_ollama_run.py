"""Calls of `ollama run`: their words, and what their ends mean, from recorded ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamasweep.engines.http_exchange import RequestError, parse_base_url
from llamasweep.engines.ollama_answers import Asked
from llamasweep.engines.ollama_run import describe_run, read_run
from llamasweep.errors import UsageError

RECORDED = Path(__file__).parents[2] / "golden" / "ollama_recorded"
HERE = parse_base_url("http://127.0.0.1:18434")


def recorded(name: str) -> tuple[int, bytes]:
    code = (RECORDED / f"{name}.rc").read_text(encoding="utf-8")
    return int(code), (RECORDED / f"{name}.stderr").read_bytes()


def test_the_call_says_everything_and_needs_no_shell() -> None:
    call = describe_run("/opt/ollama", HERE, "llamasweep-ab12", "48213907 $(x); 'y'")
    assert call.argv == (
        "/opt/ollama", "run", "llamasweep-ab12", "48213907 $(x); 'y'",
        "--verbose", "--nowordwrap", "--think=false", "--keepalive", "30m",
    )  # fmt: skip
    assert ("OLLAMA_HOST", "http://127.0.0.1:18434") in call.env


@pytest.mark.parametrize("prompt", ["", "--help", "a\0b", "x" * 200_000])
def test_a_prompt_that_no_command_line_holds_is_refused(prompt: str) -> None:
    with pytest.raises(UsageError):
        describe_run("ollama", HERE, "m", prompt)


@pytest.mark.parametrize("model", ["", "-x", "a b", "../x", "m;ls", "x" * 300])
def test_a_name_that_is_none_is_refused(model: str) -> None:
    with pytest.raises(UsageError, match="is no name"):
        describe_run("ollama", HERE, model, "1 x")


def test_a_recorded_run_gives_its_figures() -> None:
    found = read_run(
        *recorded("v0.32.15/run_warm_unique"), Asked(n_prompt=15, n_gen=32, n_ctx=1024)
    )
    assert (found.durations.eval_count, found.durations.prompt_eval_count) == (32, 15)
    assert found.durations.timings.decode_tps == pytest.approx(31 / 0.730119)
    assert found.flags == ()


def test_a_recorded_prompt_that_was_too_long_is_a_failure() -> None:
    with pytest.raises(RequestError) as caught:
        read_run(
            *recorded("v0.32.15/run_prompt_too_long"), Asked(n_prompt=8000, n_gen=16, n_ctx=512)
        )
    assert caught.value.kind == "prompt_truncated"


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("v0.24.0/run_empty_prompt", "no_final_chunk", "exit code 0 and printed no figures"),
        ("v0.32.15/run_server_down", "not_reachable", "exit code 1: could not connect"),
        ("v0.11.4/run_server_down", "not_reachable", "ollama server not responding"),
        ("v0.32.15/run_think_unsupported", "server_error", "does not support thinking"),
        ("v0.32.15/run_keepalive_bad", "server_error", "missing unit in duration"),
    ],
)
def test_a_recorded_end_without_figures_is_a_failure(name: str, kind: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_run(*recorded(name), Asked(n_prompt=None, n_gen=16, n_ctx=None))
    assert caught.value.kind == kind
    assert words in caught.value.message


def test_a_model_that_would_be_fetched_is_missing() -> None:
    text = b"Error: pull model manifest: file does not exist\n"
    with pytest.raises(RequestError) as caught:
        read_run(1, text, Asked(n_prompt=None, n_gen=16, n_ctx=None))
    assert caught.value.kind == "model_missing"


def test_a_signal_is_told() -> None:
    with pytest.raises(RequestError, match="was ended by a signal"):
        read_run(None, b"", Asked(n_prompt=None, n_gen=16, n_ctx=None))


def test_a_printed_rate_that_does_not_follow_is_flagged() -> None:
    text = b"eval count:           16 token(s)\neval duration:        1s\neval rate:            99.00 tokens/s\n"
    found = read_run(0, text, Asked(n_prompt=None, n_gen=16, n_ctx=None))
    assert found.flags == ("prompt_not_counted", "printed_rate_differs")
