"""For which instructions of the processor a build was compiled: what it says of itself when its server starts.

llama-bench tells nothing of it. The server beside it prints `system_info` before it looks for its model, so it is
asked for a model that cannot be there and ends at once. Knows no flags and no hashes.
"""

from __future__ import annotations

import re
from pathlib import Path

from llamasweep.builds.invocation import ask

TIMEOUT_S = 10.0
"""It takes 0.02 s; a GPU driver that wakes up takes seconds."""

_LINE = re.compile(r"system_info:(.*)")
_SWITCH = re.compile(r"\b([A-Z][A-Z0-9_]*) = ([0-9]+)")
_LINUX_NAMES = {
    "SSE3": "pni",
    "SSSE3": "ssse3",
    "AVX": "avx",
    "AVX2": "avx2",
    "AVX_VNNI": "avx_vnni",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AMX_INT8": "amx_int8",
    "NEON": "asimd",
    "DOTPROD": "asimddp",
    "MATMUL_INT8": "i8mm",
    "SVE": "sve",
}
"""As ggml prints them, and as Linux names the same in /proc/cpuinfo."""

_LOUDER = ("-lv", "5")
_SERVERS = ("llama-server", "llama-server.exe")


def cpu_features(binary: Path, *, timeout_s: float = TIMEOUT_S) -> tuple[str, ...] | None:
    """Instructions as Linux names them, sorted; None where no server is there or it tells nothing.

    binary: the llama-bench, or the unified program. A build that loads its CPU code at start tells what it loaded here.
    """
    server = _server_words(binary)
    if server is None:
        return None
    nowhere = str(binary / "none.gguf")  # below a file nothing can be
    for louder in (_LOUDER, ()):
        argv = [*server, *louder, "--port", "0", "-m", nowhere]
        try:
            answer = ask(argv, timeout_s=timeout_s)
        except OSError:
            return None
        found = parse_system_info(answer.stdout + "\n" + answer.stderr)
        if found is not None or answer.is_timeout:
            return found
    return None


def parse_system_info(text: str) -> tuple[str, ...] | None:
    """The instructions of a `system_info` line, () where it names none; None where there is no such line.

    Versions differ: some print only what is there (`CPU : AVX2 = 1`), older ones also what is not (`AVX512 = 0`).
    """
    line = _LINE.search(text)
    if line is None:
        return None
    switches = dict(_SWITCH.findall(line[1]))
    if "CPU :" not in line[1] and not switches.keys() & _LINUX_NAMES.keys():
        return None
    there = {name for name, value in switches.items() if value != "0"}
    return tuple(sorted(_LINUX_NAMES[name] for name in there & _LINUX_NAMES.keys()))


def _server_words(binary: Path) -> tuple[str, ...] | None:
    if binary.stem == "llama":
        return (str(binary), "serve")
    beside = (binary.parent / name for name in _SERVERS)
    return next(((str(path),) for path in beside if path.is_file()), None)
