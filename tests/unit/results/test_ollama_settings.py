from __future__ import annotations

import pytest
from tests.unit.results.made import attempt, run_of

from llamasweep.results.contenders import contenders
from llamasweep.results.ollama_settings import OllamaSettings, ollama_settings
from llamasweep.sweep.parameters import Scalar


def told(path: str = "/m/a.gguf", **asked: Scalar) -> OllamaSettings:
    return of_label("Llama 8B/Q4_K_M", path, asked)


def of_label(label: str, path: str, asked: dict[str, Scalar]) -> OllamaSettings:
    (row,) = contenders(run_of([attempt(1, requested=asked, applied={}, model_label=label)]))
    return ollama_settings(row, model_path=path, n_context=4096)


def test_the_modelfile_says_what_ollama_takes() -> None:
    found = told(n_threads=6, n_ubatch=256, n_gpu_layers=20, main_gpu=1, load_mode="none")
    assert found.modelfile == (
        "FROM /m/a.gguf\nPARAMETER num_ctx 4096\nPARAMETER num_thread 6\nPARAMETER num_batch 256\n"
        "PARAMETER num_gpu 20\nPARAMETER main_gpu 1\nPARAMETER use_mmap false\n"
    )
    assert found.name == "llama-8b-q4_k_m"
    assert found.environment == (("OLLAMA_NUM_PARALLEL", "1"),)
    assert found.missing == ()


def test_a_window_that_was_measured_is_the_one_that_is_said() -> None:
    found = told(num_ctx=8192)
    assert "PARAMETER num_ctx 8192\n" in (found.modelfile or "")
    assert found.missing == ()


def test_flash_attention_and_the_cache_are_variables_of_the_server() -> None:
    found = told(flash_attn="on", type_k="q8_0", type_v="q8_0")
    assert dict(found.environment) == {
        "OLLAMA_NUM_PARALLEL": "1",
        "OLLAMA_FLASH_ATTENTION": "1",
        "OLLAMA_KV_CACHE_TYPE": "q8_0",
    }
    assert dict(told(flash_attn="off").environment)["OLLAMA_FLASH_ATTENTION"] == "0"
    assert "OLLAMA_FLASH_ATTENTION" not in dict(told(flash_attn="auto").environment)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ({"type_k": "q8_0"}, ("type_k",)),
        ({"type_k": "q8_0", "type_v": "f16"}, ("type_k", "type_v")),
        ({"type_k": "q5_1", "type_v": "q5_1"}, ("type_k", "type_v")),
        ({"n_batch": 2048, "n_ubatch": 512}, ("n_batch",)),
        ({"load_mode": "mlock"}, ("load_mode",)),
        ({"load_mode": "auto", "split_mode": "layer", "poll": 50}, ()),
        ({"split_mode": "row", "n_cpu_moe": 4, "poll": 0}, ("n_cpu_moe", "poll", "split_mode")),
    ],
)
def test_what_ollama_cannot_be_told_is_named(
    asked: dict[str, Scalar], missing: tuple[str, ...]
) -> None:
    assert of_label("m", "/m/a.gguf", asked).missing == missing


def test_layers_left_to_the_engine_are_left_to_ollama() -> None:
    assert "num_gpu" not in (told(n_gpu_layers=-1).modelfile or "")


@pytest.mark.parametrize(
    "path", ["/m/a\nPARAMETER stop x", "/m/\x1b[31m", "", "/m/\udcff", '"a"""b ']
)
def test_a_path_that_a_modelfile_cannot_name_has_none(path: str) -> None:
    assert told(path).modelfile is None


def test_a_path_with_odd_ends_is_quoted() -> None:
    assert (told(" /m/a ").modelfile or "").startswith('FROM """ /m/a """\n')
    assert (told('/m/a "b" c').modelfile or "").startswith('FROM /m/a "b" c\n')


@pytest.mark.parametrize("label", ["../..", "$(touch x)", "\u202e", "; rm"])
def test_the_name_is_one_plain_word(label: str) -> None:
    name = of_label(label, "/m/a.gguf", {}).name
    assert name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not name.startswith(("-", "."))
