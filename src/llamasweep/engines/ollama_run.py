"""One call of `ollama run --verbose`: its command line, and what its end means. Starts nothing.

Exit code 0 means little: at the limit of repeated tokens and after a lost stream Ollama ends with it, without a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.engines.http_exchange import RequestError, ServerAddress
from llamasweep.engines.ollama_answers import Asked, OllamaDurations, check_answer
from llamasweep.engines.ollama_api import KEEP_ALIVE
from llamasweep.engines.ollama_cli import VerboseBlock, parse_verbose
from llamasweep.engines.ollama_names import checked_name
from llamasweep.errors import UsageError, quoted

MAX_PROMPT_BYTES = 120_000
"""Linux takes no longer argument (MAX_ARG_STRLEN is 131,072 bytes)."""
_MESSAGE_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCall:
    """argv and the variables on top of a clean environment. stdin must be empty: what is there goes before the prompt."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


def describe_run(program: str, address: ServerAddress, model: str, prompt: str) -> RunCall:
    """The call that generates once. Raises UsageError for a prompt that no command line can hold."""
    n_bytes = len(prompt.encode())
    if n_bytes > MAX_PROMPT_BYTES or "\0" in prompt:
        raise UsageError(
            f"a prompt of {n_bytes} bytes cannot stand on a command line",
            hint="Measure long prompts with mode: api.",
        )
    if not prompt or prompt.startswith("-"):
        raise UsageError("the prompt is empty or looks like an option")
    words = ("--verbose", "--nowordwrap", "--think=false", "--keepalive", KEEP_ALIVE)
    return RunCall(
        argv=(program, "run", checked_name(model), prompt, *words),
        env=(("OLLAMA_HOST", address.url), ("OLLAMA_NOHISTORY", "1"), ("LC_ALL", "C.UTF-8")),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """What a call gave: the block as printed, the same figures as the API names them, and flags."""

    block: VerboseBlock
    durations: OllamaDurations
    flags: tuple[str, ...]


def read_run(
    exit_code: int | None, stderr: bytes, asked: Asked, *, first_prompt_tps: float | None = None
) -> RunResult:
    """The figures of a call that ended. exit_code: None where a signal ended it.

    Raises RequestError where there is no measurement: an error, no block, a prompt that was cut, an answer that ended early.
    """
    block = parse_verbose(stderr)
    if exit_code != 0:
        raise _failed(exit_code, block.unknown_lines)
    found = durations_of(block)
    if block.n_blocks == 0 or found == OllamaDurations():
        raise RequestError(
            "no_final_chunk",
            "ollama run ended with exit code 0 and printed no figures",
            hint="Ollama does so when a model repeats itself, and when its text is no UTF-8.",
        )
    flags = check_answer(asked, found, None, first_prompt_tps=first_prompt_tps)
    if block.disagreements:
        flags += ("printed_rate_differs",)
    return RunResult(block=block, durations=found, flags=flags)


def durations_of(block: VerboseBlock) -> OllamaDurations:
    """The block's figures as the API names them."""
    return OllamaDurations(
        total_duration_ns=block.total_duration_ns,
        load_duration_ns=block.load_duration_ns,
        prompt_eval_count=block.prompt_eval_count,
        prompt_eval_cached_count=block.prompt_eval_cached_count,
        prompt_eval_duration_ns=block.prompt_eval_duration_ns,
        eval_count=block.eval_count,
        eval_duration_ns=block.eval_duration_ns,
    )


def _failed(exit_code: int | None, lines: Sequence[str]) -> RequestError:
    said = next((line for line in reversed(lines) if line.startswith("Error: ")), "")
    how = "was ended by a signal" if exit_code is None else f"ended with exit code {exit_code}"
    words = f": {quoted(said[7:], max_characters=_MESSAGE_CHARACTERS)[1:-1]}" if said else ""
    message = f"ollama run {how}{words}"
    if "could not connect" in said:
        return RequestError("not_reachable", message)
    if "pull model manifest" in said or "not found" in said:
        return RequestError("model_missing", message)
    return RequestError("server_error", message)
