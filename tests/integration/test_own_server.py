"""A server that we start and that ends by itself, before it is ready or while it is asked."""

from __future__ import annotations

import sys
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest

from llamasweep.drivers.failing import ServerDiedError
from llamasweep.drivers.own_server import own_server
from llamasweep.engines.http_exchange import RequestError

SERVER = """
import http.server, os, signal, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/health":
            os.kill(os.getpid(), signal.SIGKILL)
        body = b'{"status": "ok"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def program(tmp_path: Path, text: str) -> list[str]:
    script = tmp_path / "server.py"
    script.write_text(text)
    return [sys.executable, str(script)]


def ask_and_lose(argv: list[str], path: str) -> None:
    with own_server(argv, lambda _: None) as address:
        url = f"http://{address.host}:{address.port}{path}"
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except (OSError, HTTPException):
            raise RequestError("cut_short", "the connection broke") from None
        raise RequestError("cut_short", "the answer ended early")


def test_a_request_that_broke_because_the_server_died_says_how_it_died(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as told:
        ask_and_lose(program(tmp_path, SERVER), "/die")
    assert told.value.message == "the connection broke: the server ended with SIGKILL"
    assert told.value.kind == "cut_short"


def test_a_request_that_broke_on_a_living_server_says_nothing_of_an_end(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as told:
        ask_and_lose(program(tmp_path, SERVER), "/health")
    assert told.value.message == "the answer ended early"


def test_a_server_that_ends_before_it_is_ready_says_how(tmp_path: Path) -> None:
    argv = program(tmp_path, "raise SystemExit(3)")
    with pytest.raises(ServerDiedError, match="ended with exit code 3 before it was ready"):
        ask_and_lose(argv, "/health")
