"""An Ollama server of one's own: how it is called, when it is ready, and what its log says was really applied.

Starts nothing; whoever does feeds the log's lines to `ServerLog`. The command line of the runner in that log is the truth on
context, batch, threads and KV types, whatever was asked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.ollama_api import OllamaServer
from llamasweep.errors import EngineNotFoundError, UsageError

KV_TYPES = ("f16", "q8_0", "q4_0")
_LOOK_AGAIN_S = 0.05
_MAX_KEPT = 10_000
Applied = int | str | bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """What a server has for all its models; cells that differ in one of these need another server. None: Ollama's default."""

    type_kv: str | None = None
    flash_attn: bool | None = None
    n_parallel: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeCall:
    """argv, and variables on top of a clean environment."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


def describe_server(
    program: str, port: int, *, models: str, home: str, settings: ServerSettings | None = None
) -> ServeCall:
    """`ollama serve` on that port of the loopback, its models and keys in the given folders. Raises UsageError."""
    chosen = settings or ServerSettings()
    if chosen.type_kv is not None and chosen.type_kv not in KV_TYPES:
        raise UsageError(
            f"Ollama has no KV cache of type {chosen.type_kv!r}; it has {', '.join(KV_TYPES)}"
        )
    env = {
        "OLLAMA_HOST": f"127.0.0.1:{port}",
        "OLLAMA_MODELS": models,
        "HOME": home,  # else it writes a key pair into the user's
        "OLLAMA_NO_CLOUD": "1",
        "OLLAMA_NOPRUNE": "1",
        "OLLAMA_NUM_PARALLEL": str(chosen.n_parallel),
        "OLLAMA_MAX_LOADED_MODELS": "1",
        "OLLAMA_KEEP_ALIVE": "30m",
        "GIN_MODE": "release",
    }
    if chosen.type_kv is not None:
        env["OLLAMA_KV_CACHE_TYPE"] = chosen.type_kv
    if chosen.flash_attn is not None:
        env["OLLAMA_FLASH_ATTENTION"] = "1" if chosen.flash_attn else "0"
    return ServeCall(argv=(program, "serve"), env=tuple(sorted(env.items())))


def wait_until_ready(
    server: OllamaServer, *, is_alive: Callable[[], bool], timeout_s: float = 60
) -> str:
    """The version of the server once it answers. Raises EngineNotFoundError where it ends or stays silent."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            return server.version()
        except RequestError as problem:
            if not is_alive():
                raise EngineNotFoundError("ollama serve ended before it answered") from None
            if time.monotonic() > deadline_s:
                raise EngineNotFoundError(
                    f"ollama serve did not answer within {timeout_s:g} s: {problem.message}"
                ) from None
        time.sleep(_LOOK_AGAIN_S)


_CMD = re.compile(r'msg="starting (?:llama-server|runner|llama server)".* cmd="((?:[^"\\]|\\.)*)"')
_LOAD_REQUEST = re.compile(r'msg=load request="\{Operation:commit ((?:[^"\\]|\\.)*)\}"')
_COMPUTE = re.compile(r'msg="inference compute".* library=(\S{1,40})')
_VERSION = re.compile(r'msg="Listening on \S{1,80} \(version ([^)"]{1,80})\)"')
_SYSTEM = re.compile(r"system_info: (.{1,2000})|msg=system (.{1,2000})")
_CACHED = re.compile(r"cached n_tokens = ([0-9]{1,9})")
_N_PROMPT = re.compile(r"n_ctx_slot = ([0-9]{1,9}).* task\.n_tokens = ([0-9]{1,9})")
_BUILD = re.compile(r"common_params_print_info: build ([0-9]{1,9}) ")
_KV_CACHE = re.compile(r"\bK \((\w{1,10})\): .{1,40}, V \((\w{1,10})\)")
_SHORTENED = re.compile(r'msg="truncating input prompt"|msg="requested context size too large')
_INT_FLAGS = {
    "-c": "n_ctx_total", "--ctx-size": "n_ctx_total", "-np": "n_parallel", "--parallel": "n_parallel",
    "-b": "n_batch", "--batch-size": "n_batch", "-ub": "n_ubatch", "-t": "n_threads", "--threads": "n_threads",
    "-ngl": "n_gpu_layers", "--n-gpu-layers": "n_gpu_layers",
}  # fmt: skip
_TEXT_FLAGS = {
    "--flash-attn": "flash_attn", "--cache-type-k": "type_k", "--cache-type-v": "type_v", "--load-mode": "load_mode",
    "--chat-template": "chat_template", "--model": "model", "--kv-cache-type": "type_kv",
}  # fmt: skip
_REQUEST_NAMES = {
    "Parallel": "n_parallel", "BatchSize": "n_batch", "KvSize": "n_ctx_total", "NumThreads": "n_threads",
    "FlashAttention": "flash_attn", "KvCacheType": "type_kv",
}  # fmt: skip
_PAIR = re.compile(r"([A-Za-z]{1,40}):(\S{0,80})")


