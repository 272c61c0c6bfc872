"""Shapes of a few kilobytes for tests of the writer and its cache."""

from __future__ import annotations

from typing import Any

import pytest

from llamasweep.gguf import shapes, writer

_METADATA = {
    "general.architecture": "llama",
    "vocab_size": 512,
    "context_length": 256,
    "embedding_length": 256,
    "block_count": 2,
    "feed_forward_length": 512,
    "attention.head_count": 4,
    "attention.layer_norm_rms_epsilon": 1e-05,
}
_BODY: list[list[Any]] = [
    ["blk.{}.attn_norm.weight", [256], "0-1"],
    ["blk.{}.attn_v.weight", [256, 256], "0-1"],
    ["blk.{}.ffn_down.weight", [512, 256], "0-1"],
    ["blk.{}.ffn_up_exps.weight", [256, 64, 4], "0-1"],
    ["blk.{}.ssm_a", [1, 24], "0-1"],
    ["blk.{}.ssm_d", [1, 24], "0-1"],
    ["blk.{}.ssm_dt.bias", [24], "0-1"],
    ["blk.{}.exp_probs_b.bias", [4], "0-1"],
]
_TOP: list[list[Any]] = [["token_embd.weight", [256, 512]], ["output_norm.weight", [256]]]

TABLE: dict[str, Any] = {
    "micro": {
        "metadata": _METADATA,
        "tensors": [*_TOP, ["output.weight", [256, 512]], *_BODY],
    },
    "micro-tied": {"metadata": _METADATA, "tensors": [*_TOP, *_BODY]},
}


def use_micro_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the table of shapes, and let pools of blocks be small."""
    monkeypatch.setattr(shapes, "_table", lambda: TABLE)
    monkeypatch.setattr(writer, "_POOL_BYTES", 65_536)
