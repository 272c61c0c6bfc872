"""How many bytes a model moves and needs, for predictions and a first memory check. Pure.

The arithmetic is that of `ceilings`. Where it does not cover a model, predictions fall back on the
file's size, because an evening still has to be ordered; the memory check says that it cannot tell.
"""

from __future__ import annotations

import math
from itertools import product

from llamasweep.ceilings.flop import attention_flop, matrix_flop
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory, kv_read_bytes
from llamasweep.ceilings.memory_fit import compute_bytes_upper
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.errors import ModelFileError, NotModelledError
from llamasweep.gguf.facts import ModelFacts
from llamasweep.sweep.blocks import values_of
from llamasweep.sweep.cell import Block
from llamasweep.sweep.subjects import Model
from llamasweep.units import format_bytes

_EXPERTS = "_exps."
_PROMPT = 512


def token_bytes(facts: ModelFacts, n_depth: int) -> float:
    """Bytes read per generated token at a depth: active weights and f16 context.

    Where the model is not modelled: its size with experts counted as used / all, without context.
    """
    if _not_modelled(facts) is None:
        return weight_traffic(facts).active_bytes + context_bytes(facts, n_depth)
    routed = sum(t.n_bytes for t in facts.tensors if _EXPERTS in t.name)
    return facts.size_bytes - routed * (1 - _used_share(facts))


def prompt_flop(facts: ModelFacts, n_depth: int) -> float:
    """FLOP per prompt token at a depth; 2 x active parameters where the model is not modelled."""
    if _not_modelled(facts) is None:
        matrices = matrix_flop(facts, _PROMPT, 1) / _PROMPT
        return matrices + attention_flop(facts, n_depth, 1)
    routed = sum(math.prod(t.ne) for t in facts.tensors if _EXPERTS in t.name)
    return 2.0 * (facts.n_params - routed * (1 - _used_share(facts)))


def context_bytes(facts: ModelFacts, n_depth: int) -> float:
    """Bytes of f16 context behind n_depth tokens, 0 where the model is not modelled."""
    if n_depth == 0 or _not_modelled(facts) is not None:
        return 0.0
    return kv_read_bytes(facts, ContextSettings(n_ctx=n_depth), n_depth - 1, 1)


def _not_modelled(facts: ModelFacts) -> str | None:
    """Why the exact arithmetic says nothing of this model, None where it does."""
    try:
        weight_traffic(facts)
    except (NotModelledError, ModelFileError) as error:
        return error.message
    return None


def _used_share(facts: ModelFacts) -> float:
    if not facts.n_expert or not facts.n_expert_used:
        return 1.0
    return min(1.0, facts.n_expert_used / facts.n_expert)


def memory_warning(model: Model, blocks: list[Block], ram_bytes: int | None) -> str | None:
    """One sentence if a model with its largest context will not fit, or if that is not known; None if it fits.

    Largest context: n_prompt + n_gen + n_depth over the blocks, as llama-bench sizes it, in the
    largest types asked for, with the bound on the compute buffer of the largest n_ubatch.
    ram_bytes: of the machine, None = unknown. Memory of GPUs is not looked at.
    """
    facts = model.facts
    if facts is None or ram_bytes is None or not blocks:
        return None
    label = model.source.label
    reason = _not_modelled(facts)
    weights = facts.size_bytes if reason else weight_traffic(facts).loaded_bytes
    if weights > ram_bytes:
        return (
            f"{label}: its weights alone ({format_bytes(weights)}) are more than the "
            f"{format_bytes(ram_bytes)} of RAM here"
        )
    if reason is not None:
        return f"{label}: what its context takes is not known ({reason})"
    try:
        context, compute = max(_context_and_compute(facts, block) for block in blocks)
    except ModelFileError as error:
        return f"{label}: what its context takes is not known ({error.message})"
    if weights + context + compute <= ram_bytes:
        return None
    return (
        f"{label}: weights {format_bytes(weights)} + KV cache of the deepest cell "
        f"{format_bytes(context)} + up to {format_bytes(compute)} to compute in are more than the "
        f"{format_bytes(ram_bytes)} of RAM here"
    )


def _context_and_compute(facts: ModelFacts, block: Block) -> tuple[int, int]:
    """The most that a block's cells take; settings that llama.cpp refuses take nothing."""
    n_ctx = max(t.n_prompt + t.n_gen for t in block.tests)
    n_ctx += max(values_of(block, "n_depth") or (0,))
    most = (0, 0)
    for type_k, type_v, flash_attn in product(
        values_of(block, "type_k") or ("f16",),
        values_of(block, "type_v") or ("f16",),
        values_of(block, "flash_attn") or ("auto",),
    ):
        settings = ContextSettings(
            n_ctx=n_ctx,
            n_ubatch=max(values_of(block, "n_ubatch") or (512,)),
            type_k=type_k,
            type_v=type_v,
            flash_attn=flash_attn != "off",
        )
        try:
            stored = context_memory(facts, settings).stored_bytes
        except NotModelledError:
            continue
        most = max(most, (stored, compute_bytes_upper(facts, settings)))
    return most
