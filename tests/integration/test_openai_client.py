"""The streaming client against a server of known timing: what it measures is what was sent, or it is a failure with a reason."""

from __future__ import annotations

import contextlib
import http.client
import os
import statistics
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.fakes.timed_server import Served, TimedServer, timed_server

from llamasweep.engines.http_exchange import Limits, RequestError, parse_base_url
from llamasweep.engines.openai_client import (
    Answer,
    Completion,
    complete,
    complete_at_once,
    detect_dialect,
    key_from_environment,
)
from llamasweep.errors import UsageError

CLOCK_MS = 3.0
N_BARE = 3
N_TRIES = 5
"""What a busy machine adds by waking client or server late is not the client's error: the best of some tries counts. Nothing may
ever be measured too early."""


def slack_ms(server: TimedServer, **behaviour: Any) -> float:
    """The clock's error; on a slow machine three times what a bare reader of the same stream is late, and the turns of others
    where more processes want to run than there are cores."""
    n_waiting = os.getloadavg()[0] / (os.cpu_count() or 1) - 1
    late_ms = max(bare_lateness_ms(server, **behaviour) for _ in range(N_BARE))
    return max(CLOCK_MS, 3 * late_ms) + 50 * max(0.0, n_waiting)


def bare_lateness_ms(server: TimedServer, **behaviour: Any) -> float:
    """From the last event being sent to the stream being read, by the standard library alone."""
    server.take_log()
    address = urlsplit(server.base_url(**behaviour))
    with contextlib.closing(http.client.HTTPConnection(address.netloc, timeout=60)) as connection:
        connection.request("POST", f"{address.path}/chat/completions", b'{"messages": []}')
        connection.getresponse().read()
        ended_ns = time.monotonic_ns()
    (served,) = server.take_log()
    return (ended_ns - served.sent_ns[-1]) / 1e6


SHORT = Limits(connect_s=2, silent_s=0.3, total_s=1.0, body_bytes=1 << 20)


@pytest.fixture(scope="module")
def server() -> Iterator[TimedServer]:
    with timed_server() as running:
        yield running


def ask(
    server: TimedServer,
    *,
    limits: Limits | None = None,
    is_chat: bool = True,
    n_gen: int = 8,
    **behaviour: Any,
) -> tuple[Answer, Served]:
    server.take_log()
    address = parse_base_url(server.base_url(n_tokens=n_gen, **behaviour))
    request = Completion(model="m", prompt="12345678 some words", n_gen=n_gen, is_chat=is_chat)
    answer = complete(address, request, limits)
    (served,) = server.take_log()
    return answer, served


def assert_measured_is_true(
    server: TimedServer, *, is_chat: bool = True, n_gen: int = 8, **behaviour: Any
) -> Answer:
    """The answer whose times are true, of a few."""
    for n_left in reversed(range(N_TRIES)):
        is_first = n_left == N_TRIES - 1
        slack = CLOCK_MS if is_first else slack_ms(server, n_tokens=n_gen, **behaviour)
        answer, served = ask(server, is_chat=is_chat, n_gen=n_gen, **behaviour)
        assert_never_early(answer, served)
        try:
            assert_true_timing(answer, served, slack)
        except AssertionError:
            if not n_left:
                raise
        else:
            break
    return answer


def assert_never_early(answer: Answer, served: Served) -> None:
    """Every event at or after it was sent."""
    pairs = zip(answer.timing.event_ns, served.sent_ns, strict=True)
    assert all(seen >= sent for seen, sent in pairs)
    assert answer.timing.sent_ns <= served.received_ns


