"""What a driver is told and says, and how that is read back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.engines.made import PG, PP, TG, block, cell

from llamasweep.engines.base import Failure
from llamasweep.engines.driven import (
    Driven,
    DriverRow,
    Job,
    axes_and_tests,
    failure_line,
    progress_line,
    read_job,
)
from llamasweep.engines.llama_bench_output import LogReader
from llamasweep.results.request_times import RequestTimes

DRIVEN = Driven()


def job(**changes: Any) -> Job:
    fields = {"engine": "llama-server", "model": "m", "n_reps": 3, **axes_and_tests(block(PP, TG))}
    return Job(**(fields | changes))


def row(index: int = 0, **changes: Any) -> DriverRow:
    fields: dict[str, Any] = {
        "cell_index": index,
        "test": TG,
        "samples_ns": (10, 20),
        "started_ns": (100, 200),
        "n_tokens": (16, 15),
        "columns": {"ttft_median_s": 0.25, "n_requests": 2},
        "applied": {"concurrency": 2},
        "flags": ("tokens_counted",),
    }
    return DriverRow(**(fields | changes))


def parsed(one: DriverRow) -> dict[str, Any]:
    found = DRIVEN.parse_row(one.line().encode())
    assert found is not None
    return found


def test_a_job_survives_the_command_line() -> None:
    asked = job(
        axes=(("n_threads", (2,)), ("concurrency", (1, 4)), ("prompt_cache", ("cold", "warm"))),
        server_argv=("/b/llama server", "-m", "a b\n'.gguf"),
    )
    assert read_job(asked.words()) == asked
    assert asked.words()[1:] == ("--", "/b/llama server", "-m", "a b\n'.gguf")
    assert len(asked.cells()) == 8
    assert {c.engine for c in asked.cells()} == {"llama-server"}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("{}",),
        ("[]", "--"),
        ("{}", "--"),
        ('{"axes": 1}', "--"),
        ('{"axes": [], "tests": [], "x": 1}', "--"),
        (job().words()[0], "/b/llama-server"),
    ],
)
def test_what_is_no_job_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_job(words)


def test_progress_is_read_as_that_of_an_engine() -> None:
    reader = LogReader()
    assert reader.feed(progress_line(1, 4, "starting", None)) is not None
    event = reader.feed(progress_line(1, 4, "prompt", (2, 5)))
    assert event is not None
    assert (event.cell_index, event.step, event.repetition_index) == (1, "prompt", 2)
    assert reader.count == 4


def test_a_row_is_paired_by_the_cell_that_it_names() -> None:
    cells = [cell(test) for test in (PP, TG, PG)]
    rows = [parsed(row(0)), parsed(row(2))]
    assert DRIVEN.pair_rows(cells, rows) == [0, 2]
    assert DRIVEN.pair_rows(cells, [parsed(row(2)), parsed(row(1))]) == [2]
    assert DRIVEN.pair_rows(cells, [parsed(row(7))]) == []


def test_a_row_gives_tokens_of_all_streams_and_latency_columns() -> None:
    found = DRIVEN.verify(cell(TG, concurrency=2), 0, parsed(row()), LogReader(), cpu_only=True)
    assert found.n_tokens == (16, 15)
    assert found.columns == {"requests": RequestTimes(ttft_median_s=0.25, n_requests=2)}
    assert found.flags == ("tokens_counted",)
    assert found.applied["concurrency"] == 2
    assert found.differences == ()
    assert DRIVEN.repetition_starts_ns(parsed(row())) == (100, 200)


def test_another_number_of_slots_than_asked_is_told() -> None:
    found = DRIVEN.verify(cell(TG, concurrency=4), 0, parsed(row()), LogReader(), cpu_only=True)
    assert found.differences == ("concurrency: asked 4, applied 2",)


def test_columns_that_are_none_of_latency_are_left_out() -> None:
    hostile = {"status": "ok", "ttft_p95_s": "fast", "tpot_median_s": True, "median_tps": 9.0}
    found = DRIVEN.verify(cell(TG), 0, parsed(row(columns=hostile)), LogReader(), cpu_only=True)
    assert found.columns == {"requests": RequestTimes()}


def test_times_that_do_not_fit_the_samples_are_not_used() -> None:
    assert DRIVEN.repetition_starts_ns(parsed(row(started_ns=(1,)))) is None
    assert DRIVEN.repetition_starts_ns(json.loads(row().line()) | {"started_ns": ["x", 2]}) is None


def explained(*lines: str, exit_code: int | None = 1, exit_signal: str | None = None) -> Failure:
    found = DRIVEN.explain(
        exit_code=exit_code, exit_signal=exit_signal, stderr_lines=lines, was_oom_killed=False
    )
    assert found is not None
    return found


def test_the_drivers_own_reason_is_the_reason() -> None:
    told = Failure(status="timeout", kind="timeout", message="silent\nfor 300 s", reach="cell")
    assert explained("noise", *failure_line(told).splitlines()) == Failure(
        status="timeout", kind="timeout", message="silent for 300 s"
    )


def test_behind_a_dead_server_its_own_last_words_are_the_reason() -> None:
    died = failure_line(
        Failure(status="failed", kind="server_died", message="it ended", reach="load")
    )
    lines = f"llama_model_load: error: unknown model architecture: 'x'\n....{died}".splitlines()
    found = explained(*lines)
    assert (found.kind, found.reach) == ("unknown_architecture", "load")
    assert explained("nothing to learn", *died.splitlines()).kind == "server_died"


def test_a_driver_that_was_killed_is_explained_by_its_ending() -> None:
    assert explained("x", exit_code=None, exit_signal="SIGKILL").kind == "signal"
    assert (
        DRIVEN.explain(exit_code=0, exit_signal=None, stderr_lines=(), was_oom_killed=False) is None
    )
