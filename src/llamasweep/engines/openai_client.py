"""Streamed completions of any OpenAI-compatible server, timed at the client: one request, or many at once.

Knows what such servers send (usage, llama-server's timings, several tokens in an event, errors inside the stream) and what
it means. Sockets are http_exchange's, arithmetic is results.latency's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from llamasweep.engines.at_once import ask_at_once
from llamasweep.engines.http_exchange import (
    Exchange,
    Limits,
    RequestError,
    ServerAddress,
    call_json,
    said_error,
)
from llamasweep.engines.prompts import CACHED_TOLERANCE_TOKENS
from llamasweep.engines.streaming import EventReader, EventTooLargeError, SseReader
from llamasweep.errors import UsageError, quoted
from llamasweep.results.latency import RequestTiming, ServerTimings

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
"""llama-server's; not localhost, whose lookup may try another protocol first."""
_DONE = b"[DONE]"
_TEXT_NAMES = ("content", "reasoning_content", "reasoning")
_STREAM_TYPES = ("text/event-stream", "application/octet-stream", "text/plain")
"""Some servers name no type of their own for a stream."""

Dialect = Literal["llama-server", "vllm", "ollama", "openai"]
"""Which extras a server takes; "openai" takes none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What to ask.

    prompt: the text, or for a conversation (role, text) in order. n_gen: tokens wanted; is_fixed: ask the server not to end
    earlier, where its dialect can. temperature 0 and seed make repetitions alike. has_prompt_cache: None leaves it to the
    server. extra: further fields of the request, on top.
    """

    model: str
    prompt: str | tuple[tuple[str, str], ...]
    n_gen: int
    is_chat: bool = True
    is_fixed: bool = True
    temperature: float | None = 0.0
    seed: int | None = None
    dialect: Dialect = "openai"
    has_prompt_cache: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.is_chat else "/v1/completions"

    def body(self) -> bytes:
        """The request as JSON."""
        said: dict[str, Any] = {
            "model": self.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": self.n_gen,
            **self._prompt_fields(),
        }
        if self.temperature is not None:
            said["temperature"] = self.temperature
        if self.seed is not None:
            said["seed"] = self.seed
        if self.is_fixed:
            said |= _FIXED_LENGTH.get(self.dialect, {})
            if self.dialect == "vllm":
                said["min_tokens"] = self.n_gen
        if self.has_prompt_cache is not None and self.dialect == "llama-server":
            said["cache_prompt"] = self.has_prompt_cache
        return json.dumps({**said, **self.extra}).encode()

    def _prompt_fields(self) -> dict[str, Any]:
        if not self.is_chat:
            if not isinstance(self.prompt, str):
                raise UsageError("a conversation needs the chat interface")
            return {"prompt": self.prompt}
        turns = (("user", self.prompt),) if isinstance(self.prompt, str) else self.prompt
        return {"messages": [{"role": role, "content": text} for role, text in turns]}


_FIXED_LENGTH: dict[Dialect, dict[str, Any]] = {
    "llama-server": {"ignore_eos": True},
    "vllm": {"ignore_eos": True},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A request that was answered. text: what came, content and reasoning together. flags: short words of doubt."""

    timing: RequestTiming
    text: str
    flags: tuple[str, ...] = ()


Outcome = Answer | RequestError
"""What became of one request of many: a failure is a value, so that the others are kept."""


def key_from_environment(variable: str | None) -> str | None:
    """The key in that variable; None where none is named. Raises UsageError where the variable is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"the environment variable {quoted(variable)} holds no key")
    return key


def detect_dialect(address: ServerAddress) -> Dialect:
    """Ask the server what it is; "openai" where it does not say."""
    limits = Limits(connect_s=5, silent_s=5, total_s=10, body_bytes=8 << 20)
    probes: tuple[tuple[str, Dialect, str], ...] = (
        ("/props", "llama-server", "default_generation_settings"),
        ("/api/version", "ollama", "version"),
        ("/version", "vllm", "version"),
    )
    for path, dialect, name in probes:
        try:
            found = call_json(address, "GET", path, limits=limits)
        except RequestError as problem:
            if problem.kind == "not_reachable":
                raise
            continue
        if isinstance(found, Mapping) and name in found:
            return dialect
    return "openai"


def served_models(address: ServerAddress) -> tuple[str, ...]:
    """Names that the server offers, in its order. Raises RequestError."""
    found = call_json(address, "GET", "/v1/models")
    rows = found.get("data") if isinstance(found, Mapping) else None
    names = [row.get("id") for row in rows or () if isinstance(row, Mapping)]
    return tuple(name for name in names if isinstance(name, str))


