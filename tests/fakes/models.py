"""Tiny model files for the fake engine: valid GGUF of a few KB that says how the fake is to behave.

Written here byte by byte, so that tests of the reader and of the synthesiser do not lean on each other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

N_EMBD, N_LAYERS, N_VOCAB = 32, 2, 8


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _pair(key: str, value: str | int | float) -> bytes:
    if isinstance(value, str):
        return _text(key) + struct.pack("<I", 8) + _text(value)
    if isinstance(value, int):
        return _text(key) + struct.pack("<II", 4, value)
    return _text(key) + struct.pack("<If", 6, value)


def _tensors() -> list[tuple[str, tuple[int, ...], int]]:
    """(name, ne, ggml type): a llama of two layers, weights F16 and norms F32."""
    e = N_EMBD
    found: list[tuple[str, tuple[int, ...], int]] = [
        ("token_embd.weight", (e, N_VOCAB), 1),
        ("output_norm.weight", (e,), 0),
        ("output.weight", (e, N_VOCAB), 1),
    ]
    for layer in range(N_LAYERS):
        prefix = f"blk.{layer}."
        found += [(prefix + f"{name}_norm.weight", (e,), 0) for name in ("attn", "ffn")]
        found += [(prefix + f"attn_{name}.weight", (e, e), 1) for name in ("q", "k", "v", "output")]
        found += [(prefix + f"ffn_{name}.weight", (e, e), 1) for name in ("gate", "up", "down")]
    return found


def gguf_bytes(
    behaviour: Mapping[str, Any] | None = None, *, arch: str = "llama", name: str = "fake"
) -> bytes:
    """A whole GGUF file. behaviour: what the fake reads from the key `fake.behaviour` (README.md)."""
    pairs: dict[str, str | int | float] = {
        "general.architecture": arch,
        "general.name": name,
        "general.file_type": 1,
        f"{arch}.block_count": N_LAYERS,
        f"{arch}.context_length": 4096,
        f"{arch}.embedding_length": N_EMBD,
        f"{arch}.feed_forward_length": N_EMBD,
        f"{arch}.attention.head_count": 2,
        f"{arch}.attention.head_count_kv": 2,
        f"{arch}.attention.key_length": 16,
        f"{arch}.attention.value_length": 16,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{arch}.vocab_size": N_VOCAB,
        "tokenizer.ggml.model": "none",
        "fake.behaviour": json.dumps(dict(behaviour or {})),
    }
    tensors = _tensors()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(_pair(key, value) for key, value in pairs.items())
    data = b""
    for tensor, ne, kind in tensors:
        n_bytes = (2 if kind == 1 else 4) * (ne[0] * (ne[1] if len(ne) > 1 else 1))
        head += _text(tensor) + struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, len(data))
        data += bytes(n_bytes) + bytes(-n_bytes % 32)
    return head + bytes(-len(head) % 32) + data


def write_model(
    path: Path,
    behaviour: Mapping[str, Any] | None = None,
    *,
    arch: str = "llama",
    name: str | None = None,
) -> Path:
    """Write a model file; its folder is made. Two behaviours give two contents, so two cell_ids."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf_bytes(behaviour, arch=arch, name=name or path.stem))
    return path


def write_truncated(path: Path) -> Path:
    """A model file whose tensor data ends early: the header is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf_bytes(name=path.stem)[:-2048])
    return path


def behave(model: Path, behaviour: Mapping[str, Any]) -> None:
    """Change how an existing model makes the fake behave, without changing its content."""
    model.with_name(model.name + ".fake.json").write_text(json.dumps(dict(behaviour)))
