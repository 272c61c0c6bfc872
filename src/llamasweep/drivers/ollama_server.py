"""The Ollama that a job is measured on: found or started, with the model in it, and left as it was found."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from llamasweep.drivers.failing import ServerDiedError
from llamasweep.engines.driven import Job
from llamasweep.engines.http_exchange import (
    RequestError,
    ServerAddress,
    free_port,
    parse_base_url,
)
from llamasweep.engines.ollama import full_name
from llamasweep.engines.ollama_api import OllamaServer
from llamasweep.engines.ollama_names import RAW_TEMPLATE, checked_name, own_name
from llamasweep.engines.ollama_server import (
    ServerLog,
    ServerSettings,
    describe_server,
    wait_until_ready,
)
from llamasweep.errors import EngineNotFoundError, quoted
from llamasweep.run.server_process import ServerProcess

_OF_A_LOST_SERVER = ("cut_short", "not_reachable", "server_error")
"""Kinds of failures that a server leaves behind when it dies; its process may end a moment after its connections."""
_ENDS_WITHIN_S = 1.0
_LOOK_AGAIN_S = 0.02
MACHINE_ID = Path("/etc/machine-id")


@dataclass(slots=True)
class Serving:
    """A server and the model on it. program: for `ollama run`, home: an empty folder for it. log: of a server that we started.

    owner: in the names of models that we make for a cell.
    """

    server: OllamaServer
    address: ServerAddress
    version: str
    model: str
    program: str
    home: str
    owner: str
    log: ServerLog = field(default_factory=ServerLog)
    process: ServerProcess | None = None

    def remove(self, name: str) -> None:
        """Delete a model of ours; what cannot be deleted any more is not the failure that ends a cell."""
        with contextlib.suppress(RequestError):
            self.server.delete(name)

    def leave(self, *, was_loaded: bool) -> None:
        """Throw the model out of a server of somebody else that did not hold it before."""
        if self.process is None and not was_loaded:
            with contextlib.suppress(RequestError):
                self.server.unload(self.model)

    def check(self) -> None:
        """Raise ServerDiedError where a server that we started has ended, or is about to."""
        deadline_s = time.monotonic() + _ENDS_WITHIN_S
        while self.process is not None and time.monotonic() < deadline_s:
            if not self.process.is_alive():
                raise ServerDiedError("ollama serve ended while it was asked")
            time.sleep(_LOOK_AGAIN_S)


@contextlib.contextmanager
def serving(job: Job, say: Callable[[str], None]) -> Iterator[Serving]:
    """The server of a job with its model; what one that we start says goes to `say`.

    Raises ServerDiedError, RequestError and UsageError.
    """
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="llamasweep-ollama-"))
        log, process = ServerLog(), None
        if job.base_url is not None:
            address = parse_base_url(job.base_url)
            version = OllamaServer(address).version()
        else:
            address, process = _start(job, home, log, say)
            stack.enter_context(process)
            version = _ready(address, process)
        server = OllamaServer(address)
        found = Serving(
            server=server,
            address=address,
            version=version,
            model="",
            program=str(job.options["program"] or ""),
            home=home,
            owner=owner_of(str(job.options["import_folder"])),
            log=log,
            process=process,
        )
        try:
            for name in server.left_behind(found.owner):
                say(f"llamasweep: removing {name}, which a run that was killed left behind")
                found.remove(name)
            found.model = _model(server, job)
            stack.callback(found.leave, was_loaded=_is_loaded(server, found.model))
            yield found
        except RequestError as problem:
            if problem.kind in _OF_A_LOST_SERVER:
                found.check()
            raise


def owner_of(cache: str) -> str:
    """Eight hex digits for this user's cache on this machine: one sweep at a time runs from it.

    A name and a path are alike on many machines, whose models may lie on one server; the system's own id is not.
    """
    try:
        machine_id = MACHINE_ID.read_text(encoding="ascii")[:64]
    except (OSError, ValueError):
        machine_id = ""
    said = f"{machine_id}\n{platform.node()}\n{cache}"
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def _is_loaded(server: OllamaServer, name: str) -> bool:
    return any(placement.name == full_name(name) for placement in server.running())


def _start(
    job: Job, home: str, log: ServerLog, say: Callable[[str], None]
) -> tuple[ServerAddress, ServerProcess]:
    """On the store that has the model, else on one of our own, so that no import ends up in the user's.

    The driver's own environment is clean: what it holds of OLLAMA_ was asked for by the sweep.
    """
    port = free_port()
    settings = ServerSettings(**job.options["server"])
    call = describe_server(
        str(job.options["program"]),
        port,
        models=str(job.options["store"]),
        home=home,
        settings=settings,
    )
    wished = {name: value for name, value in os.environ.items() if name.startswith("OLLAMA_")}

    def said(line: str) -> None:
        log.feed(line)
        say(line)

    env = {**wished, **dict(call.env)}
    process = ServerProcess(call.argv, env=tuple(env.items()), cwd=Path(home), on_line=said)
    return parse_base_url(f"http://127.0.0.1:{port}"), process


def _ready(address: ServerAddress, process: ServerProcess) -> str:
    try:
        return wait_until_ready(OllamaServer(address), is_alive=process.is_alive)
    except EngineNotFoundError as problem:
        raise ServerDiedError(problem.message) from None


def _model(server: OllamaServer, job: Job) -> str:
    """The name under which the server has the job's model; a file is imported once, under a name made of its content."""
    if job.options["file"] is not None:
        template = RAW_TEMPLATE if job.options["template"] == "raw" else None
        name = own_name(str(job.options["content_hash"]), {}, template)
        if not server.has(name):
            server.create_from_file(name, Path(job.options["file"]), template=template)
        return name
    name = checked_name(job.model)
    if not server.has(name):
        if not job.options["pull"]:
            raise RequestError("model_missing", f"Ollama has no model {quoted(name)}")
        server.pull(name)
    return name