@dataclass(slots=True)
class ServerLog:
    """Facts of a server's log, line by line; None where it has not said.

    build: number of the llama.cpp that it starts (v0.30 on). libraries: what it computes with: cpu, CUDA, ROCm …. runners:
    settings of each runner that it started, by our names, the last one last. cached_counts: tokens of each prompt that came from
    the cache, in order (engine beside: v0.30 on). prompts: (window, tokens) of each prompt. notes: lines on prompts and contexts
    that were cut.
    """

    version: str | None = None
    system: str | None = None
    build: int | None = None
    libraries: set[str] = field(default_factory=set)
    runners: list[dict[str, Applied]] = field(default_factory=list)
    cached_counts: list[int] = field(default_factory=list)
    prompts: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def knows_gpu(self) -> bool | None:
        """Whether the server computes on anything but the CPU; None where it has not said."""
        return None if not self.libraries else bool(self.libraries - {"cpu"})

    @property
    def applied(self) -> Mapping[str, Applied]:
        """The settings of the runner that was started last; empty where none was."""
        return self.runners[-1] if self.runners else {}

    def feed(self, line: str) -> None:
        """Learn from one line."""
        if match := _CACHED.search(line):
            _keep(self.cached_counts, int(match[1]))
        elif match := _N_PROMPT.search(line):
            _keep(self.prompts, (int(match[1]), int(match[2])))
        elif match := _KV_CACHE.search(line):
            self._learn({"type_k": match[1], "type_v": match[2]})
        elif match := _CMD.search(line):
            _keep(self.runners, read_command(_unquoted(match[1])))
        elif match := _LOAD_REQUEST.search(line):
            self._refine(_unquoted(match[1]))
        elif _SHORTENED.search(line):
            _keep(self.notes, line[:400])
        else:
            self._identify(line)

    def _identify(self, line: str) -> None:
        """What the server and its programs are, told once."""
        if match := _COMPUTE.search(line):
            self.libraries.add(match[1])
        elif match := _VERSION.search(line):
            self.version = match[1]
        elif match := _SYSTEM.search(line):
            self.system = (match[1] or match[2]).strip()
        elif match := _BUILD.search(line):
            self.build = int(match[1])

    def _refine(self, request: str) -> None:
        """Engines inside tell their settings in a request after the command."""
        pairs = {_REQUEST_NAMES[k]: v for k, v in _PAIR.findall(request) if k in _REQUEST_NAMES}
        self._learn({name: int(v) if v.isdigit() else v.lower() for name, v in pairs.items() if v})

    def _learn(self, said: Mapping[str, Applied]) -> None:
        """More of the runner that was started last."""
        if not self.runners:
            self.runners.append({})
        self.runners[-1] = _per_slot({**self.runners[-1], **said})


def _keep(values: list, value: object) -> None:  # type: ignore[type-arg]
    values.append(value)
    if len(values) > 2 * _MAX_KEPT:
        del values[:_MAX_KEPT]


def read_command(command: str) -> dict[str, Applied]:
    """Settings of a runner from its command line, by our names; what it leaves to its defaults is absent.

    n_ctx is the window of one slot.
    """
    words = command.split()
    found: dict[str, Applied] = {}
    for word, value in zip(words, [*words[1:], ""], strict=False):
        if word in _INT_FLAGS and value.lstrip("-").isdigit():
            found[_INT_FLAGS[word]] = int(value)
        elif word in _TEXT_FLAGS and value and not value.startswith("--"):
            found[_TEXT_FLAGS[word]] = value
        elif word == "--flash-attn":
            found["flash_attn"] = "on"
        elif word == "--no-mmap":
            found["load_mode"] = "none"
        elif word == "--no-jinja":
            found["has_jinja"] = False
    return _per_slot(found)


def _per_slot(found: dict[str, Applied]) -> dict[str, Applied]:
    total, n_parallel = found.get("n_ctx_total"), found.get("n_parallel", 1)
    if isinstance(total, int) and isinstance(n_parallel, int) and n_parallel > 0:
        found["n_ctx"] = total // n_parallel
    return found


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
