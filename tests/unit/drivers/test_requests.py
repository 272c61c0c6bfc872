"""What one repetition of a test is, over one stream and over several."""

from __future__ import annotations

import pytest

from llamasweep.drivers.requests import Span, span_of
from llamasweep.engines.http_exchange import RequestError
from llamasweep.results.latency import RequestTiming


def stream(sent: int, *events: int, n_prompt: int | None = 10, n_gen: int = 0) -> RequestTiming:
    """n_gen: 0 = as many as events."""
    return RequestTiming(
        sent_ns=sent, event_ns=events, n_gen=n_gen or len(events), n_prompt=n_prompt
    )


def test_a_generation_of_one_stream_counts_the_tokens_after_its_first() -> None:
    assert span_of("tg", [stream(0, 50, 60, 70)]) == Span(start_ns=50, end_ns=70, n_tokens=2)


def test_a_generation_of_several_streams_counts_only_while_all_answer() -> None:
    """The second stream reads its prompt until 100: what the first did before is not in the span."""
    streams = [stream(0, 20, 60, 110, 120, 130), stream(0, 100, 110, 120, 140)]
    assert span_of("tg", streams) == Span(start_ns=100, end_ns=130, n_tokens=3 + 2)


def test_streams_that_never_answer_together_are_no_measurement() -> None:
    with pytest.raises(RequestError, match="never answered at the same time"):
        span_of("tg", [stream(0, 10, 20), stream(0, 30, 40)])


def test_tokens_that_cannot_be_told_apart_are_not_counted_for_several_streams() -> None:
    lumped = stream(0, 10, 20, n_gen=9)
    assert span_of("tg", [lumped]).n_tokens == 8
    with pytest.raises(RequestError, match="several tokens came in one event"):
        span_of("tg", [lumped, lumped])


def test_prompts_count_as_the_server_counts_them_until_the_last_first_token() -> None:
    streams = [stream(5, 50, n_prompt=100), stream(3, 80, n_prompt=99)]
    assert span_of("pp", streams) == Span(start_ns=3, end_ns=80, n_tokens=199)
    with pytest.raises(RequestError, match="how long the prompt was"):
        span_of("pp", [stream(0, 10, n_prompt=None)])


def test_a_whole_request_counts_prompt_and_answer() -> None:
    assert span_of("pg", [stream(0, 50, 60, n_prompt=7)]) == Span(start_ns=0, end_ns=60, n_tokens=9)


def test_a_lump_of_tokens_has_no_rate() -> None:
    with pytest.raises(RequestError, match="one event"):
        span_of("tg", [stream(0, 50, n_gen=8)])