def assert_true_timing(answer: Answer, served: Served, slack: float) -> None:
    """Every event as it was sent, TTFT, TPOT and E2E within the clock's error."""
    timing = answer.timing
    assert len(timing.event_ns) == len(served.sent_ns)
    late_ms = [
        (seen - sent) / 1e6 for seen, sent in zip(timing.event_ns, served.sent_ns, strict=True)
    ]
    assert statistics.median(late_ms) < slack
    true_ttft_ms = (served.sent_ns[0] - served.received_ns) / 1e6
    true_e2e_ms = (served.sent_ns[-1] - served.received_ns) / 1e6
    assert true_ttft_ms <= timing.ttft_ms < true_ttft_ms + slack
    assert true_e2e_ms <= timing.e2e_ms < true_e2e_ms + slack
    if timing.tpot_ms is not None:
        true_tpot_ms = (true_e2e_ms - true_ttft_ms) / (timing.n_gen - 1)
        assert timing.tpot_ms == pytest.approx(true_tpot_ms, abs=slack / (timing.n_gen - 1))


@pytest.mark.parametrize(
    "behaviour",
    [
        {},
        {"jitter_s": 0.01, "seed": 3},
        {"cut": 1},
        {"cut": 7, "comments": 2},
        {"comments": 3},
        {"role_first": True},
        {"reasoning": True},
        {"is_chunked": False},
        {"is_chunked": False, "cut": 5},
        {"headers_s": 0.05},
        {"gap_s": 0.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_chat", [True, False])
def test_measured_times_are_the_true_ones(
    server: TimedServer, behaviour: dict[str, Any], is_chat: bool
) -> None:
    answer = assert_measured_is_true(server, is_chat=is_chat, **behaviour)
    assert (answer.timing.n_gen, answer.timing.n_prompt, answer.timing.is_counted) == (8, 5, False)
    assert answer.text == " w" * 8
    assert answer.flags == ()


def test_several_tokens_in_an_event_are_counted_by_usage_and_flagged(server: TimedServer) -> None:
    answer = assert_measured_is_true(server, n_gen=9, tokens_per_event=3)
    assert (answer.timing.n_gen, len(answer.timing.event_ns)) == (9, 3)
    assert answer.flags == ("several_tokens_per_event",)


def test_without_usage_events_are_counted_and_marked(server: TimedServer) -> None:
    answer = assert_measured_is_true(server, usage=False)
    assert (answer.timing.n_gen, answer.timing.is_counted, answer.timing.n_prompt) == (
        8,
        True,
        None,
    )
    assert answer.flags == ("tokens_counted",)


def test_one_token_has_a_first_token_and_no_rate(server: TimedServer) -> None:
    answer = assert_measured_is_true(server, n_gen=1)
    assert (answer.timing.tpot_ms, answer.timing.decode_tps, answer.timing.itl_ms) == (
        None,
        None,
        (),
    )


def test_a_cached_prompt_is_flagged(server: TimedServer) -> None:
    answer, _ = ask(server, n_prompt=500, cached=400)
    assert answer.timing.n_cached == 400
    assert "prompt_cached" in answer.flags


def test_an_answer_shorter_than_asked_is_flagged(server: TimedServer) -> None:
    address = parse_base_url(server.base_url(n_tokens=4))
    answer = complete(address, Completion(model="m", prompt="x", n_gen=9))
    assert answer.timing.n_gen == 4
    assert "short_answer" in answer.flags


FAILURES = [
    ("status_500", {}, "http_status", "HTTP 500: out of slots"),
    ("status_401", {}, "http_status", "HTTP 401: no key"),
    ("wrong_type", {}, "wrong_content_type", "'text/html' and no stream of events"),
    ("redirect", {}, "http_status", "redirects are not followed"),
    ("slow_headers", {}, "timeout", "no complete answer within 1 s"),
    ("endless_headers", {}, "garbage_output", "no HTTP"),
    ("silent", {}, "timeout", "the server was silent for 0.3 s"),
    ("drips", {}, "timeout", "no complete answer within 1 s"),
    ("drips", {"is_chunked": False}, "timeout", "no complete answer within 1 s"),
    ("none", {"is_chunked": False, "ttft_s": 2.0}, "timeout", "the server was silent for 0.3 s"),
    ("close_early", {}, "cut_short", "the connection broke in the middle"),
    ("close_early", {"is_chunked": False}, "cut_short", "without its end mark"),
    ("no_done", {}, "cut_short", "without its end mark"),
    ("truncated_json", {"is_chunked": False}, "cut_short", "inside an event"),
    ("no_tokens", {"fault_at": 99}, "no_tokens", "without a token"),
    ("not_json", {}, "garbage_output", "no JSON"),
    ("error_event", {}, "server_error", "the slot was lost"),
    ("endless_line", {}, "too_large", ""),
]


@pytest.mark.parametrize(("fault", "more", "kind", "words"), FAILURES, ids=str)
def test_a_broken_answer_is_a_failure_with_its_reason(
    server: TimedServer, fault: str, more: dict[str, Any], kind: str, words: str
) -> None:
    with pytest.raises(RequestError) as caught:
        ask(server, limits=SHORT, fault=fault, **more)
    assert caught.value.kind == kind
    assert words in caught.value.message


def test_slow_headers_that_come_in_time_count_as_time_to_first_token(server: TimedServer) -> None:
    answer, _ = ask(server, headers_s=0.1, ttft_s=0.0)
    assert answer.timing.header_ns is not None
    assert answer.timing.ttft_ms >= 100


def test_nobody_listening_is_a_failure_that_names_the_address() -> None:
    with pytest.raises(RequestError, match=r"http://127\.0\.0\.1:1 cannot be reached") as caught:
        complete(parse_base_url("http://127.0.0.1:1"), Completion(model="m", prompt="x", n_gen=2))
    assert caught.value.kind == "not_reachable"


@pytest.mark.parametrize("n_streams", [2, 8])
def test_streams_at_once_keep_their_own_times(server: TimedServer, n_streams: int) -> None:
    server.take_log()
    address = parse_base_url(server.base_url(n_tokens=6, ttft_s=0.3))
    requests = [Completion(model="m", prompt=f"{i} x", n_gen=6) for i in range(n_streams)]
    outcomes = complete_at_once(address, requests)
    answers = [one for one in outcomes if isinstance(one, Answer)]
    assert len(answers) == n_streams
    served = sorted(server.take_log(), key=lambda one: one.body["messages"][0]["content"])
    assert max(one.timing.sent_ns for one in answers) < min(one.sent_ns[0] for one in served)
    slack = 10 * slack_ms(server)
    for answer, truth in zip(answers, served, strict=True):
        assert_never_early(answer, truth)
        assert_true_timing(answer, truth, slack)


def test_one_failing_stream_does_not_take_the_others_with_it(server: TimedServer) -> None:
    address = parse_base_url(server.base_url(n_tokens=4, fault="error_event", fault_at=2))
    outcomes = complete_at_once(address, [Completion(model="m", prompt="x", n_gen=4)] * 3)
    assert [one.kind for one in outcomes if isinstance(one, RequestError)] == ["server_error"] * 3


def test_streams_that_cannot_connect_all_say_so() -> None:
    requests = [Completion(model="m", prompt="x", n_gen=4)] * 3
    outcomes = complete_at_once(parse_base_url("http://127.0.0.1:1"), requests)
    assert [one.kind for one in outcomes if isinstance(one, RequestError)] == ["not_reachable"] * 3


def test_the_key_goes_into_the_head_and_into_no_message(
    server: TimedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    key = key_from_environment("MY_KEY")
    address = parse_base_url(server.base_url(), key=key)
    server.take_log()
    complete(address, Completion(model="m", prompt="x", n_gen=8))
    assert server.take_log()[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in f"{address!r} {address.url} {address}"
    leaky = parse_base_url(server.base_url(fault="echo_key"), key=key)
    with pytest.raises(RequestError) as caught:
        complete(leaky, Completion(model="m", prompt="x", n_gen=8))
    assert caught.value.message == "the server answered HTTP 400: bad key Bearer (hidden)"


def test_a_variable_without_a_key_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    assert key_from_environment(None) is None
    with pytest.raises(UsageError, match="'MY_KEY' holds no key"):
        key_from_environment("MY_KEY")


def test_a_server_that_says_nothing_of_itself_is_taken_for_any(server: TimedServer) -> None:
    address = parse_base_url(server.base_url(fault="status_500"))
    assert detect_dialect(address) == "openai"
