"""Which backend which machine gets, and what CMake is told for each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamasweep.builds.backends import (
    BACKENDS,
    Backend,
    MachineTools,
    base_definitions,
    choose_backend,
    chosen_definitions,
    definitions,
    parse_definitions,
    variant_label,
)
from llamasweep.errors import BuildError, UsageError

BARE = MachineTools(system="Linux", processor="x86_64")
NVIDIA = replace(BARE, gpu_vendors=frozenset({"nvidia", "intel"}))
AMD = replace(BARE, gpu_vendors=frozenset({"amd"}))
INTEL = replace(BARE, gpu_vendors=frozenset({"intel"}))
MAC = MachineTools(system="Darwin", processor="arm64")


def _with_vulkan(tools: MachineTools) -> MachineTools:
    return replace(tools, glslc="/usr/bin/glslc", has_vulkan_headers=True)


@pytest.mark.parametrize(
    ("tools", "backend", "has_advice"),
    [
        (BARE, "cpu", False),
        (_with_vulkan(BARE), "cpu", False),
        (replace(NVIDIA, nvcc="/usr/local/cuda/bin/nvcc"), "cuda", False),
        (_with_vulkan(NVIDIA), "vulkan", True),
        (NVIDIA, "cpu", True),
        (replace(AMD, hipcc="/opt/rocm/bin/hipcc"), "hip", False),
        (_with_vulkan(AMD), "vulkan", True),
        (AMD, "cpu", True),
        (_with_vulkan(INTEL), "vulkan", False),
        (INTEL, "cpu", True),
        (MAC, "metal", False),
        (replace(MAC, processor="x86_64"), "cpu", False),
    ],
)
def test_auto_takes_the_best_backend_that_can_be_compiled(
    tools: MachineTools, backend: str, has_advice: bool
) -> None:
    choice = choose_backend(tools)
    assert choice.backend == backend
    assert (choice.advice is not None) == has_advice


def test_advice_names_what_to_install() -> None:
    assert "nvcc" in (choose_backend(NVIDIA).advice or "")
    assert "ROCm" in (choose_backend(AMD).advice or "")
    assert "Vulkan SDK" in (choose_backend(INTEL).advice or "")


@pytest.mark.parametrize("backend", ["cuda", "hip", "vulkan", "metal"])
def test_an_asked_backend_without_its_toolkit_is_refused_with_what_it_needs(backend: str) -> None:
    with pytest.raises(BuildError, match=f"{backend} needs") as caught:
        choose_backend(BARE, backend)
    assert caught.value.hint is not None


def test_an_asked_backend_wins_over_the_machine() -> None:
    assert choose_backend(replace(NVIDIA, nvcc="/n"), "cpu").backend == "cpu"
    assert choose_backend(_with_vulkan(BARE), "vulkan").backend == "vulkan"
    with pytest.raises(UsageError, match="no backend"):
        choose_backend(BARE, "opencl")


@pytest.mark.parametrize(
    ("backend", "switch"),
    [
        ("cpu", None),
        ("cuda", "GGML_CUDA"),
        ("vulkan", "GGML_VULKAN"),
        ("hip", "GGML_HIP"),
        ("metal", "GGML_METAL"),
    ],
)
def test_each_backend_turns_its_own_switch_on_and_the_others_off(
    backend: Backend, switch: str | None
) -> None:
    made = definitions(backend, BARE)
    switches = ("GGML_CUDA", "GGML_VULKAN", "GGML_HIP", "GGML_METAL")
    assert {name: made[name] for name in switches} == {
        name: "ON" if name == switch else "OFF" for name in switches
    }


def test_compilers_that_are_not_on_path_are_named() -> None:
    tools = replace(BARE, nvcc="/usr/local/cuda/bin/nvcc", rocm_root="/opt/rocm")
    assert definitions("cuda", tools)["CMAKE_CUDA_COMPILER"] == "/usr/local/cuda/bin/nvcc"
    assert definitions("hip", tools)["CMAKE_HIP_COMPILER"] == "/opt/rocm/llvm/bin/clang"
    assert "CMAKE_CUDA_COMPILER" not in definitions("cpu", tools)
    assert definitions("metal", MAC)["GGML_METAL_EMBED_LIBRARY"] == "ON"


def test_every_build_is_static_native_numbered_and_bare() -> None:
    made = base_definitions(11434)
    assert made["LLAMA_BUILD_NUMBER"] == "11434"
    assert made["LLAMA_BUILD_COMMIT"] == "sdist"
    assert made["GGML_NATIVE"] == "ON"
    assert made["CMAKE_BUILD_TYPE"] == "Release"
    off = {name for name, value in made.items() if value == "OFF"}
    assert off >= {"BUILD_SHARED_LIBS", "LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES"}
    assert off >= {"LLAMA_BUILD_APP", "LLAMA_BUILD_UI", "LLAMA_USE_PREBUILT_UI"}
    assert off >= {"LLAMA_CURL", "LLAMA_OPENSSL"}


def test_definitions_are_read_from_the_command_line() -> None:
    assert parse_definitions(["GGML_NATIVE=OFF", "CMAKE_CXX_FLAGS:STRING=-O2 -g=1"]) == {
        "GGML_NATIVE": "OFF",
        "CMAKE_CXX_FLAGS": "-O2 -g=1",
    }


@pytest.mark.parametrize("text", ["GGML_NATIVE", "=ON", "-DX=1", "A B=1", "X=1\nY=2", ""])
def test_malformed_definitions_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no CMake definition"):
        parse_definitions([text])


def test_definitions_that_cannot_work_are_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="symbolic links"):
        parse_definitions(["BUILD_SHARED_LIBS=ON"])


def test_variants_have_names_of_their_own() -> None:
    assert variant_label(11434, "cpu", {}) == "b11434"
    assert variant_label(11434, "cuda", {}) == "b11434-cuda"
    assert variant_label(11434, "cpu", {"GGML_NATIVE": "OFF"}) == "b11434-GGML_NATIVE-OFF"
    odd = {variant_label(11434, "hip", {"X": value}) for value in ("a b", "a-b", "a/b", "$(x)")}
    assert len(odd) == 4
    assert all(label.startswith("b11434-hip-defined-") for label in odd)


def test_what_a_build_was_made_with_is_told_without_what_every_build_has() -> None:
    made = {**base_definitions(11434), **definitions("cuda", replace(BARE, nvcc="/opt/nvcc"))}
    assert chosen_definitions(tuple(made.items())) == {}
    made |= {"GGML_NATIVE": "OFF", "GGML_AVX2": "OFF", "LLAMA_CURL": "OFF"}
    assert chosen_definitions(tuple(made.items())) == {"GGML_NATIVE": "OFF", "GGML_AVX2": "OFF"}


def test_all_backends_are_choices() -> None:
    assert BACKENDS == ("cpu", "cuda", "vulkan", "hip", "metal")
