"""One HTTP request to a model server, with the time at which each piece of the answer arrived.

Bounded in bytes and time whatever the server does. Follows no redirect, asks no proxy, and shows a key nowhere. Knows
nothing of tokens. Why the standard library's client: docs/decisions/0009-http-client.md.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llamasweep.errors import LlamasweepError, UsageError, quoted

FailureKind = Literal[
    "not_reachable", "timeout", "http_status", "wrong_content_type", "server_error", "cut_short", "too_large", "garbage_output",
    "no_tokens", "no_final_chunk", "context_too_small", "prompt_truncated", "early_stop", "model_missing",
]  # fmt: skip
"""Why a request gave no measurement."""

LOCALHOST = "127.0.0.1"
HIDDEN = "(hidden)"
_READ_BYTES = 1 << 16
_MAX_ERROR_BYTES = 1 << 16
_MAX_URL_LENGTH = 2_048
_MESSAGE_CHARACTERS = 300


class RequestError(LlamasweepError):
    """A request gave no measurement. kind: short name for the row; http_status: None without an answer."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        http_status: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind: FailureKind = kind
        self.http_status = http_status


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds of a request.

    connect_s: to open the connection. silent_s: longest wait for a byte. total_s: from connection to end. body_bytes: of the
    answer.
    """

    connect_s: float = 10.0
    silent_s: float = 300.0
    total_s: float = 1800.0
    body_bytes: int = 256 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerAddress:
    """Where a server is. path: prefix without a slash at its end. key: goes into the request's head, and nowhere else."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str = ""
    key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address as it may be shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def without_secrets(self, text: str) -> str:
        """The text with the key taken out."""
        return text.replace(self.key, HIDDEN) if self.key else text


