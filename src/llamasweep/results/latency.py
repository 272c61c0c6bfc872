"""Times of single requests -> TTFT, TPOT, inter-token gaps, E2E, rates, and what many streams at once cost. Pure arithmetic.

Times are of one monotonic clock at the client. What was not observed is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CLOCKS_DIFFER_FROM = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerTimings:
    """What the server says of a request itself; None where it says nothing.

    prompt_count: tokens of the prompt that it really computed where it tells them apart (llama-server's prompt_n), cached_count:
    those it had already. total and load: Ollama's.
    """

    prompt_count: int | None = None
    cached_count: int | None = None
    prompt_ns: int | None = None
    generated_count: int | None = None
    generated_ns: int | None = None
    total_ns: int | None = None
    load_ns: int | None = None

    @property
    def prompt_tps(self) -> float | None:
        """prompt_count / prompt_ns; None without both."""
        return _per_second(self.prompt_count, self.prompt_ns)

    @property
    def decode_tps(self) -> float | None:
        """(generated_count - 1) / generated_ns: both Ollama and llama-server start this clock at the first token.

        None below two tokens. What they print is generated_count / generated_ns, 14 % more at 8 tokens.
        """
        if self.generated_count is None or self.generated_count < 2:
            return None
        return _per_second(self.generated_count - 1, self.generated_ns)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestTiming:
    """One request that was answered to its end.

    sent_ns: just before the request was sent on an open connection. connect_ns: that opening, part of no latency. header_ns:
    arrival of the answer's head. event_ns: arrival of each event with content. n_gen: generated tokens as the server counts them,
    else the events (is_counted). n_prompt, n_cached: tokens of the prompt and those of them from a cache, as the server says.
    """

    sent_ns: int
    connect_ns: int | None = None
    header_ns: int | None = None
    event_ns: tuple[int, ...]
    n_gen: int
    is_counted: bool = False
    n_prompt: int | None = None
    n_cached: int | None = None
    finish_reason: str | None = None
    server: ServerTimings | None = None

    @property
    def ttft_ms(self) -> float:
        """send -> first event with content."""
        return (self.event_ns[0] - self.sent_ns) / 1e6

    @property
    def e2e_ms(self) -> float:
        """send -> last event with content."""
        return (self.event_ns[-1] - self.sent_ns) / 1e6

    @property
    def tpot_ms(self) -> float | None:
        """(E2E - TTFT) / (n_gen - 1); None below two tokens, or where all of them came in one event."""
        if self.n_gen < 2 or len(self.event_ns) < 2:
            return None
        return (self.e2e_ms - self.ttft_ms) / (self.n_gen - 1)

    @property
    def decode_tps(self) -> float | None:
        """1000 / TPOT: what one user sees; None where TPOT is, or where it is 0."""
        tpot_ms = self.tpot_ms
        return 1000 / tpot_ms if tpot_ms else None

    @property
    def itl_ms(self) -> tuple[float, ...]:
        """Each gap between one event with content and the next. Gaps between tokens only if `has_one_token_per_event`."""
        pairs = zip(self.event_ns, self.event_ns[1:], strict=False)
        return tuple((late - early) / 1e6 for early, late in pairs)

    @property
    def has_one_token_per_event(self) -> bool:
        """Whether events can be tokens: one of no text, such as an end of sequence, may be missing."""
        return len(self.event_ns) in (self.n_gen, self.n_gen - 1)

    @property
    def do_clocks_differ(self) -> bool:
        """Whether our rate of generation and the server's are more than a quarter apart; False where one is not known.

        A first token that is delivered late, with others behind it, makes our rate too high: neither clock is wrong, but they
        time different things.
        """
        ours, theirs = self.decode_tps, None if self.server is None else self.server.decode_tps
        if ours is None or theirs is None:
            return False
        return abs(ours - theirs) > CLOCKS_DIFFER_FROM * theirs


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """n values. median, p95, p99: by linear interpolation between the two nearest; all None for no value."""

    n: int
    median: float | None = None
    p95: float | None = None
    p99: float | None = None


def spread(values: Sequence[float]) -> Spread:
    """Median, p95 and p99. Of fewer than 20 values p95 lies between the two largest: read it with n."""
    if not values:
        return Spread(n=0)
    return Spread(
        n=len(values),
        median=percentile(values, 0.5),
        p95=percentile(values, 0.95),
        p99=percentile(values, 0.99),
    )


def percentile(values: Sequence[float], fraction: float) -> float:
    """The value at rank (n - 1) * fraction of the sorted values, interpolated (Hyndman and Fan 1996, type 7).

    Raises ValueError of nothing, and for a fraction outside 0 to 1.
    """
    if not values or not 0 <= fraction <= 1:
        raise ValueError("a percentile wants values, and a fraction from 0 to 1")
    ordered = sorted(values)
    rank = (len(ordered) - 1) * fraction
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyFigures:
    """What requests of one kind felt like; a Spread's figures are None where nothing was observed.

    user_tps: of each request 1000 / TPOT. total_tps: all generated tokens / (first send to last token). itl_ms: gaps of all
    requests together. n_counted: requests whose tokens were counted by us since the server did not tell. n_cached: largest count
    of prompt tokens from a cache, None where no server told.
    """

    n_requests: int
    n_streams: int
    ttft_ms: Spread
    tpot_ms: Spread
    itl_ms: Spread
    e2e_ms: Spread
    user_tps: Spread
    total_tps: float | None
    n_counted: int
    n_cached: int | None
    are_events_tokens: bool


def latency_figures(timings: Sequence[RequestTiming], *, n_streams: int = 1) -> LatencyFigures:
    """Fold requests that were measured alike, with n_streams of them at once."""
    tpots = [value for t in timings if (value := t.tpot_ms) is not None]
    rates = [value for t in timings if (value := t.decode_tps) is not None]
    cached = [t.n_cached for t in timings if t.n_cached is not None]
    return LatencyFigures(
        n_requests=len(timings),
        n_streams=n_streams,
        ttft_ms=spread([t.ttft_ms for t in timings]),
        tpot_ms=spread(tpots),
        itl_ms=spread([gap for t in timings for gap in t.itl_ms]),
        e2e_ms=spread([t.e2e_ms for t in timings]),
        user_tps=spread(rates),
        total_tps=total_tps(timings),
        n_counted=sum(t.is_counted for t in timings),
        n_cached=max(cached) if cached else None,
        are_events_tokens=all(t.has_one_token_per_event for t in timings),
    )


def total_tps(timings: Sequence[RequestTiming]) -> float | None:
    """All generated tokens / (first send to last token of any request), prompts included; None for nothing."""
    if not timings:
        return None
    span_ns = max(t.event_ns[-1] for t in timings) - min(t.sent_ns for t in timings)
    return _per_second(sum(t.n_gen for t in timings), span_ns)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcurrencyRatios:
    """Against one stream: "6.8x the throughput at 4.7x the latency". None where one of the two is not known."""

    throughput: float | None
    e2e: float | None
    ttft: float | None
    tpot: float | None


def concurrency_ratios(one: LatencyFigures, many: LatencyFigures) -> ConcurrencyRatios:
    """Rates and median latencies of many streams / those of one."""
    return ConcurrencyRatios(
        throughput=_ratio(many.total_tps, one.total_tps),
        e2e=_ratio(many.e2e_ms.median, one.e2e_ms.median),
        ttft=_ratio(many.ttft_ms.median, one.ttft_ms.median),
        tpot=_ratio(many.tpot_ms.median, one.tpot_ms.median),
    )


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def _per_second(count: int | None, duration_ns: int | None) -> float | None:
    if count is None or duration_ns is None or duration_ns <= 0:
        return None
    return count / duration_ns * 1e9
