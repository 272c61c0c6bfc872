"""How many bytes a model moves and needs, roughly: for predictions and a first memory check. Pure.

Weights plus an f16-or-quantised KV cache of equal layers. Recurrent state, latent attention and
compute buffers are not modelled, and the sentences say so; the exact version belongs to
`ceilings`.
"""

from __future__ import annotations

import math

from llamasweep.gguf.facts import ModelFacts
from llamasweep.sweep.blocks import values_of
from llamasweep.sweep.cell import Block
from llamasweep.sweep.subjects import Model
from llamasweep.units import format_bytes

KV_BYTES_PER_ELEMENT = {
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
"""ggml's block of 32 elements: 4, 5 or 8 bits each and the f16 scale (and minimum)."""

_EXPERTS = "_exps."


def active_bytes(facts: ModelFacts) -> float:
    """Bytes of weights read per generated token: all, with experts counted as used / all of them."""
    routed = sum(t.n_bytes for t in facts.tensors if _EXPERTS in t.name)
    return facts.size_bytes - routed * (1 - _used_share(facts))


def active_params(facts: ModelFacts) -> float:
    """Parameters that take part in one token, counted likewise."""
    routed = sum(math.prod(t.ne) for t in facts.tensors if _EXPERTS in t.name)
    return facts.n_params - routed * (1 - _used_share(facts))


def _used_share(facts: ModelFacts) -> float:
    if not facts.n_expert or not facts.n_expert_used:
        return 1.0
    return min(1.0, facts.n_expert_used / facts.n_expert)


def unmodelled_context(facts: ModelFacts) -> str | None:
    """Why the KV cache of this model is not modelled here, None if it is."""
    keys = {key.removeprefix(f"{facts.arch}.") for key, _ in facts.metadata}
    if any(key.startswith(("ssm.", "wkv.")) or key == "token_shift_count" for key in keys):
        return "its recurrent state"
    if "attention.kv_lora_rank" in keys:
        return "its latent attention"
    if facts.n_layers is None or facts.head_size_k is None or facts.head_size_v is None:
        return "its heads"
    return None if _kv_heads(facts) else "its heads"


def _kv_heads(facts: ModelFacts) -> int | None:
    """KV heads of all layers together, None where the file does not tell."""
    metadata = dict(facts.metadata)
    heads = metadata.get(f"{facts.arch}.attention.head_count_kv")
    if heads is None:
        heads = metadata.get(f"{facts.arch}.attention.head_count")
    if isinstance(heads, int) and not isinstance(heads, bool):
        return heads * (facts.n_layers or 0)
    if isinstance(heads, list | tuple) and all(isinstance(h, int) for h in heads):
        return sum(int(h) for h in heads)
    return None


def kv_bytes_per_token(facts: ModelFacts, type_k: str, type_v: str) -> float | None:
    """Formula: sum of KV heads over layers x (head size K x bytes of K + head size V x bytes of V).

    An upper bound where layers have a sliding window. None where `unmodelled_context` has a reason.
    """
    if unmodelled_context(facts) is not None:
        return None
    k = (facts.head_size_k or 0) * KV_BYTES_PER_ELEMENT.get(type_k, 2.0)
    v = (facts.head_size_v or 0) * KV_BYTES_PER_ELEMENT.get(type_v, 2.0)
    return (_kv_heads(facts) or 0) * (k + v)


def memory_warning(model: Model, blocks: list[Block], available_bytes: int | None) -> str | None:
    """One sentence if a model with its largest context will not fit, or if that is not known; None if it fits.

    Largest context: n_prompt + n_gen + n_depth over the blocks, as llama-bench sizes it; KV in the
    largest type asked for. available_bytes: of the memory that holds the weights, None = unknown.
    """
    facts = model.facts
    if facts is None or available_bytes is None or not blocks:
        return None
    label = model.source.label
    reason = unmodelled_context(facts)
    if facts.size_bytes > available_bytes:
        return (
            f"{label}: its weights alone ({format_bytes(facts.size_bytes)}) are more than the "
            f"{format_bytes(available_bytes)} that are free"
        )
    if reason is not None:
        return f"{label}: memory for the context is not modelled ({reason}, {facts.arch})"
    context_bytes = max(_context_bytes(facts, block) for block in blocks)
    if facts.size_bytes + context_bytes <= available_bytes:
        return None
    return (
        f"{label}: weights {format_bytes(facts.size_bytes)} + KV cache of the deepest cell "
        f"{format_bytes(round(context_bytes))} are more than the {format_bytes(available_bytes)} "
        "that are free (compute buffers not counted)"
    )


def _context_bytes(facts: ModelFacts, block: Block) -> float:
    n_ctx = max(t.n_prompt + t.n_gen for t in block.tests)
    n_ctx += max(values_of(block, "n_depth") or (0,))
    bytes_per_token: float = max(
        kv_bytes_per_token(facts, type_k, type_v) or 0.0
        for type_k in values_of(block, "type_k") or ("f16",)
        for type_v in values_of(block, "type_v") or ("f16",)
    )
    return float(n_ctx) * bytes_per_token
