"""A web server on 127.0.0.1 that holds model heads and fictitious weights, and misbehaves on demand.

The path names the behaviour: `/ranges/m.gguf`, `/drips/m.gguf` and so on. Weights are zeros that are
made while they are sent.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ZEROS = bytes(64 * 1024)


@dataclass
class ModelServer:
    """files: name -> (head, length with the weights). requests: (path, headers) as they came.

    n_sent_bytes: of bodies. is_over: set when the test ends, so that no handler waits longer.
    """

    url: str = ""
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    n_sent_bytes: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def add(self, name: str, head: bytes, n_data_bytes: int) -> None:
        """A model of that name below every behaviour."""
        self.files[name] = (head, len(head) + n_data_bytes)


@contextlib.contextmanager
def model_server() -> Iterator[ModelServer]:
    """The server, running in a thread of its own."""
    state = ModelServer()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        state.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server_state: ModelServer

    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        state = self.server_state
        state.requests.append((self.path, dict(self.headers)))
        behaviour, _, name = self.path.partition("?")[0].strip("/").partition("/")
        if behaviour.startswith("status-"):
            self._answer(int(behaviour.removeprefix("status-")), {"Content-Length": "0"})
            return
        if name not in state.files:
            self._answer(404, {"Content-Length": "0"})
            return
        with contextlib.suppress(OSError):
            getattr(self, f"_{behaviour}")(name)

    def _answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()

    def _asked(self, length: int) -> tuple[int, int]:
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert match is not None
        return int(match[1]), min(int(match[2]), length - 1)

    def _send(self, name: str, first: int, last: int) -> None:
        head, _ = self.server_state.files[name]
        while first <= last and not self.server_state.is_over.is_set():
            piece = head[first : min(last + 1, first + len(_ZEROS))] or _ZEROS[: last + 1 - first]
            self.wfile.write(piece)
            self.server_state.n_sent_bytes += len(piece)
            first += len(piece)

    def _part(self, name: str, *, told: str | None = None, **headers: str) -> tuple[int, int]:
        length = self.server_state.files[name][1]
        first, last = self._asked(length)
        told = told or f"bytes {first}-{last}/{length}"
        self._answer(
            206, {"Content-Range": told, "Content-Length": str(last - first + 1), **headers}
        )
        return first, last

    def _ranges(self, name: str) -> None:
        self._send(name, *self._part(name))

    def _whole(self, name: str) -> None:
        length = self.server_state.files[name][1]
        self._answer(200, {"Content-Length": str(length)})
        self._send(name, 0, length - 1)

    def _lengthless(self, name: str) -> None:
        self._answer(200, {})
        self._send(name, 0, self.server_state.files[name][1] - 1)

    def _elsewhere(self, name: str) -> None:
        length = self.server_state.files[name][1]
        self._part(name, told=f"bytes 7-{length - 1}/{length}")

    def _wordless(self, name: str) -> None:
        self._part(name, told="bytes */x")

    def _short(self, name: str) -> None:
        first, _ = self._part(name)
        self._send(name, first, first + 99)

    def _grows(self, name: str) -> None:
        head, length = self.server_state.files[name]
        self.server_state.files[name] = (head, length + 1)
        self._ranges(name)

    def _compressed(self, name: str) -> None:
        self._part(name, **{"Content-Encoding": "gzip"})

    def _silent(self, _: str) -> None:
        self.server_state.is_over.wait(30)

    def _drips(self, name: str) -> None:
        first, _ = self._part(name)
        while not self.server_state.is_over.wait(0.02):
            self._send(name, first, first)
            first += 1

    def _drips_head(self, _: str) -> None:
        self.wfile.write(b"HTTP/1.1 206 Partial Content\r\nX-Slow: ")
        while not self.server_state.is_over.wait(0.02):
            self.wfile.write(b"x")

    def _moved(self, name: str) -> None:
        self._answer(302, {"Location": f"/ranges/{name}?key=secret", "Content-Length": "0"})

    def _moved_with_endless_body(self, name: str) -> None:
        self._answer(302, {"Location": f"/ranges/{name}"})
        self._send(name, 0, 2**40)

    def _circle(self, name: str) -> None:
        self._answer(302, {"Location": f"/circle/{name}?n={len(self.server_state.requests)}"})

    def _to_itself(self, name: str) -> None:
        self._answer(302, {"Location": f"/to_itself/{name}", "Content-Length": "0"})

    def _to_file(self, _: str) -> None:
        self._answer(302, {"Location": "file:///etc/hostname", "Content-Length": "0"})

    def _to_sign_in(self, name: str) -> None:
        port = self.server_state.url.rsplit(":", 1)[1]
        self._answer(302, {"Location": f"http://u:p@127.0.0.1:{port}/ranges/{name}"})
