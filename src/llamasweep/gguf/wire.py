"""Connections to a web server that end in time: http and https, few redirects, no sign-in, no cookies.

Knows nothing of models; `remote_file` says what is asked and how much may come.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Timer
from typing import Any

from llamasweep.errors import ModelFileError
from llamasweep.gguf.remote_address import check_redirect

_HEADERS = {"User-Agent": "llamasweep", "Accept-Encoding": "identity"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a server may cost, all files of a model together.

    silent_s: without a byte. total_s: from the first request to the last byte. n_bytes: received.
    n_redirects: of one request.
    """

    silent_s: float = 15.0
    total_s: float = 120.0
    n_bytes: int = 64 * 2**20
    n_redirects: int = 5


class Budget:
    """What is left of the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.n_received_bytes = 0
        self._ends_at = time.monotonic() + limits.total_s

    @property
    def is_over(self) -> bool:
        """Whether the time has passed."""
        return time.monotonic() >= self._ends_at

    @property
    def seconds_left(self) -> float:
        """Until the time has passed, at least 0."""
        return max(0.0, self._ends_at - time.monotonic())

    def refuse_if_over(self) -> None:
        """Raise ModelFileError where the time has passed."""
        if self.is_over:
            raise ModelFileError(f"the server took more than {self.limits.total_s:g} s")

    def take(self, n_bytes: int) -> None:
        """Count bytes received. Raises ModelFileError beyond the limits."""
        self.refuse_if_over()
        self.n_received_bytes += n_bytes
        if self.n_received_bytes > self.limits.n_bytes:
            raise ModelFileError(
                f"its head was not complete after {self.limits.n_bytes / 2**20:g} MiB"
            )


class Wire:
    """One connection after another, each shut down when the time is over.

    The timeout of a socket counts from byte to byte, so that a server which drips would never end.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._socket: socket.socket | None = None

    @contextlib.contextmanager
    def in_time(self) -> Iterator[None]:
        """Cut the connection when the time is over. Raises ModelFileError then."""
        self._budget.refuse_if_over()
        timer = Timer(self._budget.seconds_left, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, http.client.HTTPException, ModelFileError):
            self._budget.refuse_if_over()
            raise
        finally:
            timer.cancel()

    def get(self, url: str, first: int, last: int) -> http.client.HTTPResponse:
        """The answer to a request for these bytes, redirects followed; its body is not read yet.

        Raises ModelFileError for a redirect that is not taken, URLError, OSError or HTTPException for
        everything else.
        """
        headers = {**_HEADERS, "Range": f"bytes={first}-{last}"}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  (`remote_address` checked the scheme)
        answer = self._opener().open(request, timeout=self._budget.limits.silent_s)
        assert isinstance(answer, http.client.HTTPResponse)  # noqa: S101  (the opener knows http only)
        return answer

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _hold(self, used: socket.socket) -> None:
        self._socket = used
        if self._budget.is_over:
            self._cut()

    def _opener(self) -> urllib.request.OpenerDirector:
        """http and https through the system's proxies, and nothing else."""
        hold = self._hold

        class Plain(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                hold(self.sock)

        class Secure(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                hold(self.sock)

        class PlainHandler(urllib.request.HTTPHandler):
            def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Plain, req)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Secure, req)

        opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            PlainHandler(),
            SecureHandler(),
            _Redirects(self._budget.limits.n_redirects),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            opener.add_handler(handler)
        return opener


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A few redirects, to http or https only, never from https to http."""

    # urllib counts by itself too, and tells what it counted as any refused redirect: never first here.
    max_repeats = max_redirections = 1000

    def __init__(self, n_allowed: int) -> None:
        self._n_left = n_allowed

    def http_error_302(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any
    ) -> Any:
        """As urllib, without reading the body of the redirect, which may be endless."""
        fp.close()
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The next request, or a refusal."""
        self._n_left -= 1
        if self._n_left < 0:
            raise ModelFileError("the server redirects again and again")
        check_redirect(req.full_url, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
