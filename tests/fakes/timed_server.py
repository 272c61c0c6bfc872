"""A streaming server of known timing on 127.0.0.1, in a process of its own, that misbehaves on demand.

The path holds the behaviour: `/<JSON, quoted>/v1/chat/completions`, `…/v1/completions` and Ollama's `…/api/generate`. What
was really sent and when (CLOCK_MONOTONIC, one clock for all processes) stands in `GET /log`. Standard library only.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import random
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Fault = Literal[
    "none", "status_500", "status_401", "wrong_type", "slow_headers", "silent", "close_early", "no_tokens", "not_json",
    "error_event", "endless_line", "endless_headers", "redirect", "truncated_json", "no_done", "drips", "echo_key",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """ttft_s: from the whole request to the first token. gap_s: between events; jitter_s: most that is added to each.

    tokens_per_event: tokens in one chunk. cut: bytes per write, 0 for a whole event. comments: keep-alive comments
    between events. n_prompt: what usage says of the prompt; cached: how many of them from the cache. word_s: further time to the
    first token for each word of the prompt that does not stand at the start of the last prompt and its answer; then words are
    what usage counts, and of more than window, the rest is not read. headers_s: waited before the status line. fault_at: event
    before which the fault comes.
    """

    ttft_s: float = 0.03
    gap_s: float = 0.005
    jitter_s: float = 0.0
    n_tokens: int = 8
    tokens_per_event: int = 1
    cut: int = 0
    comments: int = 0
    usage: bool = True
    role_first: bool = False
    reasoning: bool = False
    n_prompt: int | None = None
    cached: int | None = None
    word_s: float = 0.0
    window: int = 1_000_000
    headers_s: float = 0.0
    is_chunked: bool = True
    fault: Fault = "none"
    fault_at: int = 3
    seed: int = 0

    def base_url(self, server: str) -> str:
        """The address below which this behaviour is found."""
        said = {k: v for k, v in dataclasses.asdict(self).items() if v != _DEFAULTS[k]}
        return f"{server}/{urllib.parse.quote(json.dumps(said), safe='')}"


_DEFAULTS = {f.name: f.default for f in dataclasses.fields(Behaviour)}


@dataclass
class Served:
    """One request as the server saw it. sent_ns: just before each event was handed to the socket."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    received_ns: int
    sent_ns: list[int] = field(default_factory=list)
    is_complete: bool = False


