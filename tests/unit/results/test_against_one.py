"""Several streams against one: the seed's example, requests, settings that differ, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.report.factory import measured

from llamasweep.results.against_one import (
    NAMES,
    NO_ONE_STREAM,
    AgainstOne,
    against_one,
    most_streams,
    of_attempts,
    stream_words,
)


def row(n_streams: int | None, rate: float | None, **changes: Any) -> dict[str, Any]:
    made = {
        "run_id": "r",
        "round_index": 0,
        "engine": "llama-server",
        "build_hash": "b",
        "model_hash": "m",
        "test_kind": "tg",
        "n_prompt": 0,
        "n_gen": 128,
        "n_depth": 0,
        "n_threads": 8,
        "concurrency": n_streams,
        "status": "ok",
        "median_tps": rate,
    }
    return made | changes


def test_the_articles_streams() -> None:
    """28 t/s alone, 194 in all with 32: 6.9 times the throughput, each at 6.1 t/s, so 4.6 times slower."""
    one, many = against_one([row(1, 28.0), row(32, 194.0)])
    assert one == AgainstOne()
    assert many.throughput_ratio == pytest.approx(6.93, abs=0.01)
    assert many.latency_ratio == pytest.approx(4.62, abs=0.01)
    assert many.against_one_reason is None
    assert (many.ttft_ratio, many.tpot_ratio, many.e2e_ratio) == (None, None, None)


@pytest.mark.parametrize(("kind", "ratio"), [("pp", 3.0), ("tg", 4.0), ("pg", 5.0)])
def test_of_requests_the_latency_is_what_the_user_waits_for(kind: str, ratio: float) -> None:
    times = {"ttft_median_s": 0.1, "tpot_median_s": 0.01, "e2e_median_s": 1.0}
    longer = {"ttft_median_s": 0.3, "tpot_median_s": 0.04, "e2e_median_s": 5.0}
    rows = [row(8, 50.0, test_kind=kind, **longer), row(1, 20.0, test_kind=kind, **times)]
    many, _ = against_one(rows)
    assert many.latency_ratio == pytest.approx(ratio)
    assert (many.ttft_ratio, many.tpot_ratio, many.e2e_ratio) == pytest.approx((3.0, 4.0, 5.0))
    assert many.throughput_ratio == pytest.approx(2.5)


def test_a_time_that_nobody_told_is_no_ratio() -> None:
    rows = [row(1, 20.0, tpot_median_s=None, e2e_median_s=1.0), row(4, 50.0, e2e_median_s=2.0)]
    many = against_one(rows)[1]
    assert (many.tpot_ratio, many.latency_ratio) == (None, None)
    assert many.e2e_ratio == pytest.approx(2.0)


def test_of_requests_that_only_one_row_timed_there_is_no_ratio() -> None:
    assert against_one([row(1, 20.0), row(4, 50.0, tpot_median_s=0.1)])[1].latency_ratio is None


def test_a_row_that_names_no_streams_is_one_of_one() -> None:
    assert against_one([row(None, 28.0), row(2, 42.0)])[1].throughput_ratio == pytest.approx(1.5)


@pytest.mark.parametrize(
    "other",
    [
        {"n_threads": 4},
        {"model_hash": "n"},
        {"build_hash": "c"},
        {"engine": "openai"},
        {"n_gen": 64},
        {"n_depth": 512},
        {"run_id": "s"},
        {"round_index": 1},
        {"prompt_cache": "warm"},
        {"status": "failed"},
        {"median_tps": None},
    ],
)
def test_only_a_row_of_the_same_settings_is_compared_with(other: dict[str, Any]) -> None:
    many = against_one([row(1, 28.0, **other), row(4, 60.0)])[1]
    assert many == AgainstOne(against_one_reason=NO_ONE_STREAM)


def test_a_cold_prompt_is_what_is_meant_where_none_is_said() -> None:
    rows = [row(1, 28.0, prompt_cache="cold"), row(4, 56.0)]
    assert against_one(rows)[1].throughput_ratio == pytest.approx(2.0)


def test_a_failed_row_of_several_streams_has_nothing_to_tell() -> None:
    assert against_one([row(1, 28.0), row(4, None, status="failed")])[1] == AgainstOne()


def test_the_columns_have_sentences() -> None:
    assert "throughput_ratio" in NAMES
    assert len(NAMES) == 6


def test_the_row_of_the_most_streams_speaks_for_its_question() -> None:
    attempts = [
        measured(place, [rate] * 3, requested={"concurrency": n})[0]
        for place, (n, rate) in enumerate([(1, 28.0), (32, 194.0), (4, 80.0)])
    ]
    ((most, against),) = most_streams(attempts)
    assert most.requested["concurrency"] == 32
    assert stream_words(most, against).endswith(
        "32 streams: 6.93 times the tokens a second of one, each token takes 4.62 times as long"
    )
    assert set(of_attempts(attempts)) == {attempts[1].attempt_id, attempts[2].attempt_id}


def test_of_several_rounds_the_middle_one_speaks() -> None:
    rounds = [(1, 20.0, 0), (8, 40.0, 0), (1, 20.0, 1), (8, 80.0, 1), (1, 20.0, 2), (8, 60.0, 2)]
    attempts = [
        measured(place, [rate], requested={"concurrency": n}, round_index=index)[0]
        for place, (n, rate, index) in enumerate(rounds)
    ]
    ((most, against),) = most_streams(attempts)
    assert most == attempts[5]
    assert against.throughput_ratio == pytest.approx(3.0)


def test_what_a_file_says_of_streams_and_tests_is_not_believed() -> None:
    odd = measured(1, [28.0], requested={"concurrency": "many"})[0]
    assert of_attempts([odd]) == {}
    many = against_one(
        [row(1, 20.0, test_kind="x"), row(4, 50.0, test_kind="x", tpot_median_s=0.1)]
    )[1]
    assert (many.throughput_ratio, many.latency_ratio) == (2.5, None)


def test_a_run_of_one_stream_has_nothing_to_tell() -> None:
    attempts = [measured(1, [28.0])[0]]
    assert of_attempts(attempts) == {}
    assert most_streams(attempts) == []
