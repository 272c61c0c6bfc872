"""Which backend a build gets on which machine, and the CMake definitions that each choice makes.

Pure: `toolchain` looks at the machine and hands the facts in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from llamasweep.errors import BuildError, UsageError

Backend = Literal["cpu", "cuda", "vulkan", "hip", "metal"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
DISPLAY_NAMES: Mapping[Backend, str] = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "vulkan": "Vulkan",
    "hip": "ROCm",
    "metal": "Metal",
}
"""As llama-bench prints them in its column `backends`."""

_SWITCHES: Mapping[Backend, str] = {
    "cuda": "GGML_CUDA",
    "vulkan": "GGML_VULKAN",
    "hip": "GGML_HIP",
    "metal": "GGML_METAL",
}
_BACKEND_NAMES = frozenset(
    {
        *_SWITCHES.values(),
        "CMAKE_CUDA_COMPILER",
        "CMAKE_HIP_COMPILER",
        "CMAKE_PREFIX_PATH",
        "GGML_METAL_EMBED_LIBRARY",
    }
)
_REFUSED = {
    "BUILD_SHARED_LIBS": "the sdist lacks the symbolic links that shared libraries are linked through",
    "LLAMA_BUILD_NUMBER": "the number is the version that was asked for",
}
_DEFINITION = re.compile(
    r"^(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<type>:[A-Z]+)?=(?P<value>[^\n\r\0]*)$"
)
_LIMIT_NAME = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineTools:
    """What decides the backend.

    system: "Linux", "Darwin", "Windows" as `platform.system()` says. processor: `platform.machine()`.
    gpu_vendors: of "nvidia", "amd", "intel", those that are there. nvcc, hipcc, glslc: absolute paths, None where
    missing. has_vulkan_headers: whether a Vulkan SDK or its development package is there. rocm_root: folder of ROCm,
    None where missing. traps_on_amx: the processor shows AMX and dies of it.
    """

    system: str
    processor: str
    gpu_vendors: frozenset[str] = frozenset()
    nvcc: str | None = None
    hipcc: str | None = None
    rocm_root: str | None = None
    glslc: str | None = None
    has_vulkan_headers: bool = False
    traps_on_amx: bool = False

    @property
    def can_vulkan(self) -> bool:
        """Whether the Vulkan backend can be compiled here: it needs the headers and the shader compiler."""
        return self.glslc is not None and self.has_vulkan_headers


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendChoice:
    """A backend with the reason for it. advice: what to install so that the GPU is used, None where nothing is missing."""

    backend: Backend
    reason: str
    advice: str | None = None


def choose_backend(tools: MachineTools, asked: str = "auto") -> BackendChoice:
    """The backend for this machine: the asked one, or with "auto" the best that can be compiled here.

    Raises UsageError for an unknown word, BuildError where the asked backend's toolkit is missing.
    """
    if asked != "auto":
        return BackendChoice(backend=_asked_backend(tools, asked), reason="asked for")
    if tools.system == "Darwin" and tools.processor == "arm64":
        return BackendChoice(backend="metal", reason="this is a Mac with Apple silicon")
    candidates: tuple[tuple[str, str, Backend, bool], ...] = (
        ("nvidia", "an NVIDIA GPU", "cuda", tools.nvcc is not None),
        ("amd", "an AMD GPU", "hip", tools.hipcc is not None),
        ("intel", "an Intel GPU", "vulkan", tools.can_vulkan),
    )
    for vendor, gpu, backend, has_toolkit in candidates:
        if vendor in tools.gpu_vendors:
            return _for_gpu(tools, gpu, backend, has_toolkit)
    return BackendChoice(backend="cpu", reason="no GPU was found on this machine")


def definitions(backend: Backend, tools: MachineTools) -> dict[str, str]:
    """The CMake definitions of a backend: its own switch on, every other one off, compilers that are not on PATH named."""
    chosen = {switch: "ON" if name == backend else "OFF" for name, switch in _SWITCHES.items()}
    if backend == "cuda" and tools.nvcc is not None:
        chosen["CMAKE_CUDA_COMPILER"] = tools.nvcc
    if backend == "hip" and tools.rocm_root is not None:
        chosen["CMAKE_HIP_COMPILER"] = f"{tools.rocm_root}/llvm/bin/clang"
        chosen["CMAKE_PREFIX_PATH"] = tools.rocm_root
    if backend == "metal":
        chosen["GGML_METAL_EMBED_LIBRARY"] = "ON"
    return chosen


def base_definitions(number: int) -> dict[str, str]:
    """The definitions of every build of ours, whatever the backend: static, native, and nothing that is not asked for."""
    off = (
        "BUILD_SHARED_LIBS",
        "LLAMA_BUILD_TESTS",
        "LLAMA_BUILD_EXAMPLES",
        "LLAMA_BUILD_APP",
        "LLAMA_BUILD_UI",
        "LLAMA_BUILD_WEBUI",
        "LLAMA_USE_PREBUILT_UI",
        "LLAMA_CURL",
        "LLAMA_OPENSSL",
    )
    return {
        "CMAKE_BUILD_TYPE": "Release",
        "GGML_NATIVE": "ON",
        "LLAMA_BUILD_NUMBER": str(number),
        "LLAMA_BUILD_COMMIT": "sdist",
        "LLAMA_BUILD_TOOLS": "ON",
        "LLAMA_BUILD_SERVER": "ON",
        **dict.fromkeys(off, "OFF"),
    }


def chosen_definitions(definitions: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Those of a build's definitions that not every build of ours has: the user's own, and what this processor needs.

    Backends and the places of their compilers are left out; which backend it is, is told elsewhere.
    """
    usual = base_definitions(0)
    left_out = {*_BACKEND_NAMES, "LLAMA_BUILD_NUMBER"}
    return {
        name: value
        for name, value in definitions
        if name not in left_out and usual.get(name) != value
    }


