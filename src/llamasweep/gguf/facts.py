"""What a model is: architecture, sizes, heads, experts, quantisation, from GGUF metadata. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorInfo:
    """One tensor of a GGUF file: ne is the shape with the contiguous dimension first."""

    name: str
    ne: tuple[int, ...]
    ggml_type: str
    n_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFacts:
    """What the header says.

    arch: `general.architecture`. name: `general.name`, None if absent. quant: what `general.file_type` names,
    as llama-bench prints it ("Q4_K - Medium"); from the commonest tensor type when the key is absent.
    quant_short: as people write it ("Q4_K_M"). n_params, size_bytes: sums over all tensors
    of all shards, equal to llama-bench's model_n_params and model_size. token_embd_bytes and has_output: for
    active bytes. head_size_k, head_size_v: elements per head, None where unknown (recurrent only).
    is_synthetic: written by llamasweep. metadata: scalar keys, and arrays of numbers up to 4,096 long, so that later rooms need not open the
    file again; vocabularies are not in it.
    """

    arch: str
    name: str | None
    quant: str
    quant_short: str
    n_params: int
    size_bytes: int
    n_layers: int | None
    n_embd: int | None
    n_vocab: int | None
    n_ctx_train: int | None
    n_expert: int
    n_expert_used: int
    head_size_k: int | None
    head_size_v: int | None
    tied_embeddings: bool
    is_synthetic: bool
    n_shards: int
    tensors: tuple[TensorInfo, ...]
    metadata: tuple[tuple[str, object], ...]

    @property
    def bits_per_weight(self) -> float:
        """size_bytes * 8 / n_params."""
        return self.size_bytes * 8 / self.n_params
