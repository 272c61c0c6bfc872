"""`feel`: a handful of streamed requests to a server, or to a llama-server that is started for a model file.

Joins client, builds, machine and ceilings; prints nothing.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from llamasweep.builds.registry import Registry, beside
from llamasweep.ceilings.answer import answer
from llamasweep.ceilings.question import Question
from llamasweep.engines.http_exchange import (
    RequestError,
    ServerAddress,
    call_json,
    free_port,
    parse_base_url,
)
from llamasweep.engines.ollama_answers import blob_path
from llamasweep.engines.ollama_api import OllamaServer
from llamasweep.engines.ollama_host import ollama_address
from llamasweep.engines.openai_client import (
    Answer,
    Completion,
    Dialect,
    complete,
    detect_dialect,
    served_models,
)
from llamasweep.engines.prompts import PromptShape, answered_count, estimate
from llamasweep.errors import EngineNotFoundError, LlamasweepError, UsageError, quoted
from llamasweep.gguf.header import read_model
from llamasweep.machine import quiet
from llamasweep.machine.facts import read_facts
from llamasweep.machine.own_rig import own_rig
from llamasweep.results.feeling import Ceiling, Feeling, feeling
from llamasweep.run.server_process import ServerProcess, wait_until_healthy

READY_WITHIN_S = 600.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
Say = Callable[[str], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What to measure. n_runs: timed, after one that is thrown away. seed: other prompts for another seed."""

    n_prompt: int = 512
    n_gen: int = 128
    n_runs: int = 5
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A server and a model on it. file: the model's GGUF where this machine can read it, None otherwise."""

    address: ServerAddress
    model: str
    dialect: Dialect
    file: Path | None


def feel(target: Target, wish: Wish, *, say: Say = lambda _: None) -> Feeling:
    """Measure. Raises RequestError at the first request that is no measurement."""
    is_here = target.address.host in _LOOPBACK
    notes = quiet.check(read_facts()).findings if is_here else ()
    request = Completion(
        model=target.model, prompt="", n_gen=wish.n_gen, seed=1, dialect=target.dialect
    )
    first_seed = time.time_ns() if wish.seed == 0 else wish.seed * 1_000_003
    say("counting the tokens of a prompt")
    shape = _shape(target, request, wish)
    say("warming up")
    complete(target.address, replace(request, prompt=shape.text(first_seed)))
    answers: list[Answer] = []
    for index in range(wish.n_runs):
        say(f"run {index + 1} of {wish.n_runs}")
        text = shape.text(first_seed + 1 + index)
        answers.append(complete(target.address, replace(request, prompt=text)))
    timings = [one.timing for one in answers]
    n_gen = timings[-1].n_gen
    return feeling(
        timings,
        model=target.model,
        server=target.address.url,
        kind=target.dialect,
        ceiling=ceiling_of(target.file, timings[-1].n_prompt or shape.n_tokens, n_gen),
        flags=[flag for one in answers for flag in one.flags],
        notes=notes,
    )


def _shape(target: Target, request: Completion, wish: Wish) -> PromptShape:
    """By the server's own count; by words where it does not tell."""

    def ask(text: str) -> int | None:
        one = replace(request, prompt=text, n_gen=1)
        return complete(target.address, one).timing.n_prompt

    try:
        return estimate(wish.n_prompt, answered_count(ask), seed=wish.seed)
    except RequestError as problem:
        if problem.kind != "garbage_output":
            raise
        return PromptShape(
            n_words=wish.n_prompt, filler="", n_tokens=wish.n_prompt, n_asked=wish.n_prompt
        )


def ceiling_of(file: Path | None, n_prompt: int, n_gen: int) -> Ceiling:
    """The bound of this machine's memory on generation after such a prompt; without a file, why there is none."""
    if file is None:
        return Ceiling(reason="the model's file is not known (--model-file names it)")
    try:
        facts = read_model(file)
        question = Question(n_depth=n_prompt, n_gen=n_gen, n_prompt=n_prompt)
        rig = own_rig(read_facts())
        found = answer(facts, question, rig)
    except (LlamasweepError, ValueError) as problem:
        return Ceiling(reason=str(problem))
    if found.decode.ceiling_tps is None:
        return Ceiling(reason=found.reasons.get("decode", "the ceilings do not cover this model"))
    return Ceiling(decode_tps=found.decode.ceiling_tps, notes=tuple(rig.notes))