def parse_definitions(texts: tuple[str, ...] | list[str]) -> dict[str, str]:
    """`NAME=VALUE` texts of `--define` as a mapping. Raises UsageError for a malformed one or one that cannot work."""
    found: dict[str, str] = {}
    for text in texts:
        match = _DEFINITION.match(text)
        if match is None:
            raise UsageError(
                f"{text!r} is no CMake definition",
                hint="Write it as NAME=VALUE, such as GGML_NATIVE=OFF.",
            )
        name = match["name"]
        if name in _REFUSED:
            raise UsageError(f"{name} cannot be defined: {_REFUSED[name]}")
        found[name] = match["value"]
    return found


def variant_label(number: int, backend: Backend, extra: Mapping[str, str]) -> str:
    """The name of a build: `b11434`, `b11434-cuda`, `b11434-GGML_NATIVE-OFF`; never two alike for different definitions."""
    parts = [f"b{number}"] + ([] if backend == "cpu" else [backend])
    spelled = [f"{name}-{value}" for name, value in sorted(extra.items())]
    parts += spelled
    label = "-".join(parts)
    is_plain = all(re.fullmatch(r"[A-Za-z0-9_.]+", value) for value in extra.values())
    return label if is_plain and len(label) <= _LIMIT_NAME else _shortened(parts[0], extra, backend)


def _shortened(start: str, extra: Mapping[str, str], backend: Backend) -> str:
    digest = hashlib.sha256(repr(sorted(extra.items())).encode()).hexdigest()[:8]
    middle = [] if backend == "cpu" else [backend]
    return "-".join([start, *middle, "defined", digest])


_TOOLKITS: Mapping[Backend, str] = {
    "cuda": "the CUDA toolkit (nvcc)",
    "hip": "ROCm with hipcc",
    "vulkan": "the Vulkan SDK (headers and glslc)",
    "metal": "macOS",
}


def _as_backend(text: str) -> Backend:
    for backend in BACKENDS:
        if backend == text:
            return backend
    raise UsageError(
        f"{text!r} is no backend", hint="Choose one of auto, " + ", ".join(BACKENDS) + "."
    )


def _asked_backend(tools: MachineTools, asked: str) -> Backend:
    backend = _as_backend(asked)
    is_possible = {
        "cpu": True,
        "cuda": tools.nvcc is not None,
        "hip": tools.hipcc is not None,
        "vulkan": tools.can_vulkan,
        "metal": tools.system == "Darwin",
    }[backend]
    if not is_possible:
        raise BuildError(
            f"the backend {backend} needs {_TOOLKITS[backend]}, which is not on this machine",
            hint="Install it, or choose another --backend.",
        )
    return backend


def _for_gpu(tools: MachineTools, gpu: str, backend: Backend, has_toolkit: bool) -> BackendChoice:
    toolkit = _TOOLKITS[backend]
    if has_toolkit:
        return BackendChoice(backend=backend, reason=f"there is {gpu} and {toolkit}")
    advice = f"There is {gpu}; install {toolkit} and build again, so that the GPU is measured."
    if tools.can_vulkan:
        return BackendChoice(
            backend="vulkan",
            reason=f"there is {gpu}, {toolkit} is missing, and the Vulkan SDK is there",
            advice=advice,
        )
    return BackendChoice(
        backend="cpu", reason=f"there is {gpu}, but {toolkit} is missing", advice=advice
    )
