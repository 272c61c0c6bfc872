"""What this machine can compile with: GPU toolkits, a C++ compiler, CMake and Ninja (from PyPI where the system has none).

It looks and, for CMake and Ninja alone, fetches; it compiles nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from llamasweep.builds.backends import MachineTools
from llamasweep.builds.invocation import ask
from llamasweep.errors import BuildError

_OLDEST_CMAKE = (3, 19)
_PCI_VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
_VERSION_TIMEOUT_S = 60.0
_COMPILERS = {"C": ("CC", ("cc", "gcc", "clang", "cl")), "CXX": ("CXX", ())}
"""Language -> the variable that names its compiler for CMake, and those that are looked for."""
_FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CUDAFLAGS", "HIPFLAGS")
StepRunner = Callable[[list[str], str], None]
"""Runs an argv to its end and raises BuildError where it fails; the text says what is being done."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTools:
    """Programs to build with, as absolute paths; versions are the first lines they print, None where they would not."""

    cmake: str
    ninja: str
    cmake_version: str | None
    ninja_version: str | None
    compiler_version: str | None


def read_machine_tools(root: Path = Path("/")) -> MachineTools:
    """Look for GPUs and their toolkits. root: where `sys`, `proc` and `opt` are looked for."""
    rocm_root = _rocm_root(root)
    hipcc = shutil.which("hipcc") or _file(Path(rocm_root) / "bin" / "hipcc" if rocm_root else None)
    return MachineTools(
        system=platform.system(),
        processor=platform.machine(),
        gpu_vendors=_gpu_vendors(root),
        nvcc=_nvcc(root),
        hipcc=hipcc,
        rocm_root=rocm_root,
        glslc=shutil.which("glslc"),
        has_vulkan_headers=_has_vulkan_headers(root),
    )


def pip_argv(tools_folder: Path, run_step: StepRunner) -> list[str]:
    """The words that start pip: that of this interpreter, else of an environment of our own in `tools_folder`.

    Environments made by uv have no pip. Raises BuildError where none can be made.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    return [str(_tool_environment(tools_folder, run_step)), "-m", "pip"]


def find_build_tools(tools_folder: Path, run_step: StepRunner) -> BuildTools:
    """CMake and Ninja of the system where they are new enough, else from PyPI into `tools_folder`.

    Raises BuildError, with what to install, where there is no C++ compiler or PyPI does not answer.
    """
    compiler = _needed_compiler()
    cmake = _working(shutil.which("cmake"), oldest=_OLDEST_CMAKE)
    ninja = _working(shutil.which("ninja") or shutil.which("ninja-build"))
    missing = [name for name, path in (("cmake", cmake), ("ninja", ninja)) if path is None]
    if missing:
        python = _tool_environment(tools_folder, run_step)
        folder = python.parent
        if any(_working(_in_folder(folder, name)) is None for name in missing):
            argv = [str(python), "-m", "pip", "install", "--quiet", *missing]
            run_step(argv, f"fetching {' and '.join(missing)} from PyPI")
        cmake = cmake or _working(_in_folder(folder, "cmake"), oldest=_OLDEST_CMAKE)
        ninja = ninja or _working(_in_folder(folder, "ninja"))
    if cmake is None or ninja is None:
        raise BuildError(
            "cmake and ninja from PyPI do not run on this machine",
            hint="Install cmake and ninja with the system's package manager.",
        )
    return BuildTools(
        cmake=cmake,
        ninja=ninja,
        cmake_version=_first_line(cmake),
        ninja_version=_first_line(ninja),
        compiler_version=_first_line(compiler),
    )


def find_compiler() -> str | None:
    """The C++ compiler that CMake will take: `$CXX`, else one on PATH; None where there is none."""
    asked = os.environ.get("CXX", "").split()
    found = shutil.which(asked[0]) if asked else None
    for name in ("c++", "g++", "clang++", "cl"):
        found = found or shutil.which(name)
    return found


def compiler_identity(definitions: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What decides, beside these definitions for CMake, which program a source becomes: for the key of a cache.

    Each compiler as called and what it says of its version (asked once per process), and the variables that CMake takes
    flags from. A compiler that is not found or does not say counts by its name alone.
    """
    called = {language: _called(language, definitions) for language in _COMPILERS}
    for language, tool in (("CUDA", "CMAKE_CUDA_COMPILER"), ("HIP", "CMAKE_HIP_COMPILER")):
        called[language] = tuple(definitions[tool].split(";")) if tool in definitions else ()
    if definitions.get("GGML_VULKAN") == "ON":
        called["Vulkan"] = ("glslc",)
    found = [(name, "\n".join([*argv, _version(argv)])) for name, argv in called.items() if argv]
    return (*found, *((name, os.environ[name]) for name in _FLAGS if os.environ.get(name)))


