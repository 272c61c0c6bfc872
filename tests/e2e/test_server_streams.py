"""A real llama-server: our clock and its own agree, streams share it, and its cache of prompts shows."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest
from tests.e2e.engines import BUILDS, running_server

from llamasweep.engines.http_exchange import ServerAddress, parse_base_url
from llamasweep.engines.openai_client import (
    Answer,
    Completion,
    complete,
    complete_at_once,
    detect_dialect,
    served_models,
)
from llamasweep.engines.prompts import PromptShape, calibrate, llama_server_count
from llamasweep.gguf.synth import cached_model
from llamasweep.results.latency import (
    LatencyFigures,
    RequestTiming,
    concurrency_ratios,
    latency_figures,
)

pytestmark = pytest.mark.needs_llama

N_PROMPT, N_GEN = 512, 64
STREAMS = (1, 2, 4, 8)


@pytest.fixture(scope="module", params=BUILDS)
def address(request: pytest.FixtureRequest) -> Iterator[ServerAddress]:
    """One thread, since two spin at barriers as soon as anything else runs."""
    model = cached_model("tiny-llama", "Q8_0")
    words = ("-c", "8192", "-np", "8", "-t", "1", "-tb", "1")
    with running_server(request.param, model, *words) as server:
        yield parse_base_url(server.url)


@pytest.fixture(scope="module")
def shape(address: ServerAddress) -> PromptShape:
    found = calibrate(N_PROMPT, llama_server_count(address))
    assert found.is_exact
    return found


def completion(text: str, *, n_gen: int = N_GEN, has_cache: bool | None = None) -> Completion:
    return Completion(
        model="m",
        prompt=text,
        n_gen=n_gen,
        is_chat=False,
        seed=1,
        dialect="llama-server",
        has_prompt_cache=has_cache,
    )


def measure(
    address: ServerAddress, shape: PromptShape, n_streams: int, seed: int
) -> list[RequestTiming]:
    requests = [completion(shape.text(seed + i), n_gen=24) for i in range(n_streams)]
    outcomes = complete_at_once(address, requests)
    answers = [one for one in outcomes if isinstance(one, Answer)]
    assert len(answers) == n_streams, outcomes
    return [one.timing for one in answers]


def test_the_server_is_known_and_serves_one_model(address: ServerAddress) -> None:
    assert detect_dialect(address) == "llama-server"
    assert len(served_models(address)) == 1


def test_our_clock_and_the_servers_agree(address: ServerAddress, shape: PromptShape) -> None:
    complete(address, completion(shape.text(1)))
    agreeing = []
    for seed in range(2, 9):
        answer = complete(address, completion(shape.text(seed)))
        timing, server = answer.timing, answer.timing.server
        assert server is not None
        assert server.prompt_ns is not None
        assert server.decode_tps is not None
        assert timing.tpot_ms is not None
        assert set(answer.flags) <= {"clocks_differ"}
        assert (timing.n_prompt, timing.n_gen, server.generated_count) == (N_PROMPT, N_GEN, N_GEN)
        assert timing.ttft_ms >= server.prompt_ns / 1e6
        is_close = timing.ttft_ms == pytest.approx(server.prompt_ns / 1e6, rel=0.25, abs=50)
        agreeing.append(is_close and "clocks_differ" not in answer.flags)
    assert sum(agreeing) > len(agreeing) / 2


def test_the_generation_clock_starts_at_the_first_token(address: ServerAddress) -> None:
    one = complete(address, completion("12345678 x", n_gen=1)).timing.server
    assert one is not None
    assert one.generated_count == 1
    assert (one.generated_ns or 0) < 100_000  # no interval was timed
    assert one.decode_tps is None


def test_more_streams_give_more_throughput_at_more_latency(
    address: ServerAddress, shape: PromptShape
) -> None:
    figures: dict[int, LatencyFigures] = {}
    for n_streams in STREAMS:
        timings = [
            t
            for r in range(2)
            for t in measure(address, shape, n_streams, 1000 * n_streams + 100 * r)
        ]
        assert len(timings) == 2 * n_streams
        figures[n_streams] = latency_figures(timings[n_streams:], n_streams=n_streams)
    for found in figures.values():
        for spread in (found.ttft_ms, found.tpot_ms, found.e2e_ms):
            assert spread.n == found.n_streams
            assert spread.median is not None
            assert spread.p95 is not None
            assert spread.p95 >= spread.median > 0
        assert found.e2e_ms.median > found.ttft_ms.median  # type: ignore[operator]
        assert found.n_counted == 0
    ratios = concurrency_ratios(figures[1], figures[8])
    assert ratios.e2e is not None
    assert ratios.e2e > 1.5
    assert ratios.ttft is not None
    assert ratios.ttft > 1.5
    assert ratios.tpot is not None
    assert ratios.tpot > 1.2


def test_a_cached_prompt_comes_sooner_and_is_told(
    address: ServerAddress, shape: PromptShape
) -> None:
    cold, warm = [], []
    for seed in range(50, 54):
        text = shape.text(seed)
        cold.append(complete(address, completion(text, n_gen=8, has_cache=False)))
        complete(address, completion(text, n_gen=8, has_cache=True))
        warm.append(complete(address, completion(text, n_gen=8, has_cache=True)))
    assert all((one.timing.n_cached or 0) <= 16 for one in cold)
    assert all((one.timing.n_cached or 0) > N_PROMPT / 2 for one in warm)
    cold_ms = statistics.median(one.timing.ttft_ms for one in cold)
    warm_ms = statistics.median(one.timing.ttft_ms for one in warm)
    assert warm_ms < cold_ms / 2
