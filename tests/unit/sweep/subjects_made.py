"""Models and builds made of plain facts, for tests of the sweep room."""

from __future__ import annotations

from llamasweep.gguf.facts import ModelFacts, TensorInfo
from llamasweep.sweep.subjects import Build, Model, ModelSource

METADATA: tuple[tuple[str, object], ...] = (
    ("llama.attention.head_count", 32),
    ("llama.attention.head_count_kv", 8),
)


def model(
    label: str = "m",
    *,
    size_bytes: int = 1_000_000_000,
    n_params: int = 2_000_000_000,
    metadata: tuple[tuple[str, object], ...] = METADATA,
    tensors: tuple[TensorInfo, ...] | None = None,
    experts: tuple[int, int] = (0, 0),
    problem: str | None = None,
) -> Model:
    """32 layers, 8 KV heads of 128 elements: 131,072 bytes of f16 KV per token; one matrix unless told."""
    if tensors is None:
        whole = TensorInfo(
            name="blk.0.attn_q.weight",
            ne=(n_params // 2, 2),
            ggml_type="q4_K",
            n_bytes=size_bytes,
        )
        tensors = (whole,)
    facts = ModelFacts(
        arch="llama",
        name=label,
        quant="Q4_K - Medium",
        quant_short="Q4_K_M",
        n_params=n_params,
        size_bytes=size_bytes,
        n_layers=32,
        n_embd=4096,
        n_vocab=128_000,
        n_ctx_train=8192,
        n_expert=experts[0],
        n_expert_used=experts[1],
        head_size_k=128,
        head_size_v=128,
        tied_embeddings=False,
        is_synthetic=False,
        n_shards=1,
        tensors=tensors,
        metadata=metadata,
    )
    return Model(
        source=ModelSource(label=label, path=f"/models/{label}.gguf"),
        content_hash=label.encode().hex().ljust(32, "0")[:32],
        facts=None if problem else facts,
        problem=problem,
    )


def build(label: str = "one") -> Build:
    return Build(
        label=label,
        path=f"/builds/{label}/llama-bench",
        content_hash=label.encode().hex().ljust(32, "0")[:32],
        argv_prefix=(f"/builds/{label}/llama-bench",),
        options=frozenset(),
    )
