"""Ollama's HTTP API: generate with a clock of one's own beside the server's, and what must be known and made around it.

Every option of a runner is sent with each request, since one that is left out has a default that drifts with version,
memory and context. What the answers mean is `ollama_answers`'.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llamasweep.engines.http_exchange import (
    Exchange,
    Limits,
    RequestError,
    ServerAddress,
    call_json,
    said_error,
)
from llamasweep.engines.ollama_answers import (
    Asked,
    OllamaDurations,
    Placement,
    check_answer,
    check_room,
    read_durations,
    read_placements,
)
from llamasweep.engines.ollama_names import (
    RAW_TEMPLATE,
    checked_name,
    checked_own_name,
    is_of_cell,
)
from llamasweep.engines.streaming import EventTooLargeError, LineReader
from llamasweep.errors import ModelFileError, UsageError, quoted
from llamasweep.results.latency import RequestTiming

DEFAULT_BASE_URL = "http://127.0.0.1:11434"
KEEP_ALIVE = "30m"

OPTIONS: dict[str, str] = {
    "n_ctx": "num_ctx",
    "n_batch": "num_batch",
    "n_threads": "num_thread",
    "n_gpu_layers": "num_gpu",
    "main_gpu": "main_gpu",
    "use_mmap": "use_mmap",
    "seed": "seed",
    "temperature": "temperature",
    "top_k": "top_k",
    "repeat_penalty": "repeat_penalty",
}
"""Our name -> Ollama's option. A misspelt option is ignored by Ollama without a word, so only these are sent."""
_HASH_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Generate:
    """One request; its wishes are explained at `ollama_answers.Asked`.

    options: by our names (see OPTIONS). n_prompt: tokens of the prompt where known. is_raw: without the model's template.
    """

    model: str
    prompt: str
    n_gen: int
    options: Mapping[str, int | float | bool] = field(default_factory=dict)
    n_prompt: int | None = None
    is_fixed: bool = True
    is_raw: bool = True
    has_warm_cache: bool = False
    keep_alive: str | int = KEEP_ALIVE

    def body(self) -> dict[str, Any]:
        """The request as JSON. Raises UsageError for an option that is not known."""
        return {
            "model": checked_name(self.model),
            "prompt": self.prompt,
            "raw": self.is_raw,
            "stream": True,
            "think": False,
            "truncate": False,
            "keep_alive": self.keep_alive,
            "options": {**spelled_options(self.options), "num_predict": self.n_gen},
        }

    @property
    def asked(self) -> Asked:
        n_ctx = self.options.get("n_ctx")
        return Asked(
            n_prompt=self.n_prompt,
            n_gen=self.n_gen,
            n_ctx=int(n_ctx) if n_ctx is not None else None,
            is_fixed=self.is_fixed,
            has_warm_cache=self.has_warm_cache,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OllamaAnswer:
    """timing: by our clock. durations: the server's. text: what came. flags: short words of doubt."""

    timing: RequestTiming
    durations: OllamaDurations
    text: str
    done_reason: str | None
    flags: tuple[str, ...] = ()


def spelled_options(options: Mapping[str, int | float | bool]) -> dict[str, int | float | bool]:
    """Under Ollama's names. Raises UsageError for one that is not known."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise UsageError(f"Ollama has no option for {', '.join(unknown)}")
    return {OPTIONS[name]: value for name, value in options.items()}


def generate(
    address: ServerAddress,
    request: Generate,
    limits: Limits | None = None,
    *,
    first_prompt_tps: float | None = None,
    before_send: Callable[[], object] | None = None,
) -> OllamaAnswer:
    """Ask once. first_prompt_tps: the server's rate of the first repetition, against which a cache shows.

    before_send: called on the open connection, to start many at once.

    Raises RequestError where the answer is no measurement: see `ollama_answers.check_answer`; also where the stream ends
    without its final chunk, as it does at the limit of repeated tokens.
    """
    check_room(request.asked)
    body = json.dumps(request.body()).encode()
    stream = _Stream()
    reader = LineReader()
    with Exchange(address, limits) as exchange:
        connect_ns = exchange.connect()
        if before_send is not None:
            before_send()
        sent_ns = exchange.send("POST", "/api/generate", body)
        reply = exchange.reply()
        if reply.content_type not in ("application/x-ndjson", "application/json"):
            raise RequestError("wrong_content_type", f"the answer is {quoted(reply.content_type)}")
        try:
            for now_ns, data in exchange.pieces():
                for payload in reader.feed(data):
                    stream.take(payload, now_ns)
        except EventTooLargeError as problem:
            raise RequestError("too_large", f"the server sent {problem}") from None
    return stream.answer(request, (sent_ns, connect_ns, reply.header_ns), first_prompt_tps)


@dataclass(slots=True)
class _Stream:
    event_ns: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    has_thought: bool = False
    last: Mapping[str, Any] | None = None

    def take(self, payload: bytes, now_ns: int) -> None:
        chunk = _object(payload)
        if chunk.get("error"):
            raise RequestError("server_error", said_error(payload))
        thought = chunk.get("thinking")
        self.has_thought |= bool(thought)
        parts = [p for p in (thought, chunk.get("response")) if isinstance(p, str) and p]
        if parts:
            self.event_ns.append(now_ns)
            self.texts += parts
        if chunk.get("done") is True:
            self.last = chunk

    def answer(
        self, request: Generate, times_ns: tuple[int, int, int], first_prompt_tps: float | None
    ) -> OllamaAnswer:
        if self.last is None:
            raise RequestError(
                "no_final_chunk",
                f"the answer stopped after {len(self.event_ns)} chunks without its figures",
                hint="Ollama does so when a model repeats itself, and when its text is no UTF-8.",
            )
        found = read_durations(self.last)
        reason = self.last.get("done_reason")
        reason = reason[:40] if isinstance(reason, str) and reason else None
        flags = check_answer(request.asked, found, reason, first_prompt_tps=first_prompt_tps)
        if not self.event_ns:
            raise RequestError("no_tokens", "the answer has no text")
        timing = RequestTiming(
            sent_ns=times_ns[0],
            connect_ns=times_ns[1],
            header_ns=times_ns[2],
            event_ns=tuple(self.event_ns),
            n_gen=found.eval_count or len(self.event_ns),
            is_counted=not found.eval_count,
            n_prompt=found.prompt_eval_count,
            n_cached=found.prompt_eval_cached_count,
            finish_reason=reason,
            server=found.timings,
        )
        more = ["thinking"] if self.has_thought else []
        more += [] if timing.has_one_token_per_event else ["several_tokens_per_event"]
        more += ["clocks_differ"] if timing.do_clocks_differ else []
        return OllamaAnswer(
            timing=timing,
            durations=found,
            text="".join(self.texts),
            done_reason=reason,
            flags=(*flags, *more),
        )


def _object(payload: bytes) -> dict[str, Any]:
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RequestError("garbage_output", "a line of the answer is no JSON object")
    return found


class OllamaServer:
    """What can be asked of a server besides generation. All methods raise RequestError."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address

    def version(self) -> str:
        """As the server calls itself: 0.0.0 for one that was built without a version."""
        found = call_json(self.address, "GET", "/api/version", limits=_QUICK)
        text = found.get("version") if isinstance(found, Mapping) else None
        if not isinstance(text, str) or not text:
            raise RequestError("garbage_output", "what answers there is no Ollama")
        return text[:80]

    def models(self) -> tuple[Mapping[str, Any], ...]:
        """The rows of /api/tags: name, size, digest of the manifest, details."""
        found = call_json(self.address, "GET", "/api/tags")
        rows = found.get("models") if isinstance(found, Mapping) else None
        return tuple(
            r for r in rows or () if isinstance(r, Mapping) and isinstance(r.get("name"), str)
        )

    def has(self, name: str) -> bool:
        """Whether the model is there: to be asked before `ollama run`, which would fetch it from the network."""
        full = name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
        return any(row["name"] == full for row in self.models())

    def left_behind(self, owner: str) -> tuple[str, ...]:
        """Names of models of single cells that this owner made and had no chance to remove."""
        return tuple(row["name"] for row in self.models() if is_of_cell(row["name"], owner))

    def running(self) -> tuple[Placement, ...]:
        """What is loaded, and where."""
        return read_placements(call_json(self.address, "GET", "/api/ps"))

    def show(self, name: str) -> Mapping[str, Any]:
        """Details, parameters, template and modelfile of a model."""
        found = call_json(self.address, "POST", "/api/show", {"model": checked_name(name)})
        if not isinstance(found, Mapping):
            raise RequestError("garbage_output", "/api/show answered with what is no object")
        return found

    def derive(
        self,
        name: str,
        base: str,
        parameters: Mapping[str, int | float | bool] | None = None,
        *,
        template: str | None = RAW_TEMPLATE,
    ) -> None:
        """A model of other defaults over the same weights; template None keeps the base's own."""
        body: dict[str, Any] = {"model": checked_own_name(name), "from": checked_name(base)}
        if parameters:
            body["parameters"] = dict(parameters)
        self._create(body, template)

    def create_from_file(
        self, name: str, path: Path, *, template: str | None = RAW_TEMPLATE
    ) -> str:
        """A model of a GGUF file; its SHA-256. The server keeps a copy, from v0.30 on a rewritten one.

        Raises ModelFileError where the file cannot be read.
        """
        digest = file_digest(path)
        self._upload(path, f"sha256:{digest}")
        self._create(
            {"model": checked_own_name(name), "files": {"model.gguf": f"sha256:{digest}"}}, template
        )
        return digest

    def _create(self, body: dict[str, Any], template: str | None) -> None:
        if template is not None:
            body["template"] = template
        found = call_json(self.address, "POST", "/api/create", {**body, "stream": False}, _SLOW)
        if not isinstance(found, Mapping) or found.get("status") != "success":
            raise RequestError("server_error", f"the model was not made: {quoted(found)}")

    def _upload(self, path: Path, digest: str) -> None:
        try:
            call_json(self.address, "HEAD", f"/api/blobs/{digest}")
        except RequestError as problem:
            if problem.http_status != 404:
                raise
        else:
            return
        with Exchange(self.address, _SLOW) as exchange:
            exchange.connect()
            exchange.send_pieces(
                "POST", f"/api/blobs/{digest}", _pieces(path), n_bytes=path.stat().st_size
            )
            exchange.reply()

    def delete(self, name: str) -> None:
        """Remove a model that we made; one that is gone already is no failure."""
        try:
            call_json(self.address, "DELETE", "/api/delete", {"model": checked_own_name(name)})
        except RequestError as problem:
            if problem.http_status != 404:
                raise

    def load(
        self, name: str, options: Mapping[str, int | float | bool], *, keep_alive: str = KEEP_ALIVE
    ) -> float:
        """Load with exactly these options; seconds of wall time, since the reply to an empty prompt has no figures."""
        body = {
            "model": checked_name(name),
            "prompt": "",
            "stream": False,
            "keep_alive": keep_alive,
            "options": spelled_options(options),
        }
        start_ns = time.monotonic_ns()
        call_json(self.address, "POST", "/api/generate", body, _SLOW)
        return (time.monotonic_ns() - start_ns) / 1e9

    def unload(self, name: str) -> None:
        """Throw the model out of memory."""
        body = {"model": checked_name(name), "prompt": "", "stream": False, "keep_alive": 0}
        call_json(self.address, "POST", "/api/generate", body, _SLOW)

    def pull(self, name: str) -> None:
        """Fetch a model from its registry; only where the sweep says so."""
        body = {"model": checked_name(name), "stream": False}
        limits = Limits(silent_s=24 * 3600, total_s=24 * 3600)
        found = call_json(self.address, "POST", "/api/pull", body, limits)
        if not isinstance(found, Mapping) or found.get("status") != "success":
            raise RequestError("server_error", f"the model was not fetched: {quoted(found)}")


_QUICK = Limits(connect_s=3, silent_s=5, total_s=10, body_bytes=1 << 20)
_SLOW = Limits(silent_s=1800, total_s=3600, body_bytes=64 << 20)


def file_digest(path: Path) -> str:
    """SHA-256 of a file in hex. Raises ModelFileError where it cannot be read."""
    digest = hashlib.sha256()
    for piece in _pieces(path):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(_HASH_BYTES):
                yield piece
    except OSError as problem:
        raise ModelFileError(f"{quoted(str(path))} cannot be read: {problem.strerror}") from None
