"""Installed builds are what they say: numbers, flags as recorded, and quantised models that run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.e2e.engines import BUILDS, bench_rows, find_program, run_program

from llamasweep.builds import install as installation
from llamasweep.builds.help_text import parse_help
from llamasweep.builds.probe import probe
from llamasweep.builds.registry import Registry
from llamasweep.gguf.synth import cached_model

HELP_TEXTS = Path(__file__).parents[1] / "golden" / "help"


@pytest.mark.needs_llama
@pytest.mark.parametrize("number", BUILDS)
def test_help_of_a_real_build_is_the_recorded_one(number: str) -> None:
    """The default of `-t` is the machine's; the program's own path stands in the first line."""
    program = find_program(number, "llama-bench")
    recorded = parse_help((HELP_TEXTS / f"b{number}.txt").read_text(encoding="utf-8"))
    said = run_program([str(program), "--help"]).stdout
    found = parse_help(re.sub(r"(-t, --threads <n> +\(default: )\d+", r"\g<1>2", said))
    assert found == recorded


@pytest.mark.needs_llama
@pytest.mark.parametrize("number", BUILDS)
def test_a_real_build_is_probed_whole(number: str) -> None:
    build = probe(find_program(number, "llama-bench"))
    assert build.devices is not None
    assert build.backends is not None
    assert build.default_threads is not None
    assert build.number == (11434 if number == "11434" else None)  # 10488 has no --version yet


@pytest.mark.needs_llama
@pytest.mark.parametrize("number", BUILDS)
def test_a_real_build_runs_a_quantised_model_and_tells_its_number(number: str) -> None:
    rows = bench_rows(
        number, cached_model("tiny-llama", "Q4_0"), *["-p", "64", "-n", "4", "-r", "1"]
    )
    assert [row["build_number"] for row in rows] == [int(number)] * 2
    assert [row["build_commit"] for row in rows] == ["sdist"] * 2


@pytest.mark.needs_network
def test_the_package_index_lists_hundreds_of_versions(tmp_path: Path) -> None:
    numbers = installation.available(Registry(tmp_path))
    assert {11434, 10488, 9093} <= set(numbers)
    assert len(numbers) > 250
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.needs_llama
@pytest.mark.needs_network
@pytest.mark.long
def test_a_build_is_installed_from_nothing(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    build = installation.install(installation.make_plan(11434, backend="cpu", registry=registry))
    assert (build.label, build.number, build.commit) == ("b11434", 11434, "sdist")
    assert len(build.options) == 80
    assert registry.get("11434") == build
    model = cached_model("tiny-llama", "Q4_0")
    done = run_program([build.path, "-m", str(model), "-p", "8", "-n", "1", "-r", "1"])
    assert done.returncode == 0, done.stderr
