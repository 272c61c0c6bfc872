"""The engines by the name that sweeps and rows give them."""

from __future__ import annotations

from llamasweep.engines.base import Engine
from llamasweep.engines.llama_batched_bench import LlamaBatchedBench
from llamasweep.engines.llama_bench import LlamaBench
from llamasweep.engines.llama_server import LlamaServer
from llamasweep.engines.ollama import Ollama
from llamasweep.engines.openai import OpenAi
from llamasweep.errors import UsageError

_ALL: tuple[Engine, ...] = (
    LlamaBench(),
    LlamaBatchedBench(),
    LlamaServer(),
    Ollama(),
    OpenAi(),
)
_ENGINES: dict[str, Engine] = {engine.name: engine for engine in _ALL}


def engine_named(name: str) -> Engine:
    """The engine. Raises UsageError for a name that this version does not know."""
    engine = _ENGINES.get(name)
    if engine is None:
        known = ", ".join(sorted(_ENGINES))
        raise UsageError(f"no engine is called {name!r}; known are {known}")
    return engine
