"""`llamasweep feel` against an independent timer, on a server of known timing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fakes.timed_server import TimedServer, timed_server
from tests.integration.plain_timer import median_and_p95, time_answers
from tests.integration.test_openai_client import slack_ms

from llamasweep.cli import app
from llamasweep.errors import UsageError
from llamasweep.results.flag_words import FLAGS
from llamasweep.run.lock import SweepLock


@pytest.fixture(scope="module")
def server() -> Iterator[TimedServer]:
    with timed_server() as running:
        yield running


def run_feel(*words: str) -> Result:
    return CliRunner().invoke(app, ["feel", *words])


N_TRIES = 4
"""A busy machine disturbs one of the two now and then."""


def both_timers(url: str) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """What `feel` tells, and median and p95 in ms of the independent timer."""
    done = run_feel(
        "m", "--base-url", url, "--runs", "5", "--n-gen", "20", "--n-prompt", "64", "--json"
    )
    assert done.exit_code == 0, done.output
    plain = time_answers(url, "m", 64, 20, 5)
    in_ms = {name: [value * 1e3 for value in values] for name, values in plain.items()}
    return json.loads(done.stdout), {name: median_and_p95(values) for name, values in in_ms.items()}


def do_agree(told: dict[str, Any], plain: dict[str, tuple[float, float]], slack: float) -> bool:
    return all(
        told[f"{name}_ms"]["median"] == pytest.approx(median, rel=0.1, abs=3 * slack)
        and told[f"{name}_ms"]["p95"] == pytest.approx(p95, rel=0.2, abs=6 * slack)
        for name, (median, p95) in plain.items()
    )


def test_it_agrees_with_an_independent_timer(server: TimedServer) -> None:
    url = server.base_url(n_tokens=20, ttft_s=0.12, gap_s=0.02, role_first=True, n_prompt=64)
    for _ in range(N_TRIES):
        told, plain = both_timers(url)
        slack = slack_ms(server)
        if do_agree(told, plain, slack):
            break
    assert do_agree(told, plain, slack), (told, plain, slack)
    assert set(plain) == {"ttft", "tpot", "e2e"}
    assert told["ttft_ms"]["median"] >= 120
    assert told["decode_tps"]["median"] == pytest.approx(1e3 / told["tpot_ms"]["median"])
    assert (told["n_prompt"], told["n_gen"], told["n_runs"]) == (64, 20, 5)


def test_prompts_are_tagged_and_the_first_is_thrown_away(server: TimedServer) -> None:
    server.take_log()
    url = server.base_url(n_tokens=4, ttft_s=0.01)
    done = run_feel("m", "--base-url", url, "--runs", "3", "--n-gen", "4", "--n-prompt", "40")
    assert done.exit_code == 0, done.output
    asked = [one.body for one in server.take_log() if one.body]
    prompts = [body["messages"][0]["content"] for body in asked]
    timed = prompts[-4:]
    assert len({prompt[:8] for prompt in timed}) == 4
    assert all(prompt[:8].isdigit() for prompt in timed)
    assert "3 answers of 4 tokens, prompts of 5" in done.stdout


def test_the_words_say_what_is_missing(server: TimedServer) -> None:
    url = server.base_url(n_tokens=4, ttft_s=0.01, usage=False)
    done = run_feel("m", "--base-url", url, "--runs", "2", "--n-gen", "4", "--n-prompt", "40")
    assert done.exit_code == 0, done.output
    assert "prompts of ?" in done.stdout
    assert "ceiling: none; the model's file is not known" in done.stdout
    assert f"note: {FLAGS['tokens_counted'].meaning}" in done.stdout


def test_a_server_that_breaks_is_told_in_a_sentence(server: TimedServer) -> None:
    done = run_feel("m", "--base-url", server.base_url(fault="status_500"), "--runs", "1")
    assert done.exit_code == 1
    assert "out of slots" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no model was named"),
        (("--base-url", "http://u:p@127.0.0.1:1", "m"), "holds a sign-in"),
        (("--base-url", "http://127.0.0.1:1", "--key-from", "NO_SUCH_VARIABLE"), "holds no key"),
        (("m", "--key-from", "SOME_KEY"), "--key-from is for the server of --base-url"),
        (("m", "--model-file", __file__), "--model-file is for the server of --base-url"),
        (("m", "--build", "b1"), "--build serves a .gguf file"),
        (("--base-url", "http://127.0.0.1:1", "m", "--build", "b1"), "--build serves a .gguf file"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], told: str) -> None:
    done = run_feel(*words)
    assert isinstance(done.exception, UsageError)
    assert told in done.exception.message


@pytest.mark.parametrize(
    "words", [("m", "--base-url", "ftp://127.0.0.1:1"), (), ("m", "--key-from", "SOME_KEY")]
)
def test_wrong_arguments_are_told_while_another_sweep_measures(words: tuple[str, ...]) -> None:
    with SweepLock("another"):
        done = run_feel(*words)
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
