"""The shapes of known models: tensor names, sizes and metadata, from a table in the package.

Knows which tensors a model has and, with `mixture`, their types and bytes in a quantisation. Knows
no weights and no vocabulary, and opens no file but its own table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.facts import SYNTHETIC_KEY, ModelFacts, TensorInfo, facts_from
from llamasweep.gguf.ggml_types import file_type_by_short_name, tensor_bytes
from llamasweep.gguf.mixture import (
    SourceTensor,
    canonical_quant,
    choose_types,
    is_quantizable,
    read_traits,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """One known model. metadata: GGUF keys and values without vocabulary and file type.

    tensors: before quantising, in file order.
    """

    name: str
    metadata: Mapping[str, object]
    tensors: tuple[SourceTensor, ...]

    @property
    def arch(self) -> str:
        """`general.architecture`."""
        return str(self.metadata["general.architecture"])

    @property
    def n_vocab(self) -> int:
        """Rows of the token embedding."""
        return next(t.ne[1] for t in self.tensors if t.name == "token_embd.weight")


def shape_names() -> list[str]:
    """Names of all known shapes, the tiny ones first."""
    return list(_table())


def read_shape(name: str) -> Shape:
    """The shape of that name in any case. Raises ModelSynthError with the nearest known name."""
    by_folded = {known.casefold(): known for known in _table()}
    known = by_folded.get(name.casefold())
    if known is None:
        import difflib  # noqa: PLC0415  (only a name that is not known needs it)

        near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
        hint = f"Did you mean {by_folded[near[0]]}?" if near else None
        raise ModelSynthError(
            f"unknown shape {name!r}", hint=hint or f"Known are: {', '.join(_table())}."
        )
    return _build_shape(known)


def planned_tensors(shape: str, quant: str) -> list[TensorInfo]:
    """All tensors of this shape, in file order, typed as llama-quantize would type them.

    Raises ModelSynthError for an unknown shape or quantisation.
    """
    known = read_shape(shape)
    types = choose_types(known.tensors, quant, read_traits(known.metadata))
    return [
        TensorInfo(
            name=tensor.name,
            ne=tensor.ne,
            ggml_type=types[tensor.name],
            n_bytes=tensor_bytes(types[tensor.name], tensor.ne),
        )
        for tensor in known.tensors
    ]


def planned_metadata(shape: str, quant: str) -> dict[str, object]:
    """The metadata that a generated file will carry, without its vocabulary."""
    known = read_shape(shape)
    entry = file_type_by_short_name(canonical_quant(quant))
    if entry is None:
        raise ModelSynthError(f"no file type is known for {quant!r}")
    return {
        **known.metadata,
        "general.name": known.name,
        "general.file_type": entry.file_type,
        "general.quantization_version": 2,
        SYNTHETIC_KEY: True,
    }


def planned_facts(shape: str, quant: str) -> ModelFacts:
    """What a generated file would say of itself. Raises ModelSynthError for an unknown shape or quantisation."""
    metadata = planned_metadata(shape, quant)
    return facts_from(
        {key: tuple(v) if isinstance(v, list) else v for key, v in metadata.items()},
        planned_tensors(shape, quant),
        array_lengths={},
    )


@cache
def _table() -> dict[str, Any]:
    text = Path(__file__).with_name("shapes.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@cache
def _build_shape(name: str) -> Shape:
    entry = _table()[name]
    arch = entry["metadata"]["general.architecture"]
    metadata = {
        key if key.startswith("general.") else f"{arch}.{key}": value
        for key, value in entry["metadata"].items()
    }
    placed = []
    for order, (template, ne, *rest) in enumerate(entry["tensors"]):
        ggml_type = rest[1] if len(rest) > 1 else _converted_type(template, ne)
        for layer in _layers(rest[0] if rest else "") or [-1]:
            tensor = SourceTensor(name=template.format(layer), ne=tuple(ne), ggml_type=ggml_type)
            placed.append((layer, order, tensor))
    placed.sort(key=lambda place: place[:2])
    return Shape(name=name, metadata=metadata, tensors=tuple(tensor for _, _, tensor in placed))


def _converted_type(name: str, ne: list[int]) -> str:
    return "f16" if is_quantizable(name, ne) else "f32"


def _layers(text: str) -> list[int]:
    """[0, 1, 2, 5] from "0-2;5"."""
    layers: list[int] = []
    for part in filter(None, text.split(";")):
        first, _, last = part.partition("-")
        layers.extend(range(int(first), int(last or first) + 1))
    return layers
