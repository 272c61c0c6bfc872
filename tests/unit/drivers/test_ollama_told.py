"""Doubts of a cell of Ollama: what the server's log counts, and what a rate that jumped lets one guess."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.engines.made import PG, PP, TG, cell

from llamasweep.drivers.ollama_plan import Plan, Reply, plan_of
from llamasweep.drivers.ollama_told import doubts_of
from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.ollama_answers import OllamaDurations
from llamasweep.results.latency import RequestTiming
from llamasweep.sweep.cell import Test

MS = 1_000_000


def reply(*flags: str, n_prompt: int | None = 16, n_gen: int | None = 1) -> Reply:
    durations = OllamaDurations(
        prompt_eval_count=n_prompt,
        prompt_eval_duration_ns=16 * MS,
        eval_count=n_gen,
        eval_duration_ns=80 * MS,
    )
    return Reply(durations=durations, ended_ns=1000 * MS, flags=flags)


COLD = plan_of(cell(PP))
JUMPED = [reply(), reply("prompt_cached")]


@pytest.mark.parametrize(
    ("plan", "counts", "is_doubted"),
    [
        (COLD, [], True),  # the log counts nothing: the jump is all there is
        (COLD, [1], True),
        (COLD, [1, 1], False),
        (COLD, [1, 200], True),
        (plan_of(cell(PP, prompt_cache="warm")), [1, 200, 1, 200], False),
    ],
)
def test_what_the_log_counts_rules_over_a_rate_that_jumped(
    plan: Plan, counts: list[int], is_doubted: bool
) -> None:
    assert ("prompt_cached" in doubts_of(plan, JUMPED, "0.32.15", counts)) == is_doubted


def test_a_generation_counts_the_tokens_after_its_first() -> None:
    plan = plan_of(cell(TG))
    assert (plan.n_prompt, plan.n_gen) == (16, 9)
    one = reply(n_gen=9)
    assert plan.n_tokens(one.durations) == 8
    assert plan.span_ns(one.durations) == 80 * MS
    assert plan.started_ns(one) == 920 * MS


def test_a_prompt_began_before_the_token_that_followed_it() -> None:
    assert COLD.n_tokens(reply().durations) == 16
    assert COLD.started_ns(reply()) == (1000 - 80 - 16) * MS


def timed(sent: int, *events: int) -> Reply:
    timing = RequestTiming(sent_ns=sent, event_ns=events, n_gen=len(events), n_prompt=16)
    return replace(reply(), timing=timing)


def test_one_request_is_timed_by_ollama_where_no_number_of_streams_is_named() -> None:
    found = COLD.span([timed(0, 50 * MS)])
    assert (found.end_ns - found.start_ns, found.n_tokens) == (16 * MS, 16)


def test_streams_are_timed_together_by_our_own_clock() -> None:
    plan = plan_of(cell(PP, concurrency=2))
    found = plan.span([timed(0, 50 * MS), timed(1 * MS, 90 * MS)])
    assert (found.end_ns - found.start_ns, found.n_tokens) == (90 * MS, 32)
    one = plan_of(cell(PP, concurrency=1)).span([timed(0, 50 * MS)])
    assert one.end_ns - one.start_ns == 50 * MS  # alike, since the two are held against each other
    by_run = plan_of(cell(PP, concurrency=1)).span([reply()])
    assert by_run.end_ns - by_run.start_ns == 16 * MS


@pytest.mark.parametrize("test", [TG, PG])
def test_an_answer_that_nobody_counted_has_no_rate(test: Test) -> None:
    with pytest.raises(RequestError, match="how long the answer was"):
        plan_of(cell(test)).n_tokens(reply(n_gen=None).durations)


def test_a_prompt_that_nobody_counted_has_no_rate() -> None:
    with pytest.raises(RequestError, match="how long the prompt was"):
        COLD.n_tokens(reply(n_prompt=None).durations)
    with pytest.raises(RequestError, match="how long it took"):
        COLD.span_ns(OllamaDurations(prompt_eval_count=16))
