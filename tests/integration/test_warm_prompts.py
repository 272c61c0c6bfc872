"""Prompts that a server is asked before they are timed: one stream after another, and outside of the measured time."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from tests.fakes.ollama_server import fake_ollama
from tests.fakes.timed_server import timed_server
from tests.integration.running import drive

from llamasweep.engines.driven import Job
from llamasweep.sweep.parameters import Scalar

N_STREAMS, N_REPS = 3, 2
AXES: tuple[tuple[str, tuple[Scalar, ...]], ...] = (
    ("concurrency", (N_STREAMS,)),
    ("prompt_cache", ("warm",)),
)


def row_of(job: Job) -> dict[str, Any]:
    done = drive(job)
    assert done.code == 0, done.stderr
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def assert_warmed_before(
    row: dict[str, Any], prompts: Sequence[str], ends_ns: Sequence[int]
) -> None:
    """prompts, ends_ns: of all requests as the server saw them, in order; Unix time of each answer's end.

    The clock of the client starts when the last prompt is warm. It was held against the server's by two readings one after the
    other, so it is only asked to lie behind the warming's last gap by half, which every earlier start would miss.
    """
    n_round = 2 * N_STREAMS
    for index, start_ns in enumerate(row["started_ns"]):
        first = len(prompts) - (N_REPS - index) * n_round
        before = prompts[first : first + N_STREAMS]
        assert len(set(before)) == N_STREAMS
        assert sorted(before) == sorted(prompts[first + N_STREAMS : first + n_round])
        *_, last_but_one_ns, last_ns = ends_ns[first : first + N_STREAMS]
        assert start_ns > (last_but_one_ns + last_ns) / 2
        assert start_ns < ends_ns[first + N_STREAMS]


def test_warm_prompts_of_several_streams_are_not_in_the_time_of_an_openai_server() -> None:
    with timed_server() as server:
        url = server.base_url(ttft_s=0.05, gap_s=0.002, n_tokens=4, n_prompt=24)
        row = row_of(
            Job(
                engine="openai", base_url=url, model="m", axes=AXES, tests=((24, 4),), n_reps=N_REPS
            )
        )
        served = [one for one in server.take_log() if "prompt" in one.body and one.sent_ns]
    offset_ns = time.time_ns() - time.monotonic_ns()
    assert row["columns"]["n_requests"] == N_REPS * N_STREAMS
    prompts = [one.body["prompt"] for one in served]
    assert_warmed_before(row, prompts, [one.sent_ns[-1] + offset_ns for one in served])


def test_warm_prompts_of_several_streams_are_not_in_the_time_of_ollama() -> None:
    options = {
        **{"program": None, "mode": "api", "template": "raw", "pull": False, "file": None},
        **{"content_hash": "c" * 32, "store": None, "import_folder": None, "server": {}},
        **{"settings": {"n_ctx": 512}, "bench": []},
    }
    with fake_ollama(reads_s=0.05) as fake:
        row = row_of(
            Job(
                engine="ollama",
                base_url=fake.url,
                model="m",
                axes=AXES,
                tests=((24, 0),),
                n_reps=N_REPS,
                options=options,
            )
        )
        prompts = [body["prompt"] for body in fake.generations()]
    assert row["columns"]["n_requests"] == N_REPS * N_STREAMS
    assert_warmed_before(row, prompts, fake.answered_ns)
