"""A llama-server that we start for one group: on a free port of 127.0.0.1, waited for until it is ready, and ended with us."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from llamasweep.drivers.failing import ServerDiedError
from llamasweep.engines.http_exchange import LOCALHOST, RequestError, ServerAddress, free_port
from llamasweep.run.process import Ending
from llamasweep.run.server_process import ServerProcess, wait_until_healthy

_OF_A_LOST_SERVER = frozenset({"cut_short", "not_reachable"})
_ENDS_WITHIN_S, _LOOK_AGAIN_S = 0.5, 0.01


@contextmanager
def own_server(argv: Sequence[str], say: Callable[[str], object]) -> Iterator[ServerAddress]:
    """Where the server answers. say: told each of its lines. How long it may load is the runner's business.

    Start it from the main thread. Raises ServerDiedError where it ends before it is ready. A request that breaks because the
    server ended says so.
    """
    port = free_port()
    address = ServerAddress(scheme="http", host=LOCALHOST, port=port)
    whole = [*argv, "--host", LOCALHOST, "--port", str(port)]
    environment = tuple(os.environ.items())  # clean already, and with what the sweep adds
    with ServerProcess(whole, env=environment, cwd=Path.cwd(), on_line=say) as server:
        if wait_until_healthy(address, server) != "ready":
            ending = server.ending()
            how = "" if ending is None else f" {_how(ending)}"
            raise ServerDiedError(f"the server ended{how} before it was ready")
        try:
            yield address
        except RequestError as problem:
            if problem.kind not in _OF_A_LOST_SERVER or (ended := _ending_soon(server)) is None:
                raise
            said = f"{problem.message}: the server ended {_how(ended)}"
            raise RequestError(problem.kind, said) from problem


def _how(ending: Ending) -> str:
    return f"with {ending.exit_signal or f'exit code {ending.exit_code}'}"


def _ending_soon(server: ServerProcess) -> Ending | None:
    """How it ended; its connections break a moment before it can be waited for."""
    deadline_s = time.monotonic() + _ENDS_WITHIN_S
    while (ending := server.ending()) is None and time.monotonic() < deadline_s:
        time.sleep(_LOOK_AGAIN_S)
    return ending
