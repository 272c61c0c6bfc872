"""Flags, versions and devices as llama-bench printed them over two years."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamasweep.builds.help_text import (
    HelpText,
    backends_of,
    default_threads,
    default_value,
    parse_devices,
    parse_help,
    parse_version,
    value_domain,
)

HELP_TEXTS = Path(__file__).parents[2] / "golden" / "help"


def _help(name: str) -> HelpText:
    return parse_help((HELP_TEXTS / f"{name}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "n_options"),
    [
        ("llama-cpp-python-0.2.60", 38),
        ("llama-cpp-python-0.2.90", 46),
        ("b4748", 51),
        ("llama-cpp-python-0.3.9", 55),
        ("llama-cpp-python-0.3.16", 60),
        ("b8247", 73),
        ("b9437", 77),
        ("b10151", 80),
        ("b10488", 80),
        ("b11434", 80),
    ],
)
def test_every_spelling_of_every_version_is_found(name: str, n_options: int) -> None:
    found = _help(name)
    assert len(found.options) == n_options
    assert found.is_llama_bench
    assert default_threads(found) == 2


def test_all_recorded_texts_are_in_the_table_above() -> None:
    assert len(list(HELP_TEXTS.glob("*.txt"))) == 10


@pytest.mark.parametrize(
    ("flag", "since", "until"),
    [
        ("-fa", "llama-cpp-python-0.2.90", None),
        ("--progress", "b4748", None),
        ("-d", "llama-cpp-python-0.3.9", None),
        ("-ot", "llama-cpp-python-0.3.9", None),
        ("-dt", "llama-cpp-python-0.3.16", "llama-cpp-python-0.3.16"),
        ("--no-warmup", "llama-cpp-python-0.3.16", None),
        ("-ncmoe", "b8247", None),
        ("-dio", "b8247", "b10488"),
        ("-fitt", "b9437", None),
        ("-lm", "b10151", None),
        ("-mmp", "llama-cpp-python-0.2.60", "b10488"),
        ("--version", "b11434", None),
        ("--repack", "b11434", None),
    ],
)
def test_flags_come_and_go_with_the_versions(flag: str, since: str, until: str | None) -> None:
    order = [
        "llama-cpp-python-0.2.60",
        "llama-cpp-python-0.2.90",
        "b4748",
        "llama-cpp-python-0.3.9",
        "llama-cpp-python-0.3.16",
        "b8247",
        "b9437",
        "b10151",
        "b10488",
        "b11434",
    ]
    last = order.index(until) if until else len(order) - 1
    expected = [order.index(since) <= i <= last for i in range(len(order))]
    assert [flag in _help(name).options for name in order] == expected


def test_value_domains_and_defaults_tell_the_versions_apart() -> None:
    old, new = _help("b8247").of("-fa"), _help("b9437").of("-fa")
    assert old is not None
    assert new is not None
    assert (value_domain(old), default_value(old)) == (("0", "1"), "0")
    assert (value_domain(new), default_value(new)) == (("on", "off", "auto"), "auto")


def test_lines_that_continue_an_option_belong_to_it() -> None:
    described = _help("b11434").of("-ot")
    assert described == "<tensor name pattern>=<buffer type>;... (default: disabled)"
    assert default_value(described) == "disabled"
    repository = _help("b11434").of("-hf") or ""
    assert "example: ggml-org/GLM-4.7-Flash-GGUF:Q4_K_M" in repository
    assert default_value(repository) == "unused"


def test_values_repeated_between_spellings_are_no_flags() -> None:
    found = _help("llama-cpp-python-0.2.60")
    assert {"-ctk", "--cache-type-k", "-ub", "--ubatch-size"} <= found.options
    assert found.of("-ctk") == "<t> (default: f16)"


def test_banners_before_the_usage_are_left_out() -> None:
    banner = (
        "ggml_cuda_init: found 1 CUDA devices:\n  -x Device 0: a name, compute capability 8.6\n"
    )
    text = banner + (HELP_TEXTS / "b8247.txt").read_text(encoding="utf-8")
    assert parse_help(text) == _help("b8247")


def test_other_programs_are_no_llama_bench() -> None:
    assert not parse_help("usage: ls [OPTION]\n  -a, --all   do not ignore\n").is_llama_bench
    assert parse_help("").options == frozenset()
    assert parse_help("\x00\ufffd\n  -\n  --\n").options == frozenset()


def test_defaults_and_domains_that_are_not_there_are_none() -> None:
    assert default_value("verbose output") is None
    assert default_value("(default: )") == ""
    assert value_domain("<n> (default: 5)") is None
    assert default_threads(parse_help("usage: x\n  -t, --threads <n>\n")) is None


@pytest.mark.parametrize(
    ("text", "number", "commit"),
    [
        ("version: 0.6.0-dev (build 11434, commit sdist)\nbuilt with GNU 12.2.0", 11434, "sdist"),
        ("version: 0.6.0-dev (build 0, commit unknown)\nbuilt with GNU 12.2.0", None, None),
        ("version: 4748 (d7cfe1ff)\nbuilt with cc", 4748, "d7cfe1ff"),
        ("version: 0 (unknown)", None, None),
        ("version: something else", None, None),
        ("error: invalid parameter for argument: --version", None, None),
        ("", None, None),
    ],
)
def test_number_and_commit_are_read_and_unknown_is_none(
    text: str, number: int | None, commit: str | None
) -> None:
    found = parse_version(text)
    assert (found.number, found.commit) == (number, commit)


def test_first_line_of_the_version_is_kept() -> None:
    text = "ggml_cuda_init: found 1\nversion: 4748 (d7cfe1ff)\nbuilt with cc\n"
    assert parse_version(text).first_line == "version: 4748 (d7cfe1ff)"
    assert parse_version("nothing").first_line is None


def test_devices_are_named_as_flags_take_them() -> None:
    text = (
        "Available devices:\n"
        "  CUDA0: NVIDIA GeForce RTX 3090 (24124 MiB, 23000 MiB free)\n"
        "  Vulkan1: AMD Radeon (8192 MiB, 8000 MiB free)\n"
    )
    assert parse_devices(text) == ("CUDA0", "Vulkan1")
    assert parse_devices("Available devices:\n  (none)\n") == ()
    assert parse_devices("usage: llama-bench [options]\n") is None


def test_backends_are_told_by_devices_and_banners() -> None:
    assert backends_of(("CUDA0", "CUDA1", "Vulkan0"), "") == ("CUDA", "Vulkan")
    assert backends_of((), "") == ("CPU",)
    assert backends_of((), "ggml_cuda_init: failed to initialize CUDA: no device") == ("CUDA",)
    assert backends_of(None, "") is None
    assert backends_of(None, "ggml_vulkan: Found 1 Vulkan devices:") == ("Vulkan",)
