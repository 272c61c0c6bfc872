"""Why a llama-bench process ended, in a sentence, from its exit and the last lines of its stderr.

Pure; knows nothing of processes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llamasweep.engines.base import Failure, Reach

_SURVIVED = re.compile(
    r"failed to mlock|of pinned memory|allocate pinned memory|failed to allocate graph, reserving",
    re.IGNORECASE,
)
"""Complaints after which the engine goes on."""
_OUT_OF_MEMORY = re.compile(
    r"insufficient memory|out of memory|failed to allocate|unable to allocate|cannot allocate memory"
    r"|bad_alloc|Thread creation failed|ErrorOutOfDeviceMemory|insufficient device memory",
    re.IGNORECASE,
)
_TABLE: tuple[tuple[str, str, Reach | None], ...] = (
    (r"unknown model architecture: '([^']*)'", "unknown_architecture", None),
    (
        r"V cache (?:quantization )?requires flash_attn|V cache was requested, but this requires Flash",
        "needs_flash_attn",
        None,
    ),
    (r"cache type .* does not divide n_embd_head", "head_size", None),
    (r"failed to open GGUF file .*\(No such file", "model_missing", None),
    (r"failed to open GGUF file", "model_unreadable", None),
    (
        r"not within the file bounds|failed to read|invalid magic|corrupted or incomplete"
        r"|has invalid GGUF type|this GGUF file is version|failed to load GGUF split",
        "model_damaged",
        None,
    ),
    (
        r"key not found in model|tensor '.*' not found|has wrong shape|wrong number of tens",
        "model_incomplete",
        None,
    ),
    (r"GGML_ASSERT\(.*\) failed|GGML_ABORT", "assertion", None),
    (r"^(?:CUDA|ROCm|HIP|MUSA|SYCL) error: |DeviceLost$", "device_error", None),
    (r"^\s*what\(\): ", "exception", None),
    (r"^error: (?:invalid (?:parameter|range|value|device|argument)|stoi)", "bad_argument", "call"),
    (r"failed to parse cpu-mask", "bad_argument", "cell"),
    (r"failed to set process priority", "priority_refused", "call"),
    (
        r"^llamasweep: cannot start |: error while loading shared libraries: ",
        "not_started",
        "call",
    ),
    (r"failed to initialize the context: ", "context_failed", None),
    (r"error loading model: (?!.*failed to load model from )", "load_failed", None),
)
"""What a line means: kind, and reach where it does not follow from whether the model was loaded."""
_REASONS = tuple((re.compile(pattern), kind, reach) for pattern, kind, reach in _TABLE)
_NOISE = re.compile(
    r"^(llama-bench: benchmark|ggml_backend|ggml_cuda_init|llama_perf|~?llama_context: |\s*$)"
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
    if was_oom_killed and exit_signal == "SIGKILL":
        return Failure(
            status="out_of_memory",
            kind="oom_killed",
            message=f"the kernel ended it for lack of memory ({ending})",
        )
    lines = [line for line in stderr_lines if not _SURVIVED.search(line)]
    reach: Reach = "load" if any("failed to load model" in line for line in lines) else "cell"
    memory_line = _first_match(_OUT_OF_MEMORY, lines)
    if memory_line is not None:
        return Failure(
            status="out_of_memory", kind="allocation_failed", message=_cut(memory_line), reach=reach
        )
    for pattern, kind, own_reach in _REASONS:
        line = _first_match(pattern, lines)
        if line is not None:
            message = _cut(_whole_complaint(lines) if kind == "bad_argument" else line)
            return Failure(status="failed", kind=kind, message=message, reach=own_reach or reach)
    if exit_signal is not None:
        return Failure(
            status="failed", kind="signal", message=f"the engine was {ending}", reach=reach
        )
    return Failure(status="failed", kind="exit_code", message=_unknown(lines, ending), reach=reach)


def _first_match(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    """The first of the closing lines that matches: the cause comes before its consequences."""
    return next((line for line in lines if pattern.search(line)), None)


def _whole_complaint(lines: Sequence[str]) -> str:
    """Of a bad argument one line says what is wrong and the next with which."""
    said = [line.strip() for line in lines if "error: " in line or "failed to parse" in line]
    return "; ".join(dict.fromkeys(said))


def _unknown(lines: Sequence[str], ending: str) -> str:
    final = next((line for line in lines if "error: " in line), None)
    if final is not None:
        return f"{_cut(final)} ({ending})"
    last = next((line for line in reversed(lines) if not _NOISE.match(line)), None)
    if last is not None:
        return f"{ending}; the last thing on stderr was: {_cut(last)}"
    return f"{ending}, and nothing on stderr says why"


def _cut(line: str) -> str:
    text = line.strip()
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + " …"