class _Connection:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        log: list[Served],
        held: list[str],
    ) -> None:
        self.reader, self.writer, self.log, self.held = reader, writer, log, held
        self.is_chunked = True

    async def handle(self) -> bool:
        """One request; False where the connection is to be closed."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        first, *rest = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in rest if line)}
        data = await self.reader.readexactly(int(headers.get("content-length", "0")))
        if method == "GET" and target == "/log":
            text = json.dumps([dataclasses.asdict(one) for one in self.log]).encode()
            self.log.clear()
            await self.plain(200, "application/json", text)
            return True
        spec, _, path = target.lstrip("/").partition("/")
        behaviour = Behaviour(**json.loads(urllib.parse.unquote(spec)))
        body = json.loads(data) if data else {}
        served = Served(path=path, headers=headers, body=body, received_ns=time.monotonic_ns())
        self.log.append(served)
        return await self.answer(behaviour, served)

    async def plain(self, status: int, kind: str, text: bytes, extra: str = "") -> None:
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n{extra}\r\n"
        self.writer.write(head.encode() + text)
        await self.writer.drain()

    async def answer(self, b: Behaviour, served: Served) -> bool:
        if "tokenize" in served.path:
            n = len(served.body["content"].split())
            await self.plain(
                200, "application/json", json.dumps({"tokens": list(range(n))}).encode()
            )
            return True
        await asyncio.sleep(b.headers_s)
        refusals = {
            "status_500": (500, "application/json", b'{"error": {"message": "out of slots"}}'),
            "status_401": (401, "application/json", b'{"error": "no key"}'),
            "wrong_type": (200, "text/html", b"<html>a page</html>"),
            "echo_key": (
                400,
                "text/plain",
                ("bad key " + served.headers.get("authorization", "")).encode(),
            ),
        }
        if b.fault in refusals:
            await self.plain(*refusals[b.fault])
            return True
        if b.fault == "redirect":
            await self.plain(302, "text/plain", b"", "Location: http://127.0.0.1:1/elsewhere\r\n")
            return True
        if b.fault == "silent":
            await self.reader.read(1)
            return False
        if b.fault in ("slow_headers", "endless_headers"):
            await self.drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b.fault == "endless_headers")
            return False
        if b.word_s:
            b = self.with_words(b, served.body)
        is_ollama = "api/" in served.path
        kind = "application/x-ndjson" if is_ollama else "text/event-stream"
        self.is_chunked = b.is_chunked
        how = "Transfer-Encoding: chunked" if b.is_chunked else "Connection: close"
        self.writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{how}\r\n\r\n".encode())
        await self.stream(b, served, is_ollama=is_ollama)
        return b.is_chunked and served.is_complete

    def with_words(self, b: Behaviour, body: dict[str, Any]) -> Behaviour:
        """What the words of this prompt make of a behaviour; the prompt and its answer are held for the next one."""
        texts = [message["content"] for message in body.get("messages", ())]
        words = " ".join([body.get("prompt", ""), *texts]).split()[: b.window]
        pairs = zip(words, self.held, strict=False)
        n_held = next(
            (i for i, (a, c) in enumerate(pairs) if a != c), min(len(words), len(self.held))
        )
        self.held[:] = [*words, *["w"] * b.n_tokens]
        ttft_s = b.ttft_s + b.word_s * (len(words) - n_held)
        return dataclasses.replace(b, ttft_s=ttft_s, n_prompt=len(words), cached=n_held)

    async def drip(self, start: bytes, is_fast: bool) -> None:
        with contextlib.suppress(ConnectionError):
            self.writer.write(start)
            while not self.reader.at_eof():
                self.writer.write(b"x" * 65536 if is_fast else b"x")
                await self.writer.drain()
                await asyncio.sleep(0 if is_fast else 0.02)

    async def stream(self, b: Behaviour, served: Served, *, is_ollama: bool) -> None:
        start_ns = served.received_ns
        rng = random.Random(b.seed)
        events = _ollama_events(b, start_ns) if is_ollama else _openai_events(b, served.path)
        due_ns = start_ns + int(b.ttft_s * 1e9)
        for index, (is_token, text) in enumerate(events):
            if b.fault != "none" and index == b.fault_at and not await self.misbehave(b):
                return
            if is_token:
                for _ in range(b.comments):
                    await self.write(b": keep-alive\n\n", 0)
                    await asyncio.sleep(b.gap_s / 10)
                await asyncio.sleep(max(0.0, (due_ns - time.monotonic_ns()) / 1e9))
                due_ns += int((b.gap_s + rng.uniform(0, b.jitter_s)) * 1e9)
                served.sent_ns.append(time.monotonic_ns())
            await self.write(text, b.cut)
        if self.is_chunked:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        served.is_complete = True

    async def misbehave(self, b: Behaviour) -> bool:
        """Whether the stream goes on."""
        if b.fault == "error_event":
            await self.write(b'data: {"error": {"message": "the slot was lost"}}\n\n', 0)
            await self.write(b'{"error": "the runner was lost"}\n', 0)
        elif b.fault == "not_json":
            await self.write(b"data: {not json}\n\n", 0)
        elif b.fault == "truncated_json":
            await self.write(b'data: {"choices": [{"delta": {"conte', 0)
        elif b.fault == "endless_line":
            with contextlib.suppress(ConnectionError):
                while not self.reader.at_eof():
                    await self.write(b"x" * 65536, 0)
        elif b.fault == "drips":
            with contextlib.suppress(ConnectionError):
                while not self.reader.at_eof():
                    await self.write(b": still here\n\n", 0)
                    await asyncio.sleep(0.02)
        elif b.fault == "no_done":
            self.writer.write(b"0\r\n\r\n")
            await self.writer.drain()
        return False

    async def write(self, data: bytes, cut: int) -> None:
        for at in range(0, len(data), cut or len(data)):
            piece = data[at : at + (cut or len(data))]
            self.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if self.is_chunked else piece)
            await self.writer.drain()
            if cut:
                await asyncio.sleep(0)


def _openai_events(b: Behaviour, path: str) -> Iterator[tuple[bool, bytes]]:
    """(does it carry tokens, bytes of the event)."""
    is_chat = "chat" in path

    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        return (
            b"data: "
            + json.dumps({"object": "chunk", "choices": choices, **more}).encode()
            + b"\n\n"
        )

    def choice(text: str | None, finish: str | None = None) -> dict[str, Any]:
        name = "reasoning_content" if b.reasoning else "content"
        delta = {} if text is None else {name: text}
        said = {"delta": delta} if is_chat else {"text": text or ""}
        return {"index": 0, **said, "finish_reason": finish}

    if b.role_first and is_chat:
        yield False, event([{"index": 0, "delta": {"role": "assistant", "content": ""}}])
    if b.fault != "no_tokens":
        for first in range(0, b.n_tokens, b.tokens_per_event):
            n = min(b.tokens_per_event, b.n_tokens - first)
            yield True, event([choice(" w" * n)])
    yield False, event([choice(None, "length")])
    if b.usage:
        usage: dict[str, Any] = {"prompt_tokens": b.n_prompt or 5, "completion_tokens": b.n_tokens}
        if b.cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": b.cached}
        yield False, event([], usage=usage)
    yield False, b"data: [DONE]\n\n"


def _ollama_events(b: Behaviour, start_ns: int) -> Iterator[tuple[bool, bytes]]:
    if b.fault != "no_tokens":
        for first in range(0, b.n_tokens, b.tokens_per_event):
            n = min(b.tokens_per_event, b.n_tokens - first)
            yield (
                True,
                json.dumps({"model": "m", "response": " w" * n, "done": False}).encode() + b"\n",
            )
    last: dict[str, Any] = {
        "model": "m",
        "response": "",
        "done": True,
        "done_reason": "length",
        "total_duration": time.monotonic_ns() - start_ns,
        "load_duration": 1_000_000,
        "prompt_eval_count": b.n_prompt or 5,
        "prompt_eval_duration": int(b.ttft_s * 1e9),
        "eval_count": b.n_tokens,
        "eval_duration": max(1, int(b.gap_s * 1e9) * (b.n_tokens - 1)),
    }
    if b.cached is not None:
        last["prompt_eval_cached_count"] = b.cached
    yield False, json.dumps(last).encode() + b"\n"


async def _serve() -> None:
    log: list[Served] = []
    held: list[str] = []

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer, log, held)
        with contextlib.suppress(ConnectionError):
            while await connection.handle():
                pass
        writer.close()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await _end_of_input()


async def _end_of_input() -> None:
    """The test closes the pipe, or died."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


@dataclass(frozen=True)
class TimedServer:
    """A running server."""

    url: str

    def base_url(self, **behaviour: Any) -> str:
        """Where that behaviour answers."""
        return Behaviour(**behaviour).base_url(self.url)

    def take_log(self) -> list[Served]:
        """What was served since the last call, in the order in which requests came."""
        with urllib.request.urlopen(f"{self.url}/log", timeout=10) as answer:  # noqa: S310  (our own server)
            return [Served(**one) for one in json.load(answer)]


@contextlib.contextmanager
def timed_server() -> Iterator[TimedServer]:
    """The server in a process of its own, which ends when its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield TimedServer(url=f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(_serve())
