"""llama-bench beside Ollama: told what Ollama applied, and only what the build can say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.engines.made import PG, PP, TG, build, cell

from llamasweep.drivers.same_weights import axes_of, bench_argv, run_bench
from llamasweep.engines.ollama import bench_words, read_bench
from llamasweep.sweep.parameters import Scalar


def test_what_ollama_applied_goes_before_what_was_asked() -> None:
    applied: dict[str, Scalar] = {
        "n_threads": 1,
        "n_batch": 512,
        "flash_attn": 1,
        "type_k": "q8_0",
        "load_mode": "none",
    }
    found = axes_of(cell(PP, n_threads=2, n_ubatch=64, n_gpu_layers=-1), applied)
    assert found == {
        "n_threads": 1, "n_batch": 512, "n_ubatch": 64, "flash_attn": "on", "type_k": "q8_0",
    }  # fmt: skip


def test_a_generation_has_the_same_tokens_before_it() -> None:
    assert axes_of(cell(TG), {})["n_depth"] == 16
    assert axes_of(cell(TG, n_depth=512), {})["n_depth"] == 512
    assert "n_depth" not in axes_of(cell(PG), {})
    assert axes_of(cell(PP, flash_attn="auto"), {}) == {}


@pytest.mark.parametrize("name", ["b11434", "b4748"])
def test_the_call_says_only_what_the_build_knows(name: str) -> None:
    on = read_bench(bench_words(build(name)) or {})
    axes: dict[str, Scalar] = {"n_threads": 1, "n_depth": 16, "flash_attn": "on"}
    argv = bench_argv(on, "/blob", TG, axes, 3)
    assert argv[:7] == ("/b/llama-bench", "-m", "/blob", "-o", "jsonl", "-r", "3")
    assert {word for word in argv[1:] if word.startswith("-")} <= build(name).options
    assert ("-d" in argv) == build(name).knows("-d")


def test_a_program_that_gives_no_row_gives_no_columns(tmp_path: Path) -> None:
    assert run_bench(build(), ("/bin/sh", "-c", "exit 0"), TG, tmp_path, lambda: None) is None
    row = '{"n_prompt": 0, "n_gen": 8, "samples_ns": [80000000, 100000000, 160000000]}'
    said: list[int] = []
    script = f"echo 'llama-bench: benchmark 1/1: generation run 1/3' >&2; echo '{row}'"
    argv = ("/bin/sh", "-c", script, "-t", "2", "-o", "jsonl", "-v")
    found = run_bench(build(), argv, TG, tmp_path, lambda: said.append(1))
    assert found is not None
    assert found["same_weights_tps"] == pytest.approx(80)
    assert (found["same_weights_min_tps"], found["same_weights_max_tps"]) == (50, 100)
    assert found["same_weights_build"] == "b11434"
    assert "-t 2" in found["same_weights_settings"]
    assert "jsonl" not in found["same_weights_settings"]
    assert said == [1]
    assert run_bench(build(), (*argv[:2], script + "; exit 3"), TG, tmp_path, lambda: None) is None
