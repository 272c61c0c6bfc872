"""A driver process against a server of known timing: rows on stdout, the reason of a failure on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.timed_server import TimedServer, timed_server
from tests.integration.running import drive as run_driver

from llamasweep.engines.driven import Driven, Job
from llamasweep.sweep.parameters import Scalar

GAP_S, TTFT_S = 0.004, 0.03
Axes = tuple[tuple[str, tuple[Scalar, ...]], ...]


@pytest.fixture(scope="module")
def server() -> Iterator[TimedServer]:
    with timed_server() as running:
        yield running


def drive(
    url: str, tests: tuple[tuple[int, int], ...], axes: Axes = ()
) -> tuple[int, list[Any], str]:
    job = Job(engine="openai", base_url=url, model="m", axes=axes, tests=tests, n_reps=2)
    done = run_driver(job)
    return done.code, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_generation_lasts_from_its_first_token_to_its_last(server: TimedServer) -> None:
    server.take_log()
    url = server.base_url(ttft_s=0.3, gap_s=0.01, n_tokens=9, n_prompt=16)
    code, (row,), said = drive(url, ((0, 8),))
    assert code == 0, said
    assert row["n_tokens"] == [8, 8]
    timed = [one for one in server.take_log() if len(one.sent_ns) == 9][-2:]
    for ns, one in zip(row["samples_ns"], timed, strict=True):
        prompt_ns = one.sent_ns[0] - one.received_ns
        assert (one.sent_ns[-1] - one.sent_ns[0]) / 2 < ns < prompt_ns
    assert row["columns"]["ttft_median_s"] >= 0.3 * 0.99
    assert "llamasweep: test 1/1: prompt run 2/2" in said


def test_a_prompt_lasts_until_its_first_token(server: TimedServer) -> None:
    url = server.base_url(ttft_s=TTFT_S, gap_s=GAP_S, n_tokens=1, n_prompt=64)
    code, (row,), said = drive(url, ((64, 0),))
    assert code == 0, said
    assert (row["n_tokens"], row["columns"]["n_prompt_counted"]) == ([64, 64], 64)
    assert all(ns >= TTFT_S * 1e9 * 0.99 for ns in row["samples_ns"])


def test_streams_are_counted_together(server: TimedServer) -> None:
    url = server.base_url(ttft_s=TTFT_S, gap_s=GAP_S, n_tokens=9, n_prompt=16)
    code, (row,), said = drive(url, ((0, 8),), (("concurrency", (3,)),))
    assert code == 0, said
    assert all(8 <= n <= 24 for n in row["n_tokens"])
    assert row["columns"]["n_requests"] == 6


TURNS: Axes = (("prompt_cache", ("cold", "warm")), ("turn", (1, 3)))


def test_each_turn_of_a_conversation_waits_for_what_the_server_has_not_read(
    server: TimedServer,
) -> None:
    """Three messages of 24 words and two answers of 4 before the last token: 80 words, or 24 where the rest was kept."""
    server.take_log()
    url = server.base_url(ttft_s=0.01, word_s=0.003, gap_s=GAP_S, n_tokens=4)
    code, rows, said = drive(url, ((24, 4),), TURNS)
    assert code == 0, said
    assert [row["cell"] for row in rows] == [0, 1, 2, 3]
    assert [row["columns"]["n_prompt_counted"] for row in rows] == [24, 80, 24, 80]
    assert [row["columns"]["n_cached_tokens"] for row in rows] == [0, 0, 0, 56]
    assert [row["n_tokens"] for row in rows] == [[28, 28], [84, 84]] * 2
    assert not [row["flags"] for row in rows if row["flags"]]
    ttft_s = [row["columns"]["ttft_median_s"] for row in rows]
    for measured_s, true_s in zip(ttft_s, (0.082, 0.25, 0.082, 0.082), strict=True):
        assert measured_s >= true_s * 0.99
    all_anew_s = ttft_s.pop(1)
    assert all_anew_s > 1.5 * max(ttft_s)  # three times as many words
    asked = [one.body["prompt"].split() for one in server.take_log() if "prompt" in one.body]
    long = [words for words in asked if len(words) == 80]
    assert len(long) == 4
    assert len({words[0] for words in long}) == 4  # a tag of its own at the very start
    assert all(words[24:28] == ["w"] * 4 for words in long)


def test_a_conversation_that_a_server_cuts_fails_at_that_turn_and_keeps_those_before(
    server: TimedServer,
) -> None:
    url = server.base_url(ttft_s=0.001, word_s=0.0001, gap_s=0.001, n_tokens=4, window=60)
    code, rows, said = drive(url, ((24, 4),), (("turn", (1, 2, 3)),))
    assert code == 1
    assert [(row["cell"], len(row["samples_ns"])) for row in rows] == [(0, 2), (1, 2)]
    found = Driven().explain(
        exit_code=1, exit_signal=None, stderr_lines=said.splitlines(), was_oom_killed=False
    )
    assert found is not None
    assert (found.kind, found.reach) == ("prompt_truncated", "cell")
    assert "at turn 3: the server counts 60 tokens" in found.message


def test_each_stream_has_a_conversation_of_its_own(server: TimedServer) -> None:
    server.take_log()
    url = server.base_url(ttft_s=0.001, gap_s=0.002, n_tokens=4, n_prompt=24)
    code, rows, said = drive(url, ((24, 4),), (("concurrency", (2,)), ("turn", (1,))))
    assert code == 0, said
    assert [row["columns"]["n_requests"] for row in rows] == [4]
    tags = {one.body["prompt"].split()[0] for one in server.take_log()[-4:]}
    assert len(tags) == 4


def test_an_answer_that_ends_early_is_a_failure_and_rows_before_it_stay(
    server: TimedServer,
) -> None:
    url = server.base_url(ttft_s=0.001, gap_s=0.001, n_tokens=5, n_prompt=16)
    code, rows, said = drive(url, ((0, 4), (0, 32)))
    assert code == 1
    assert [row["n_gen"] for row in rows] == [4]
    found = Driven().explain(
        exit_code=1, exit_signal=None, stderr_lines=said.splitlines(), was_oom_killed=False
    )
    assert found is not None
    assert (found.kind, found.reach) == ("early_stop", "cell")
    assert "5 of 33 tokens" in found.message


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("status_500", "http_status"),
        ("close_early", "cut_short"),
        ("wrong_type", "wrong_content_type"),
    ],
)
def test_a_faulty_server_gives_a_row_with_its_reason(
    server: TimedServer, fault: str, kind: str
) -> None:
    code, rows, said = drive(server.base_url(n_tokens=9, n_prompt=16, fault=fault), ((0, 8),))
    assert (code, rows) == (1, [])
    found = Driven().explain(
        exit_code=1, exit_signal=None, stderr_lines=said.splitlines(), was_oom_killed=False
    )
    assert found is not None
    assert found.kind == kind


def test_no_server_concerns_every_cell() -> None:
    code, rows, said = drive("http://127.0.0.1:9", ((0, 8),))
    assert (code, rows) == (1, [])
    found = Driven().explain(
        exit_code=1, exit_signal=None, stderr_lines=said.splitlines(), was_oom_killed=False
    )
    assert found is not None
    assert (found.kind, found.reach) == ("not_reachable", "load")
