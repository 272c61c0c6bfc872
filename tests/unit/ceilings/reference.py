"""The thirty reference models as facts, without a file, and the tables that llama.cpp filled in for them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache

from tests.unit.gguf.headers import GOLDEN, golden_models

from llamasweep.gguf.facts import ModelFacts, TensorInfo, facts_from
from llamasweep.gguf.ggml_types import tensor_bytes
from llamasweep.gguf.shapes import planned_metadata, planned_tensors


def facts_of(
    metadata: Mapping[str, object], tensors: list[tuple[str, tuple[int, ...], str]]
) -> ModelFacts:
    """Facts of a model that exists only as metadata and a tensor list."""
    return facts_from(
        {k: tuple(v) if isinstance(v, list) else v for k, v in metadata.items()},
        [
            TensorInfo(name=name, ne=ne, ggml_type=kind, n_bytes=tensor_bytes(kind, ne))
            for name, ne, kind in tensors
        ],
        array_lengths={},
    )


@cache
def reference_models() -> dict[str, ModelFacts]:
    """Name -> facts of the thirty reference models."""
    return {name: facts_of(*model) for name, model in golden_models().items()}


@cache
def quantised(shape: str, quant: str) -> ModelFacts:
    """A reference shape in another quantisation."""
    return facts_from(
        {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in planned_metadata(shape, quant).items()
        },
        planned_tensors(shape, quant),
        array_lengths={},
    )


def rows(file: str) -> list[dict[str, str]]:
    """A table of the reference data."""
    with (GOLDEN / file).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))