def parse_base_url(text: str, *, key: str | None = None) -> ServerAddress:
    """An http or https address, without query and without a sign-in. Raises UsageError."""
    if len(text) > _MAX_URL_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError("the address of the server is too long or holds what no address holds")
    try:
        parts = urllib.parse.urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise UsageError(f"{quoted(text)} is not the address of a server") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            "the address of the server holds a sign-in, a query or a fragment",
            hint="Keys are read from an environment variable only.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise UsageError(f"{quoted(text)} is not the http or https address of a server")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise UsageError("the key holds what no HTTP header may hold")
    return ServerAddress(
        scheme="https" if parts.scheme == "https" else "http",
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        path=parts.path.rstrip("/"),
        key=key or None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """Head of an answer. header_ns: monotonic time when it was complete."""

    status: int
    content_type: str
    header_ns: int


def free_port() -> int:
    """A port of the loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        port: int = probe.getsockname()[1]
    return port


class Exchange:
    """One connection for one request, closed on leaving. All methods raise RequestError."""

    def __init__(self, address: ServerAddress, limits: Limits | None = None) -> None:
        self._address = address
        self._limits = limits or Limits()
        self._is_late = False
        # http.client forgets its socket as soon as an answer says `Connection: close`; the alarm still needs it.
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        kind = (
            http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(address.host, address.port, timeout=self._limits.connect_s)
        self._alarm = threading.Timer(self._limits.total_s, self._give_up)
        self._alarm.daemon = True

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self._alarm.cancel()
        self._connection.close()
        if self._response is not None:
            self._response.close()

    def _give_up(self) -> None:
        """Out of time: a reader that waits for the next byte wakes up."""
        self._is_late = True
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def connect(self) -> int:
        """Open the connection; nanoseconds that it took. It is not part of any latency."""
        start_ns = time.monotonic_ns()
        with self._told():
            self._connection.connect()
            self._socket = self._connection.sock
            assert self._socket is not None  # noqa: S101  (connect made it)
            self._socket.settimeout(self._limits.silent_s)
        self._alarm.start()
        return time.monotonic_ns() - start_ns

    def send(self, method: str, path: str, body: bytes | None = None) -> int:
        """Send the request; the monotonic time just before."""
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = "application/json"
        with self._told():
            sent_ns = time.monotonic_ns()
            self._connection.request(method, self._address.path + path, body, headers)
        return sent_ns

    def send_pieces(self, method: str, path: str, pieces: Iterator[bytes], *, n_bytes: int) -> None:
        """Send a body of known length piece by piece."""
        headers = {**self._headers(), "Content-Type": "application/octet-stream"}
        with self._told():
            self._connection.request(
                method,
                self._address.path + path,
                pieces,
                {**headers, "Content-Length": str(n_bytes)},
            )

    def _headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity", "User-Agent": "llamasweep"}
        if self._address.key:
            headers["Authorization"] = f"Bearer {self._address.key}"
        return headers

    def reply(self) -> Reply:
        """Wait for the head of the answer; a status other than 2xx is raised with the server's words."""
        with self._told():
            response = self._connection.getresponse()
        self._response = response
        header_ns = time.monotonic_ns()
        if self._is_late:
            raise self._too_late()
        if not 200 <= response.status < 300:
            raise self._refused(response)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise RequestError(
                "wrong_content_type", "the answer is compressed, which nobody asked for"
            )
        kind = response.headers.get_content_type()
        return Reply(status=response.status, content_type=kind, header_ns=header_ns)

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """(monotonic time of arrival, bytes) until the end of the answer."""
        response = self._response
        assert response is not None  # noqa: S101  (reply comes first)
        n_left = self._limits.body_bytes
        clock, read = time.monotonic_ns, response.read1
        with self._told():
            while data := read(_READ_BYTES):
                now_ns = clock()
                if self._is_late:
                    raise self._too_late()
                n_left -= len(data)
                if n_left < 0:
                    raise RequestError(
                        "too_large", f"the answer exceeds {self._limits.body_bytes} bytes"
                    )
                yield now_ns, data
        if self._is_late:
            raise self._too_late()
        if response.length:
            raise RequestError("cut_short", "the answer ended before its announced length")

    def body(self) -> bytes:
        """The whole answer."""
        return b"".join(data for _, data in self.pieces())

    def _refused(self, response: http.client.HTTPResponse) -> RequestError:
        try:
            with self._told():
                text = response.read(_MAX_ERROR_BYTES)
        except RequestError:
            text = b""
        said = said_error(text)
        words = f": {self._address.without_secrets(said)}" if said else ""
        if response.status in range(300, 400):
            words = "; redirects are not followed, a key could go astray"
        return RequestError(
            _refusal_kind(response.status, said),
            f"the server answered HTTP {response.status}{words}",
            http_status=response.status,
        )

    def _too_late(self) -> RequestError:
        return RequestError("timeout", f"no complete answer within {self._limits.total_s:g} s")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What the connection raises, as a RequestError in words."""
        try:
            yield
        except TimeoutError:
            raise self._silent() from None
        except (http.client.LineTooLong, http.client.UnknownProtocol) as problem:
            raise RequestError("garbage_output", f"no HTTP: {self._words(problem)}") from None
        except (
            http.client.RemoteDisconnected,
            http.client.IncompleteRead,
            ConnectionError,
        ) as problem:
            raise self._broken(problem) from None
        except (OSError, ssl.SSLError) as problem:
            if self._is_late:
                raise self._too_late() from None
            raise RequestError("not_reachable", self._unreachable(problem)) from None
        except (http.client.HTTPException, ValueError) as problem:
            if self._is_late:
                raise self._too_late() from None
            raise RequestError("garbage_output", f"no HTTP: {self._words(problem)}") from None

    def _silent(self) -> RequestError:
        if self._socket is None:
            return RequestError(
                "not_reachable",
                f"{self._address.url}: no connection within {self._limits.connect_s:g} s",
            )
        return RequestError("timeout", f"the server was silent for {self._limits.silent_s:g} s")

    def _broken(self, problem: Exception) -> RequestError:
        if self._is_late:
            return self._too_late()
        if isinstance(problem, ConnectionRefusedError):
            return RequestError(
                "not_reachable",
                self._unreachable(problem),
                hint="Is the server running, and is this its address?",
            )
        return RequestError("cut_short", "the connection broke in the middle of the answer")

    def _unreachable(self, problem: Exception) -> str:
        return f"{self._address.url} cannot be reached: {self._words(problem)}"

    def _words(self, problem: Exception) -> str:
        text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        return self._address.without_secrets(quoted(str(text), max_characters=160)[1:-1])


def _refusal_kind(status: int, said: str) -> FailureKind:
    """What the server's words say of the cause, as Ollama and llama-server put it."""
    if status == http.HTTPStatus.NOT_FOUND and "model" in said and "not found" in said:
        return "model_missing"
    if "context" in said and ("exceed" in said or "longer than" in said):
        return "context_too_small"
    return "http_status"


def said_error(text: bytes) -> str:
    """What a server says is wrong: its `error` or `message` in JSON, else the text; escaped and cut, '' for nothing."""
    found: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(text)
    said = _message(found) if found is not None else text.decode("utf-8", "replace").strip()
    return quoted(said, max_characters=_MESSAGE_CHARACTERS)[1:-1] if said else ""


def _message(found: Any) -> str:
    for name in ("error", "message", "detail"):
        if isinstance(found, Mapping) and name in found:
            inner = found[name]
            return inner if isinstance(inner, str) else _message(inner) or json.dumps(inner)
    return "" if isinstance(found, Mapping) else str(found)


def call_json(
    address: ServerAddress,
    method: str,
    path: str,
    body: object = None,
    limits: Limits | None = None,
) -> Any:
    """A request whose whole answer is JSON; None for an empty one. Raises RequestError."""
    data = None if body is None else json.dumps(body).encode()
    with Exchange(
        address, limits or Limits(total_s=60, silent_s=60, body_bytes=64 << 20)
    ) as exchange:
        exchange.connect()
        exchange.send(method, path, data)
        exchange.reply()
        text = exchange.body()
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError("garbage_output", f"{path} answered with what is no JSON") from None