def target_at(address: ServerAddress, model: str | None, file: Path | None) -> Target:
    """A server that is there. model: None takes the only one that it serves. Raises RequestError and UsageError."""
    dialect = detect_dialect(address)
    name = model if model is not None else _only_model(address)
    known = file if file is not None else _file_of(address, dialect, name)
    return Target(address=address, model=name, dialect=dialect, file=known)


def _only_model(address: ServerAddress) -> str:
    names = served_models(address)
    if len(names) != 1:
        shown = ", ".join(quoted(name) for name in names[:8]) or "none"
        raise UsageError(f"the server serves {len(names)} models ({shown}); name one of them")
    return names[0]


def _file_of(address: ServerAddress, dialect: Dialect, model: str) -> Path | None:
    """The GGUF that a server on this machine names, if it can be read here."""
    if address.host not in _LOOPBACK:
        return None
    try:
        if dialect == "ollama":
            found: object = blob_path(OllamaServer(address).show(model))
        elif dialect == "llama-server":
            props = call_json(address, "GET", "/props")
            found = props.get("model_path") if isinstance(props, Mapping) else None
        else:
            found = None
        path = Path(found) if isinstance(found, str) and found else None
        return path if path is not None and path.is_file() else None
    except (RequestError, UsageError, OSError, ValueError):
        return None


def find_ollama(model: str) -> Target:
    """The model on the Ollama that OLLAMA_HOST names, by default on this machine.

    Raises UsageError where there is none or it has not that model.
    """
    address = ollama_address(os.environ)
    hint = "Give the path of a .gguf file, or the address of a server with --base-url."
    try:
        has_model = OllamaServer(address).has(model)
    except RequestError:
        raise UsageError(
            f"{quoted(model)} is no file here, and no Ollama answers at {address.url}", hint=hint
        ) from None
    if not has_model:
        raise UsageError(
            f"neither a file nor a model of Ollama is called {quoted(model)}", hint=hint
        )
    return target_at(address, model, None)


@contextlib.contextmanager
def served_file(file: Path, wish: Wish, build: str | None = None) -> Iterator[Target]:
    """A llama-server of the chosen or default build, started for this file and stopped on leaving.

    Raises EngineNotFoundError where the build has no llama-server, and where it ends before it is ready.
    """
    registry = Registry()
    chosen = registry.default() if build is None else registry.get(build)
    program = beside(chosen, "llama-server")
    if program is None:
        raise EngineNotFoundError(
            f"the build {chosen.label} has no llama-server",
            hint=f"llamasweep builds install {chosen.number or ''} --with llama-server",
        )
    port = free_port()
    n_ctx = 2 * (wish.n_prompt + wish.n_gen) + 256
    argv = [str(program), "-m", str(file.absolute()), "--host", "127.0.0.1", "--port", str(port)]
    argv += ["-c", str(n_ctx), "-np", "1"]
    address = parse_base_url(f"http://127.0.0.1:{port}")
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(argv, env=(), cwd=Path(folder)) as running,
    ):
        _wait_until_ready(address, running)
        yield Target(address=address, model=file.stem, dialect="llama-server", file=file)


def _wait_until_ready(address: ServerAddress, running: ServerProcess) -> None:
    found = wait_until_healthy(address, running, limit_s=READY_WITHIN_S)
    if found == "ended":
        last = next((line for line in reversed(running.tail) if "error" in line.lower()), "")
        words = f": {quoted(last, max_characters=200)[1:-1]}" if last else ""
        raise EngineNotFoundError(f"llama-server ended before it was ready{words}")
    if found == "late":
        raise EngineNotFoundError(f"llama-server was not ready within {READY_WITHIN_S:g} s")