def _called(language: str, definitions: Mapping[str, str]) -> tuple[str, ...]:
    """The words that CMake will call this language's compiler with; () where it finds one of its own."""
    variable, names = _COMPILERS[language]
    chosen = definitions.get(f"CMAKE_{language}_COMPILER")
    if chosen:
        return tuple(chosen.split(";"))
    asked = os.environ.get(variable, "")
    if asked:
        with contextlib.suppress(ValueError):  # a quotation that is not closed
            return tuple(shlex.split(asked, posix=os.name != "nt"))
        return (asked,)
    found = (
        find_compiler() if language == "CXX" else next(filter(None, map(shutil.which, names)), None)
    )
    return (found,) if found else ()


@cache
def _version(argv: tuple[str, ...]) -> str:
    """All that it says of its version (nvcc's stands in the last lines), empty where it does not."""
    path = shutil.which(argv[0])
    if path is None:
        return ""
    try:
        answer = ask([path, *argv[1:], "--version"], timeout_s=_VERSION_TIMEOUT_S)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.exit_code == 0 else ""


def _needed_compiler() -> str | None:
    """None on Windows only, where Visual Studio's is mostly not on PATH and CMake finds it all the same."""
    found = find_compiler()
    if found is None and platform.system() != "Windows":
        raise BuildError(
            "there is no C++ compiler on this machine",
            hint="Install one: `apt install g++`, `dnf install gcc-c++`, or on a Mac `xcode-select --install`.",
        )
    return found


def _tool_environment(folder: Path, run_step: StepRunner) -> Path:
    """The interpreter of our own tool environment, which is made where it is not there yet."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        argv = [sys.executable, "-m", "venv", str(folder)]
        run_step(argv, "making an environment for build tools")
    return python


def _in_folder(folder: Path, name: str) -> str | None:
    return shutil.which(name, path=str(folder))


def _working(path: str | None, *, oldest: tuple[int, ...] = ()) -> str | None:
    """The path where the program runs and is new enough, else None: a pip shim may outlive its package."""
    line = _first_line(path)
    if path is None or line is None:
        return None
    version = re.search(r"(\d+(?:\.\d+)+)", line)
    numbers = tuple(int(part) for part in version[1].split(".")) if version else ()
    return path if numbers >= oldest else None


def _first_line(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        answer = ask([path, "--version"], timeout_s=_VERSION_TIMEOUT_S)
    except OSError:
        return None
    lines = answer.stdout.strip().splitlines()
    return lines[0].strip() if lines and answer.exit_code == 0 else None


def _gpu_vendors(root: Path) -> frozenset[str]:
    found = set()
    for path in (root / "sys/class/drm").glob("card*/device/vendor"):
        vendor = _PCI_VENDORS.get(_text(path))
        if vendor is not None:
            found.add(vendor)
    if (root / "proc/driver/nvidia/version").exists() or (root / "dev/nvidiactl").exists():
        found.add("nvidia")
    is_driver_elsewhere = platform.system() == "Windows" or (root / "dev/dxg").exists()
    if is_driver_elsewhere and shutil.which("nvidia-smi") is not None:
        found.add("nvidia")
    return frozenset(found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _nvcc(root: Path) -> str | None:
    places = [os.environ.get("CUDACXX"), shutil.which("nvcc")]
    places += [str(path) for path in (root / "usr/local/cuda/bin/nvcc", root / "opt/cuda/bin/nvcc")]
    return next((place for place in places if place and Path(place).is_file()), None)


def _rocm_root(root: Path) -> str | None:
    for place in (os.environ.get("ROCM_PATH"), str(root / "opt/rocm")):
        if place and Path(place).is_dir():
            return place
    return None


def _has_vulkan_headers(root: Path) -> bool:
    folders = [root / "usr/include", root / "usr/local/include"]
    sdk = os.environ.get("VULKAN_SDK")
    if sdk:
        folders += [Path(sdk) / "include", Path(sdk) / "Include"]
    return any((folder / "vulkan" / "vulkan.h").is_file() for folder in folders)


def _file(path: Path | None) -> str | None:
    return str(path) if path is not None and path.is_file() else None
