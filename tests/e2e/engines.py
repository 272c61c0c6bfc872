"""Where the end-to-end tests find real programs: `$LLAMASWEEP_TEST_BIN/<build>/`, else installed builds."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BUILDS = ("11434", "10488")


def find_program(build: str, name: str) -> Path:
    """The program of that build, for tests marked needs_llama. Skips where it is not there."""
    folder = os.environ.get("LLAMASWEEP_TEST_BIN")
    found = Path(folder, build, name) if folder else _installed(build, name)
    if found is None or not found.is_file():
        command = f"llamasweep builds install {build} --with {name}"
        pytest.skip(f"no {name} of build {build}: run `{command}`")
    return found


def _installed(build: str, name: str) -> Path | None:
    from llamasweep.builds.registry import Registry
    from llamasweep.errors import LlamasweepError

    try:
        return Registry().program(build, name)
    except LlamasweepError:
        return None


def run_program(argv: list[str], *, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=timeout_s, env=environment, check=False
    )


def bench_rows(build: str, model: Path, *arguments: str) -> list[dict[str, Any]]:
    """The rows that llama-bench prints for a model; fails the test with its stderr if it fails."""
    program = find_program(build, "llama-bench")
    done = run_program([str(program), "-m", str(model), "-o", "jsonl", *arguments])
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def find_ollama() -> Path:
    """The Ollama of `$LLAMASWEEP_OLLAMA` (0.32.15), for tests marked needs_llama. Skips where it is not there."""
    from llamasweep.cache import cache_root

    version = os.environ.get("LLAMASWEEP_OLLAMA") or "0.32.15"
    found = cache_root() / "ollama" / version / "bin" / "ollama"
    if not found.is_file():
        pytest.skip(
            f"no Ollama {version}: run `make engines OLLAMA={version}` (it wants Go 1.26 and gcc)"
        )
    return found


class Server:
    """A llama-server that answers."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    @property
    def url(self) -> str:
        return self._base

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310  (our own server on the loopback)
            self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
        return answer

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self._base + "/health", timeout=5) as response:  # noqa: S310
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@contextmanager
def running_server(build: str, model: Path, *arguments: str) -> Iterator[Server]:
    """A llama-server on a free port of the loopback, ended by its own pid."""
    program = find_program(build, "llama-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = ["--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [str(program), "-m", str(model), *place, *arguments], stdout=log, stderr=log
        )
        try:
            server = Server(port)
            deadline = time.monotonic() + 60
            while not server.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    pytest.fail(log.read().decode(errors="replace")[-2000:])
                _wait_for_exit(process, 0.1)
            yield server
        finally:
            process.terminate()
            if not _wait_for_exit(process, 10):
                process.kill()
                process.wait()


def _wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
