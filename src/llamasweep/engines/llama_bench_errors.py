"""Why a llama-bench process ended, in a sentence, from its exit and the last lines of its stderr.

Section 4 of the page on llama-bench lists the cases. Pure; knows nothing of processes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llamasweep.results.records import Status

Reach = Literal["cell", "load", "call"]
"""What the failure concerns: this cell, everything with this model load, or the whole command line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """status and kind go to the row; message is the true reason; reach says which other cells share it."""

    status: Status
    kind: str
    message: str
    reach: Reach = "cell"


_OUT_OF_MEMORY = re.compile(
    r"insufficient memory|out of memory|failed to allocate|unable to allocate|cannot allocate memory"
    r"|bad_alloc|Thread creation failed|ErrorOutOfDeviceMemory|insufficient device memory",
    re.IGNORECASE,
)
_REASONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"unknown model architecture: '([^']*)'", "unknown_architecture"),
        (
            r"V cache requires flash_attn|V cache quantization requires flash_attn",
            "needs_flash_attn",
        ),
        (r"failed to open GGUF file", "model_missing"),
        (
            r"not within the file bounds|failed to read|invalid magic|corrupted or incomplete",
            "model_damaged",
        ),
        (r"failed to load GGUF split", "model_damaged"),
        (
            r"key not found in model|tensor '.*' not found|has wrong shape|wrong number of tens",
            "model_incomplete",
        ),
        (r"GGML_ASSERT\(.*\) failed|GGML_ABORT", "assertion"),
        (r"invalid parameter for argument|invalid range format|invalid value", "bad_argument"),
        (r"invalid device|failed to parse cpu-mask|error: stoi", "bad_argument"),
        (r"failed to set process priority", "priority_refused"),
    )
)
_NOISE = re.compile(
    r"^(llama-bench: benchmark|ggml_backend|ggml_cuda_init|llama_perf|~?llama_context: |\s*$)"
)
_FINAL = re.compile(
    r"error: (failed to (?:load model|create context with model|run [a-z ]+)|invalid .*|.*)"
)
_MESSAGE_CHARS = 400


def explain(
    *,
    exit_code: int | None,
    exit_signal: str | None,
    stderr_lines: Sequence[str],
    was_oom_killed: bool,
) -> Failure | None:
    """The failure that this ending means; None for a clean exit.

    exit_code: None where a signal ended it. exit_signal: SIGSEGV …, None otherwise. stderr_lines: the last lines, oldest first.
    was_oom_killed: the kernel says that it killed a process for memory meanwhile.
    """
    if exit_code == 0 and exit_signal is None:
        return None
    ending = f"ended by {exit_signal}" if exit_signal else f"exit code {exit_code}"
    memory_line = _last_match(_OUT_OF_MEMORY, stderr_lines)
    reach = _reach(stderr_lines)
    if was_oom_killed and exit_signal == "SIGKILL":
        return Failure(
            status="out_of_memory",
            kind="oom_killed",
            message=f"the kernel ended it for lack of memory ({ending})",
        )
    if memory_line is not None:
        return Failure(
            status="out_of_memory", kind="allocation_failed", message=_cut(memory_line), reach=reach
        )
    for pattern, kind in _REASONS:
        line = _last_match(pattern, stderr_lines)
        if line is not None:
            call = (
                "call"
                if kind in {"bad_argument", "priority_refused"} and reach == "cell"
                else reach
            )
            return Failure(status="failed", kind=kind, message=_cut(line), reach=call)
    if exit_signal is not None:
        return Failure(
            status="failed", kind="signal", message=f"the engine was {ending}", reach=reach
        )
    last = _last_match(_FINAL, stderr_lines) or _last_said(stderr_lines)
    message = f"{_cut(last)} ({ending})" if last else f"{ending}, and nothing on stderr says why"
    return Failure(status="failed", kind="exit_code", message=message, reach=reach)


def _reach(lines: Sequence[str]) -> Reach:
    """A model that does not load fails for every cell of the group, unless rows came before it."""
    return "load" if any("failed to load model" in line for line in lines) else "cell"


def _last_match(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    """The first of the closing lines that matches: the cause comes before its consequences."""
    return next((line for line in lines if pattern.search(line)), None)


def _last_said(lines: Sequence[str]) -> str | None:
    return next((line for line in reversed(lines) if not _NOISE.match(line)), None)


def _cut(line: str) -> str:
    text = line.strip()
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + " …"
