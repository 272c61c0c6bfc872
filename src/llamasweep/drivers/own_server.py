"""A server that we start for one group: on a free port of 127.0.0.1, waited for until it is ready, and ended with us.

It is tied to this process as engines are to the runner, and what it says goes to our stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.resources import files

from llamasweep.drivers.failing import ServerDiedError
from llamasweep.engines.http_exchange import Limits, RequestError, ServerAddress, call_json

LOCALHOST = "127.0.0.1"
_LOOK_AGAIN_S = 0.05
_TERM_WAIT_S = 5.0
_HEALTH = Limits(connect_s=2, silent_s=10, total_s=10, body_bytes=1 << 20)
_TIES_ITSELF = sys.platform.startswith("linux")


class OwnServer:
    """A server of this process; use as a context manager, from the main thread."""

    def __init__(self, argv: Sequence[str]) -> None:
        port = free_port()
        self.address = ServerAddress(scheme="http", host=LOCALHOST, port=port)
        launcher = files("llamasweep.run").joinpath("launch.py")
        options = {
            "address_space_bytes": None,
            "parent_pid": os.getpid(),
            "guard": not _TIES_ITSELF,
        }
        said = [*argv, "--host", LOCALHOST, "--port", str(port)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(launcher), json.dumps(options), "--", *said],
            stdin=subprocess.DEVNULL if _TIES_ITSELF else subprocess.PIPE,
            stdout=sys.stderr,
            bufsize=0,
        )

    def __enter__(self) -> OwnServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:  # a guardian: the end of its stdin ends the server
            self._process.stdin.close()
        else:
            self._process.terminate()
        try:
            self._process.wait(_TERM_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_until_ready(self) -> None:
        """Until it says that the model is loaded. How long that may take is the runner's business.

        Raises ServerDiedError where it ends instead.
        """
        while True:
            code = self._process.poll()
            if code is not None:
                raise ServerDiedError(f"the server ended with exit code {code} before it was ready")
            with contextlib.suppress(RequestError):
                call_json(self.address, "GET", "/health", limits=_HEALTH)
                return
            time.sleep(_LOOK_AGAIN_S)


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        port: int = probe.getsockname()[1]
        return port
