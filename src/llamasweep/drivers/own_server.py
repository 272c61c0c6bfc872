"""A llama-server that we start for one group: on a free port of 127.0.0.1, waited for until it is ready, and ended with us."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from llamasweep.drivers.failing import ServerDiedError
from llamasweep.engines.http_exchange import LOCALHOST, ServerAddress, free_port
from llamasweep.run.server_process import ServerProcess, wait_until_healthy


@contextmanager
def own_server(argv: Sequence[str], say: Callable[[str], object]) -> Iterator[ServerAddress]:
    """Where the server answers. say: told each of its lines. How long it may load is the runner's business.

    Start it from the main thread. Raises ServerDiedError where it ends before it is ready.
    """
    port = free_port()
    address = ServerAddress(scheme="http", host=LOCALHOST, port=port)
    whole = [*argv, "--host", LOCALHOST, "--port", str(port)]
    environment = tuple(os.environ.items())  # clean already, and with what the sweep adds
    with ServerProcess(whole, env=environment, cwd=Path.cwd(), on_line=say) as server:
        if wait_until_healthy(address, server) != "ready":
            ending = server.ending()
            how = (
                ""
                if ending is None
                else f" with {ending.exit_signal or f'exit code {ending.exit_code}'}"
            )
            raise ServerDiedError(f"the server ended{how} before it was ready")
        yield address