def complete(
    address: ServerAddress,
    request: Completion,
    limits: Limits | None = None,
    *,
    before_send: Callable[[], object] | None = None,
) -> Answer:
    """Ask once and time the answer. before_send: called on the open connection, to start many at once.

    Raises RequestError where the answer is no measurement: refused, cut short, without a token, without its end.
    """
    body = request.body()
    stream = _Stream()
    reader: EventReader = SseReader()
    with Exchange(address, limits) as exchange:
        connect_ns = exchange.connect()
        if before_send is not None:
            before_send()
        sent_ns = exchange.send("POST", request.path, body)
        reply = exchange.reply()
        if reply.content_type not in _STREAM_TYPES:
            raise RequestError(
                "wrong_content_type",
                f"the answer is {quoted(reply.content_type)} and no stream of events",
            )
        try:
            for now_ns, data in exchange.pieces():
                for payload in reader.feed(data):
                    stream.take(payload, now_ns, address)
        except EventTooLargeError as problem:
            raise RequestError("too_large", f"the server sent {problem}") from None
    return stream.answer(request, sent_ns, connect_ns, reply.header_ns, reader.n_waiting_bytes)


@dataclass(slots=True)
class _Stream:
    """What was seen of an answer so far."""

    event_ns: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    is_done: bool = False

    def take(self, payload: bytes, now_ns: int, address: ServerAddress) -> None:
        if payload == _DONE:
            self.is_done = True
            return
        try:
            event = json.loads(payload)
        except (ValueError, RecursionError):
            raise RequestError("garbage_output", "an event of the stream is no JSON") from None
        if not isinstance(event, dict):
            raise RequestError("garbage_output", "an event of the stream is no JSON object")
        if event.get("error"):
            raise RequestError("server_error", address.without_secrets(said_error(payload)))
        if text := self._text_of(event):
            self.event_ns.append(now_ns)
            self.texts.append(text)
        if isinstance(usage := event.get("usage"), dict):
            self.usage = usage
        if isinstance(timings := event.get("timings"), dict):
            self.timings = timings

    def _text_of(self, event: dict[str, Any]) -> str:
        """The new text, '' for none. Only the first choice is asked for."""
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if isinstance(reason := choice.get("finish_reason"), str):
            self.finish_reason = reason[:40]
        delta = choice.get("delta")
        parts = [delta.get(name) for name in _TEXT_NAMES] if isinstance(delta, dict) else []
        return "".join(part for part in (*parts, choice.get("text")) if isinstance(part, str))

    def answer(
        self, request: Completion, sent_ns: int, connect_ns: int, header_ns: int, n_waiting: int
    ) -> Answer:
        if not (self.is_done or self.finish_reason):
            rest = ", inside an event" if n_waiting else ""
            raise RequestError("cut_short", f"the stream ended without its end mark{rest}")
        if not self.event_ns:
            raise RequestError("no_tokens", "the stream ended without a token")
        told = _count(self.usage.get("completion_tokens"))
        timing = RequestTiming(
            sent_ns=sent_ns,
            connect_ns=connect_ns,
            header_ns=header_ns,
            event_ns=tuple(self.event_ns),
            n_gen=told or len(self.event_ns),
            is_counted=not told,
            n_prompt=_count(self.usage.get("prompt_tokens")),
            n_cached=self._cached(),
            finish_reason=self.finish_reason,
            server=_server_timings(self.timings),
        )
        return Answer(timing=timing, text="".join(self.texts), flags=_flags(request, timing))

    def _cached(self) -> int | None:
        details = self.usage.get("prompt_tokens_details")
        told = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
        return told if told is not None else _count(self.timings.get("cache_n"))


def _flags(request: Completion, timing: RequestTiming) -> tuple[str, ...]:
    flags = ["tokens_counted"] if timing.is_counted else []
    if not timing.has_one_token_per_event:
        flags.append("several_tokens_per_event")
    if timing.do_clocks_differ:
        flags.append("clocks_differ")
    if timing.n_gen < request.n_gen:
        flags.append("short_answer")
    is_cached = timing.n_cached is not None and timing.n_cached > CACHED_TOLERANCE_TOKENS
    if is_cached and not request.has_prompt_cache:
        flags.append("prompt_cached")
    return tuple(flags)


def _server_timings(found: Mapping[str, Any]) -> ServerTimings | None:
    """llama-server's `timings`: prompt_n counts what it computed, cached tokens apart."""
    if not found:
        return None
    return ServerTimings(
        prompt_count=_count(found.get("prompt_n")),
        cached_count=_count(found.get("cache_n")),
        prompt_ns=_ns(found.get("prompt_ms")),
        generated_count=_count(found.get("predicted_n")),
        generated_ns=_ns(found.get("predicted_ms")),
    )


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if is_count else None  # type: ignore[return-value]


def _ns(value: object) -> int | None:
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return round(value * 1e6) if is_time else None  # type: ignore[operator]


def complete_at_once(
    address: ServerAddress, requests: Sequence[Completion], limits: Limits | None = None
) -> tuple[Outcome, ...]:
    """One stream per request, all sent at the same moment on connections that are open already; outcomes in their order.

    Raises UsageError for more than 512 streams.
    """
    return ask_at_once(
        len(requests),
        lambda index, ready: complete(address, requests[index], limits, before_send=ready),
    )
