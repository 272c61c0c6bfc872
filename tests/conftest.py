"""What every test gets: a fixed terminal, its own cache, and no way to a real engine or the network.

A test that needs more says so with a marker; without the matching environment variable it is skipped, and the
reason names the command that runs it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.builds import write_build
from tests.integration.running import Desk

_FIXED_ENVIRONMENT = {
    "COLUMNS": "100",
    "LINES": "40",
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "LANGUAGE": "",
    "TZ": "UTC",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONHASHSEED": "0",
    "PIP_NO_INDEX": "1",  # guards processes that a test starts: the audit hook sees only this one
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
_ENABLED_BY = {
    "needs_llama": ("LLAMASWEEP_E2E", "make test-e2e"),
    "needs_network": ("LLAMASWEEP_E2E", "make test-e2e"),
    "long": ("LLAMASWEEP_LONG", "make test-e2e-long"),
}
_ENGINE_PREFIXES = ("llama-", "ollama")
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1", "", None}


class _Guard:
    """Whether real engines and the network are out of bounds just now."""

    blocks_engines = False
    blocks_network = False


def _is_real_engine(program: Any) -> bool:
    """A compiled program named like an engine; the fakes are scripts."""
    path = Path(os.fsdecode(program))
    if not path.name.startswith(_ENGINE_PREFIXES):
        return False
    try:
        with path.open("rb") as file:
            return file.read(2) != b"#!"
    except OSError:
        return False


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if _Guard.blocks_engines and event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        argv = args[1] if len(args) > 1 and args[1] else ()
        for program in (args[0], *([argv] if isinstance(argv, (str, bytes)) else argv)[:1]):
            if program is not None and _is_real_engine(program):
                pytest.fail(
                    f"starts the real engine {program!r}: mark the test needs_llama, or use tests.fakes"
                )
    if _Guard.blocks_network and event in ("socket.connect", "socket.getaddrinfo"):
        address = args[1] if event == "socket.connect" else args[0]
        host = address[0] if isinstance(address, tuple) else None
        host = address if event == "socket.getaddrinfo" else host
        if (host.decode() if isinstance(host, bytes) else host) not in _LOCAL_HOSTS:
            pytest.fail(f"talks to {host!r}: mark the test needs_network")


sys.addaudithook(_watch)


def pytest_configure() -> None:
    """A shell starts what runs beside it with Ctrl-C ignored, `nohup` with SIGHUP; tests that send them need the usual ways."""
    usual: dict[str, Any] = {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}
    for name, handler in usual.items():
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is not enabled, with the command that enables it."""
    for item in items:
        for marker, (variable, command) in _ENABLED_BY.items():
            if item.get_closest_marker(marker) and os.environ.get(variable) != "1":
                item.add_marker(pytest.mark.skip(reason=f"{marker}: run `{command}`"))


def _path_without_engines() -> str:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(f for f in folders if not (Path(f) / "llama-bench").exists())


@pytest.fixture(autouse=True)
def guarded(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Fixed surroundings; engines and network only for tests that are marked for them.

    A test marked needs_llama keeps the user's cache, where the builds are.
    """
    has_engine = request.node.get_closest_marker("needs_llama") is not None
    has_network = request.node.get_closest_marker("needs_network") is not None
    for name, value in _FIXED_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in ("LLAMASWEEP_RESULTS", "LLAMASWEEP_REPORTS", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    if has_network or has_engine:
        monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    if not has_engine:
        monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path_factory.mktemp("cache")))
        monkeypatch.setenv("PATH", _path_without_engines())
    if hasattr(time, "tzset"):
        time.tzset()
    _Guard.blocks_engines, _Guard.blocks_network = not has_engine, not (has_network or has_engine)
    yield
    _Guard.blocks_engines = _Guard.blocks_network = False


@pytest.fixture
def fake_build(tmp_path: Path) -> Callable[..., Path]:
    """Makes a fake llama-bench in the test's folder: `fake_build("old", build="b4748")` -> path of the program."""

    def make(name: str = "fake", **settings: Any) -> Path:
        return write_build(tmp_path / "builds" / name, **settings)

    return make


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A folder to run sweeps in, apart from builds and models."""
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder=folder)
