"""A driver process against a server of known timing: rows on stdout, the reason of a failure on stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.timed_server import TimedServer, timed_server
from tests.integration.test_openai_client import slack_ms

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
    done = subprocess.run(
        [sys.executable, "-I", "-m", "llamasweep.drivers", *job.words()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_generation_lasts_from_its_first_token_to_its_last(server: TimedServer) -> None:
    server.take_log()
    url = server.base_url(ttft_s=TTFT_S, gap_s=GAP_S, n_tokens=9, n_prompt=16)
    code, (row,), said = drive(url, ((0, 8),))
    assert code == 0, said
    assert row["n_tokens"] == [8, 8]
    timed = [one.sent_ns for one in server.take_log() if len(one.sent_ns) == 9][-2:]
    for ns, sent_ns in zip(row["samples_ns"], timed, strict=True):
        assert abs(ns - (sent_ns[-1] - sent_ns[0])) <= slack_ms() * 1e6
    assert row["columns"]["ttft_median_s"] >= TTFT_S * 0.99
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
