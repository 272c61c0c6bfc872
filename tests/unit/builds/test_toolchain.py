"""What is looked for on a machine before anything is compiled; the machine is a folder here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llamasweep.builds import toolchain
from llamasweep.errors import BuildError


def _program(folder: Path, name: str, said: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PATH is one folder of the test's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in ("CXX", "CUDACXX", "ROCM_PATH", "VULKAN_SDK"):
        monkeypatch.delenv(name, raising=False)
    return folder


def _identity(**definitions: str) -> tuple[tuple[str, str], ...]:
    toolchain._version.cache_clear()
    return toolchain.compiler_identity(definitions)


def test_another_compiler_another_version_or_other_flags_are_another_identity(
    tmp_path: Path, bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CC", "CFLAGS", "CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    assert _identity() == ()
    _program(bare_environment, "cc", "cc 12.2.0")
    _program(bare_environment, "c++", "c++ 12.2.0")
    seen = [_identity()]
    assert _identity() == seen[0]
    _program(bare_environment, "c++", "c++ 12.3.0")
    seen.append(_identity())
    _program(bare_environment, "cc", "cc 12.3.0")
    seen.append(_identity())
    other = _program(tmp_path / "other", "clang++", "clang 19")
    monkeypatch.setenv("CXX", str(other))
    seen.append(_identity())
    monkeypatch.setenv("CXX", f"{other} -O1")
    seen.append(_identity())
    monkeypatch.setenv("CFLAGS", "-march=x86-64")
    seen.append(_identity())
    seen.append(_identity(CMAKE_CXX_COMPILER="c++"))
    seen.append(_identity(CMAKE_CUDA_COMPILER=str(_program(tmp_path, "nvcc", "nvcc\nV12.4"))))
    assert len(set(seen)) == len(seen)


def test_a_compiler_is_asked_for_its_version_once(tmp_path: Path, bare_environment: Path) -> None:
    asked = tmp_path / "asked"
    _program(bare_environment, "c++", f"1'; echo x >>'{asked}").chmod(0o755)
    first = _identity()
    assert toolchain.compiler_identity({}) == first
    assert asked.read_text(encoding="utf-8") == "x\n"


def test_a_compiler_that_is_not_there_counts_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-cc 'half")
    assert ("C", "no-such-cc 'half\n") in _identity()


def test_a_bare_machine_has_no_gpu_and_no_toolkit(tmp_path: Path) -> None:
    found = toolchain.read_machine_tools(tmp_path / "root")
    assert found.gpu_vendors == frozenset()
    assert (found.nvcc, found.hipcc, found.rocm_root, found.glslc) == (None, None, None, None)
    assert not found.can_vulkan


def test_gpus_and_toolkits_are_found_where_they_usually_are(
    tmp_path: Path, bare_environment: Path
) -> None:
    root = tmp_path / "root"
    _file(root / "sys/class/drm/card0/device/vendor", "0x1002\n")
    _file(root / "sys/class/drm/card1/device/vendor", "0x8086\n")
    _file(root / "sys/class/drm/card2/device/vendor", "0xffff\n")
    _file(root / "proc/driver/nvidia/version", "NVRM version")
    nvcc = _file(root / "usr/local/cuda/bin/nvcc")
    hipcc = _file(root / "opt/rocm/bin/hipcc")
    _file(root / "usr/include/vulkan/vulkan.h")
    _program(bare_environment, "glslc", "shaderc")
    found = toolchain.read_machine_tools(root)
    assert found.gpu_vendors == {"amd", "intel", "nvidia"}
    assert (found.nvcc, found.hipcc) == (str(nvcc), str(hipcc))
    assert found.rocm_root == str(root / "opt/rocm")
    assert found.can_vulkan


def test_tools_of_the_system_are_used_and_their_versions_kept(
    tmp_path: Path, bare_environment: Path
) -> None:
    cmake = _program(bare_environment, "cmake", "cmake version 3.25.1")
    ninja = _program(bare_environment, "ninja", "1.11.1")
    _program(bare_environment, "c++", "c++ (GNU) 12.2.0")
    steps: list[list[str]] = []
    found = toolchain.find_build_tools(tmp_path / "tools", lambda argv, _: steps.append(argv))
    assert (found.cmake, found.ninja) == (str(cmake), str(ninja))
    assert (found.cmake_version, found.ninja_version) == ("cmake version 3.25.1", "1.11.1")
    assert found.compiler_version == "c++ (GNU) 12.2.0"
    assert steps == []


@pytest.mark.parametrize("said", ["cmake version 3.10.2", "", "no version"])
def test_an_old_or_broken_cmake_is_replaced_from_pypi(
    tmp_path: Path, bare_environment: Path, said: str
) -> None:
    _program(bare_environment, "cmake", said)
    _program(bare_environment, "ninja", "1.11.1")
    _program(bare_environment, "c++", "c++ 12")
    tools = tmp_path / "tools"
    steps: list[list[str]] = []

    def run_step(argv: list[str], _: str) -> None:
        steps.append(argv)
        _program(tools / "bin", "python", "")
        if "install" in argv:
            _program(tools / "bin", "cmake", "cmake version 4.1.0")

    found = toolchain.find_build_tools(tools, run_step)
    assert found.cmake == str(tools / "bin" / "cmake")
    assert found.ninja == str(bare_environment / "ninja")
    assert steps[0] == [sys.executable, "-m", "venv", str(tools)]
    assert steps[1][1:] == ["-m", "pip", "install", "--quiet", "cmake"]
    toolchain.find_build_tools(tools, run_step)
    assert len(steps) == 2


def test_tools_that_do_not_run_at_all_end_with_a_hint(
    tmp_path: Path, bare_environment: Path
) -> None:
    _program(bare_environment, "c++", "c++ 12")
    with pytest.raises(BuildError, match="do not run") as caught:
        toolchain.find_build_tools(tmp_path / "tools", lambda _argv, _text: None)
    assert "package manager" in (caught.value.hint or "")


def test_without_a_compiler_nothing_is_fetched_and_the_hint_names_one(tmp_path: Path) -> None:
    steps: list[str] = []
    with pytest.raises(BuildError, match="no C\\+\\+ compiler") as caught:
        toolchain.find_build_tools(tmp_path / "tools", lambda _, text: steps.append(text))
    assert "g++" in (caught.value.hint or "")
    assert steps == []


def test_pip_of_this_interpreter_is_used_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = toolchain.pip_argv(tmp_path / "tools", lambda _argv, _text: None)
    assert argv == [sys.executable, "-m", "pip"]
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    steps: list[list[str]] = []
    argv = toolchain.pip_argv(tmp_path / "tools", lambda made, _: steps.append(made))
    assert argv == [str(tmp_path / "tools" / "bin" / "python"), "-m", "pip"]
    assert steps == [[sys.executable, "-m", "venv", str(tmp_path / "tools")]]
