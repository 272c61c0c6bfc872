"""Writes GGUF heads for tests: by hand, independent of what the package itself writes."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llamasweep.gguf.ggml_types import tensor_bytes, type_by_name

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
Tensor = tuple[str, tuple[int, ...], str]


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def _array(value: Sequence[object]) -> bytes:
    head = struct.pack("<I", 9)
    if value and isinstance(value[0], str):
        return (
            head + struct.pack("<IQ", 8, len(value)) + b"".join(text(str(entry)) for entry in value)
        )
    if value and isinstance(value[0], bool):
        return head + struct.pack(f"<IQ{len(value)}?", 7, len(value), *value)
    return head + struct.pack(f"<IQ{len(value)}i", 5, len(value), *value)


def typed(value: object) -> bytes:
    """A value with its type before it: bool, u32, f32, string, or an array of bools, i32, strings."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    assert isinstance(value, (list, tuple))
    return _array(value)


def gguf_head(
    metadata: dict[str, Any], tensors: Sequence[Tensor], *, version: int = 3, alignment: int = 32
) -> tuple[bytes, int]:
    """The head of a file, padded, and the number of bytes that its tensor data takes."""
    parts = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(metadata))]
    parts += [text(key) + typed(value) for key, value in metadata.items()]
    offset = 0
    for name, ne, kind in tensors:
        parts.append(text(name) + struct.pack(f"<I{len(ne)}Q", len(ne), *ne))
        parts.append(struct.pack("<IQ", type_by_name(kind).type_id, offset))
        offset += -(-tensor_bytes(kind, ne) // alignment) * alignment
    head = b"".join(parts)
    return head + bytes(-len(head) % alignment), offset


def write_sparse(path: Path, head: bytes, n_data_bytes: int) -> Path:
    """The head, and a hole where the weights would be."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + n_data_bytes)
    return path


def layers_of(text_of_ranges: str) -> list[int]:
    """`0;2;4-6` -> [0, 2, 4, 5, 6]."""
    layers: list[int] = []
    for part in text_of_ranges.split(";"):
        first, _, last = part.partition("-")
        layers.extend(range(int(first), int(last or first) + 1))
    return layers


def golden_tensors() -> dict[str, list[Tensor]]:
    tensors: dict[str, list[Tensor]] = {}
    with (GOLDEN / "tensors.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            ne = tuple(int(n) for n in row["shape_ne0_first"].split("x"))
            names = (
                [row["tensor"].replace("{}", str(i)) for i in layers_of(row["layers"])]
                if row["layers"]
                else [row["tensor"]]
            )
            tensors.setdefault(row["model"], []).extend((n, ne, row["ggml_type"]) for n in names)
    return tensors


def golden_models() -> dict[str, tuple[dict[str, Any], list[Tensor]]]:
    """The thirty reference models: name -> (metadata, tensors)."""
    metadata = json.loads((GOLDEN / "metadata.json").read_text(encoding="utf-8"))
    tensors = golden_tensors()
    return {name: (metadata[name], tensors[name]) for name in metadata}


TINY_METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "general.file_type": 15,
    "llama.block_count": 1,
    "llama.embedding_length": 256,
    "llama.attention.head_count": 4,
    "llama.context_length": 512,
    "tokenizer.ggml.tokens": ["a", "b", "", "é"],
}
TINY_TENSORS: tuple[Tensor, ...] = (
    ("token_embd.weight", (256, 4), "q4_K"),
    ("blk.0.attn_q.weight", (256, 256), "q4_K"),
    ("output_norm.weight", (256,), "f32"),
)


def write_tiny(
    path: Path,
    *,
    metadata: dict[str, Any] | None = None,
    tensors: Sequence[Tensor] = TINY_TENSORS,
    cut_bytes: int = 0,
    version: int = 3,
) -> Path:
    """A small model with a sparse data section; keyword arguments change it."""
    head, n_data_bytes = gguf_head({**TINY_METADATA, **(metadata or {})}, tensors, version=version)
    return write_sparse(path, head, n_data_bytes - cut_bytes)
