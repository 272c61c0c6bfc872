"""Whether a model's layers have what their arithmetic counts with, before a nought stands for what is absent. Pure.

llama.cpp refuses such files, or stops while it loads them; here they are refused by the key that lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import ModelFacts

if TYPE_CHECKING:
    from llamasweep.ceilings.architecture import Layer

WITHOUT_HEADS = frozenset({"deci"})
"""Architectures whose layers may leave attention out."""


def check_layers(facts: ModelFacts, layers: tuple[Layer, ...], state_elements: int) -> None:
    """Raises ModelFileError where a layer attends without heads, routes without experts, or is recurrent without state."""
    prefix = facts.arch[:64]
    if facts.arch not in WITHOUT_HEADS:
        for layer in layers:
            _check_heads(prefix, layer)
    for layer in layers:
        _check_experts(prefix, layer)
    if not any(layer.n_expert for layer in layers) and _has_expert_tensors(facts):
        raise ModelFileError(
            f"the file holds experts, and the key '{prefix}.expert_count' is missing"
        )
    if state_elements == 0 and any(layer.is_recurrent for layer in layers):
        raise ModelFileError(
            f"layers are recurrent, and the keys '{prefix}.ssm.…' (or shortconv) tell no state"
        )


def _check_heads(prefix: str, layer: Layer) -> None:
    if layer.reads_kv_of is None:
        return
    if layer.n_heads == 0 or layer.n_heads_kv == 0:
        key = "head_count" if layer.n_heads == 0 else "head_count_kv"
        raise ModelFileError(
            f"layer {layer.index} attends, and the key '{prefix}.attention.{key}' is missing or 0"
        )
    if layer.head_size_k == 0 or layer.head_size_v == 0:
        raise ModelFileError(f"layer {layer.index} attends with heads of no size")


def _check_experts(prefix: str, layer: Layer) -> None:
    if layer.n_expert and not 0 < layer.n_expert_used <= layer.n_expert:
        raise ModelFileError(
            f"layer {layer.index} has {layer.n_expert} experts, and the key '{prefix}.expert_used_count'"
            f" says {layer.n_expert_used}"
        )


def _has_expert_tensors(facts: ModelFacts) -> bool:
    return any("_exps." in tensor.name for tensor in facts.tensors)
