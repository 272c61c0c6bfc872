"""Ollama's HTTP API on 127.0.0.1 with durations that are told and not spent, so that rates are exact; it lies on demand.

A token is a word. A prompt token takes 1 ms, a generated one 10 ms after the first; a prompt seen before takes 1 ms in all, as
Ollama's cache makes it. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT_NS, GAP_NS = 1_000_000, 10_000_000


@dataclass
class FakeOllama:
    """models: names that it has. requests: (path, body) as they came.

    version: as it calls itself. n_ctx_given: window that /api/ps tells, None = as asked. vram_fraction: of the model's bytes.
    reads_at_most: tokens of a prompt, the rest is cut in silence. stops_after: generated tokens, None = as asked.
    is_forgetful: no final chunk. caches_after: generations after which every prompt comes from the cache, None = only those
    seen before. n_answers_left: generations before its models are removed. reads_s: really spent on a prompt not seen before.
    answered_ns: Unix time of each generation's end.
    """

    url: str = ""
    models: set[str] = field(default_factory=lambda: {"m:latest"})
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    version: str = "0.32.15"
    n_ctx_given: int | None = None
    vram_fraction: float = 0.0
    reads_at_most: int = 1_000_000
    stops_after: int | None = None
    is_forgetful: bool = False
    caches_after: int | None = None
    n_answers_left: int | None = None
    reads_s: float = 0.0
    answered_ns: list[int] = field(default_factory=list)
    loaded: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def generations(self) -> list[dict[str, Any]]:
        """Bodies of requests that had a prompt."""
        return [b for path, b in self.requests if path == "/api/generate" and b.get("prompt")]

    def final_chunk(self, body: dict[str, Any]) -> dict[str, Any]:
        """The figures of an answer."""
        prompt = str(body["prompt"])
        is_late = self.caches_after is not None and len(self.generations()) > self.caches_after
        is_known = prompt in self.seen or is_late
        self.seen.add(prompt)
        n_prompt = min(len(prompt.split()), self.reads_at_most)
        n_asked = int(body["options"]["num_predict"])
        n_gen = n_asked if self.stops_after is None else min(n_asked, self.stops_after)
        return {
            "done": True,
            "done_reason": "length" if n_gen == n_asked else "stop",
            "total_duration": 7_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": n_prompt,
            "prompt_eval_duration": PROMPT_NS if is_known else n_prompt * PROMPT_NS,
            "eval_count": n_gen,
            "eval_duration": (n_gen - 1) * GAP_NS,
        }


@contextlib.contextmanager
def fake_ollama(**behaviour: Any) -> Iterator[FakeOllama]:
    """The server, running in a thread of its own."""
    state = FakeOllama(**behaviour)

    class Handler(_Handler):
        fake = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    fake: FakeOllama

    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        fake = self.fake
        answers: dict[str, Any] = {
            "/api/version": {"version": fake.version},
            "/api/tags": {"models": [{"name": name} for name in sorted(fake.models)]},
            "/api/ps": {"models": [self._placed(name) for name in fake.loaded]},
        }
        self._answer(answers.get(self.path))

    def _placed(self, name: str) -> dict[str, Any]:
        n_ctx = self.fake.n_ctx_given or self.fake.loaded[name]
        return {
            "name": name,
            "digest": "d" * 64,
            "size": 1000,
            "size_vram": round(1000 * self.fake.vram_fraction),
            "context_length": n_ctx,
        }

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.fake.requests.append((self.path, body))
        name = str(body["model"])
        full = name if ":" in name else f"{name}:latest"
        if self.path == "/api/show":
            self._answer({"modelfile": "FROM /nowhere\n"} if full in self.fake.models else None)
        elif self.path == "/api/generate":
            self._generate(full, body)
        else:
            self._answer(None)

    def do_DELETE(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.fake.requests.append((self.path, body))
        name = str(body["model"])
        self.fake.models.discard(name if ":" in name else f"{name}:latest")
        self._answer({})

    def _generate(self, name: str, body: dict[str, Any]) -> None:
        fake = self.fake
        if name not in fake.models:
            self._answer({"error": f"model '{body['model']}' not found"}, status=404)
            return
        if not body["prompt"]:
            if body.get("keep_alive") == 0:
                fake.loaded.pop(name, None)
            else:
                fake.loaded[name] = body["options"]["num_ctx"]
            self._answer({"done": True})
            return
        if body["prompt"] not in fake.seen:
            time.sleep(fake.reads_s)
        last = fake.final_chunk(body)
        fake.answered_ns.append(time.time_ns())
        chunks: list[dict[str, Any]] = [{"response": " w", "done": False}] * last["eval_count"]
        lines = [*chunks, *([] if fake.is_forgetful else [{"response": "", **last}])]
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        self._send(200, "application/x-ndjson", text)
        if fake.n_answers_left is not None:
            fake.n_answers_left -= 1
            if fake.n_answers_left <= 0:
                fake.models.clear()

    def _answer(self, said: Any, *, status: int = 200) -> None:
        text = json.dumps(said if said is not None else {"error": "not found"}).encode()
        self._send(404 if said is None else status, "application/json", text)

    def _send(self, status: int, kind: str, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(text)
