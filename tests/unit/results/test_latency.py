"""Latencies against arithmetic by hand."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamasweep.results.latency import (
    LatencyFigures,
    RequestTiming,
    ServerTimings,
    Spread,
    concurrency_ratios,
    latency_figures,
    percentile,
    spread,
)

MS = 1_000_000


def timing(*event_ms: float, sent_ms: float = 0, n_gen: int | None = None) -> RequestTiming:
    return RequestTiming(
        sent_ns=int(sent_ms * MS),
        event_ns=tuple(int(t * MS) for t in event_ms),
        n_gen=len(event_ms) if n_gen is None else n_gen,
    )


def test_a_request_by_hand() -> None:
    one = timing(150, 170, 190, 250, sent_ms=100)
    assert one.ttft_ms == 50
    assert one.e2e_ms == 150
    assert one.tpot_ms == pytest.approx(100 / 3)
    assert one.decode_tps == pytest.approx(30)
    assert list(one.itl_ms) == [20, 20, 60]
    assert one.has_one_token_per_event


def test_tokens_of_the_server_and_not_events_make_the_time_per_token() -> None:
    one = timing(50, 70, 90, n_gen=9)
    assert one.tpot_ms == 5
    assert not one.has_one_token_per_event


def test_a_last_token_without_text_is_no_doubt() -> None:
    assert timing(50, 70, 90, n_gen=4).has_one_token_per_event


@pytest.mark.parametrize("one", [timing(50), timing(50, n_gen=8), timing(50, 60, n_gen=1)])
def test_without_two_tokens_there_is_no_time_per_token(one: RequestTiming) -> None:
    assert (one.tpot_ms, one.decode_tps) == (None, None)
    assert latency_figures([one]).tpot_ms == Spread(n=0)


def test_tokens_at_the_same_instant_have_no_rate() -> None:
    one = timing(50, 50)
    assert (one.tpot_ms, one.decode_tps) == (0, None)


def test_figures_of_no_request_are_absent_and_not_zero() -> None:
    figures = latency_figures([])
    nothing = Spread(n=0)
    assert figures == LatencyFigures(
        n_requests=0,
        n_streams=1,
        ttft_ms=nothing,
        tpot_ms=nothing,
        itl_ms=nothing,
        e2e_ms=nothing,
        user_tps=nothing,
        total_tps=None,
        n_counted=0,
        n_cached=None,
        are_events_tokens=True,
    )
    assert nothing.median is None
    assert nothing.p99 is None


def test_streams_at_once_by_hand() -> None:
    one = latency_figures([timing(100, 200, 300, 400, 500)])
    many = latency_figures(
        [timing(200, 400, 600, 800, 1000, sent_ms=s) for s in (0, 10)], n_streams=2
    )
    assert one.total_tps == pytest.approx(5 / 0.5)
    assert many.total_tps == pytest.approx(10 / 1.0)
    ratios = concurrency_ratios(one, many)
    assert ratios.throughput == pytest.approx(1.0)
    assert ratios.tpot == pytest.approx(2.0)
    assert ratios.e2e == pytest.approx(995 / 500)
    assert ratios.ttft == pytest.approx(195 / 100)


def test_ratios_against_nothing_are_absent() -> None:
    ratios = concurrency_ratios(latency_figures([]), latency_figures([timing(1, 2)]))
    assert (ratios.throughput, ratios.e2e, ratios.ttft, ratios.tpot) == (None, None, None, None)


def test_the_servers_decode_rate_counts_intervals() -> None:
    server = ServerTimings(
        prompt_count=12, prompt_ns=6 * MS, generated_count=8, generated_ns=70 * MS
    )
    assert server.prompt_tps == pytest.approx(2000)
    assert server.decode_tps == pytest.approx(100)


@pytest.mark.parametrize(
    "server",
    [
        ServerTimings(),
        ServerTimings(prompt_count=3, generated_count=1, generated_ns=120_359),
        ServerTimings(prompt_ns=5, generated_ns=5),
        ServerTimings(prompt_count=3, prompt_ns=0, generated_count=3, generated_ns=0),
    ],
)
def test_a_server_that_does_not_tell_both_has_no_rate(server: ServerTimings) -> None:
    assert (server.prompt_tps, server.decode_tps) == (None, None)


@pytest.mark.parametrize(
    ("generated_ns", "differ"),
    [(70 * MS, False), (60 * MS, False), (50 * MS, True), (100 * MS, True), (None, False)],
)
def test_clocks_that_differ_are_seen(generated_ns: int | None, differ: bool) -> None:
    server = ServerTimings(generated_count=8, generated_ns=generated_ns)
    events = tuple((50 + 10 * i) * MS for i in range(8))
    one = RequestTiming(sent_ns=0, event_ns=events, n_gen=8, server=server)
    assert one.do_clocks_differ is differ


def test_percentiles_by_hand() -> None:
    found = spread([4, 1, 3, 2, 5])
    assert (found.n, found.median, found.p95) == (5, 3, 4.8)
    assert found.p99 == pytest.approx(4.96)
    assert spread([7]) == Spread(n=1, median=7, p95=7, p99=7)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_percentiles_are_those_of_the_standard_library(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert percentile(values, 0.95) == pytest.approx(cuts[94], abs=1e-6)
    assert percentile(values, 0.99) == pytest.approx(cuts[98], abs=1e-6)
    assert percentile(values, 0.5) == pytest.approx(statistics.median(values), abs=1e-6)


@pytest.mark.parametrize(("values", "fraction"), [([], 0.5), ([1.0], 1.5), ([1.0], -0.1)])
def test_a_percentile_of_nothing_is_refused(values: list[float], fraction: float) -> None:
    with pytest.raises(ValueError, match="a percentile wants values"):
        percentile(values, fraction)
