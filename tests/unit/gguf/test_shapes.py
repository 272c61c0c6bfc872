"""The table of shapes against what llama.cpp itself reports for the same models."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.shapes import planned_metadata, planned_tensors, read_shape, shape_names

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
TINY = [name for name in shape_names() if name.startswith("tiny-")]


def _rows(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _layers(text: str) -> list[int]:
    spans = [part.partition("-") for part in text.split(";") if part]
    return [
        layer for first, _, last in spans for layer in range(int(first), int(last or first) + 1)
    ]


MODELS = _rows("models.csv")


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row["model"])
def test_counts_and_bytes_equal_those_that_llama_bench_reports(row: dict[str, str]) -> None:
    tensors = planned_tensors(row["model"], row["quant"])

    assert len(tensors) == int(row["n_tensors"])
    assert sum(math.prod(t.ne) for t in tensors) == int(row["model_n_params"])
    assert sum(t.n_bytes for t in tensors) == int(row["model_size_bytes"])


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row["model"])
def test_every_tensor_has_the_type_that_llama_quantize_gives_it(row: dict[str, str]) -> None:
    expected = {
        entry["tensor"].format(layer): entry["ggml_type"]
        for entry in _rows("tensors.csv")
        if entry["model"] == row["model"]
        for layer in _layers(entry["layers"]) or [-1]
    }

    found = {t.name: t.ggml_type for t in planned_tensors(row["model"], row["quant"])}

    assert found == expected


def test_tensors_stand_in_the_order_of_their_layers() -> None:
    names = [t.name for t in planned_tensors("tiny-llama", "Q8_0")]

    layers = [int(name.split(".")[1]) for name in names if name.startswith("blk.")]
    assert layers == sorted(layers)
    assert names[:3] == ["token_embd.weight", "output_norm.weight", "output.weight"]


@pytest.mark.parametrize("name", TINY)
def test_tiny_shapes_have_ten_to_150_million_parameters(name: str) -> None:
    n_params = sum(math.prod(t.ne) for t in planned_tensors(name, "F16"))

    assert 10e6 < n_params < 150e6


@pytest.mark.parametrize("name", TINY)
def test_tiny_shapes_need_no_fallback_for_odd_rows(name: str) -> None:
    kinds = {t.ggml_type for t in planned_tensors(name, "Q4_K_M")}

    assert kinds <= {"f32", "q4_K", "q6_K"}


def test_the_tiny_shapes_cover_five_architectures_and_a_hybrid() -> None:
    archs = {read_shape(name).arch for name in TINY}

    assert archs >= {"llama", "qwen3", "qwen3moe", "gemma3", "qwen3next", "granitehybrid"}


def test_metadata_say_that_the_file_is_synthetic_and_which_quantisation_it_has() -> None:
    metadata = planned_metadata("qwen3-0.6b", "q4_k")

    assert metadata["llamasweep.synthetic"] is True
    assert metadata["general.name"] == "Qwen3-0.6B"
    assert metadata["general.file_type"] == 15
    assert metadata["qwen3.block_count"] == 28


def test_unknown_shape_names_the_nearest_known_one() -> None:
    with pytest.raises(ModelSynthError) as caught:
        planned_tensors("tiny-lama", "Q4_0")

    assert caught.value.hint == "Did you mean tiny-llama?"


def test_unknown_quantisation_is_refused() -> None:
    with pytest.raises(ModelSynthError, match="Q4_K_XXL"):
        planned_tensors("tiny-llama", "Q4_K_XXL")
