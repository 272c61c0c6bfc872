"""What a model is: architecture, sizes, heads, experts, quantisation, from GGUF metadata. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from llamasweep.errors import ModelFileError
from llamasweep.gguf.ggml_types import file_type, file_type_by_short_name

SYNTHETIC_KEY = "llamasweep.synthetic"
"""Metadata key, a bool, in every model that llamasweep wrote."""


class TensorInfo(NamedTuple):
    """One tensor of a GGUF file: ne is the shape with the contiguous dimension first."""

    name: str
    ne: tuple[int, ...]
    ggml_type: str
    n_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFacts:
    """What the header says.

    arch: `general.architecture`. name: `general.name`, None if absent. quant: what
    `general.file_type` names, as llama-bench prints it ("Q4_K - Medium"); from the commonest tensor
    type when the key is absent. quant_short: as people write it ("Q4_K_M"). n_params, size_bytes:
    sums over all tensors of all shards, equal to llama-bench's model_n_params and model_size.
    head_size_k, head_size_v: elements per head, None where unknown (recurrent only). n_expert,
    n_expert_used: of the widest layer, 0 in a dense model. is_synthetic: written by llamasweep.
    metadata: scalar keys, and arrays of numbers up to 4,096 long, so that later rooms need not open
    the file again; vocabularies are not in it.
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


def facts_from(
    metadata: Mapping[str, object],
    tensors: Sequence[TensorInfo],
    *,
    array_lengths: Mapping[str, int],
    n_shards: int = 1,
) -> ModelFacts:
    """The facts of a model, from its metadata and its tensors (of all shards).

    array_lengths: of arrays that the metadata leaves out, `tokenizer.ggml.tokens` above all. Raises
    ModelFileError where the architecture or the weights are missing.
    """
    arch = _text(metadata, "general.architecture")
    if not arch:
        raise ModelFileError("the key 'general.architecture' is missing")
    n_params = sum(math.prod(tensor.ne) for tensor in tensors)
    if n_params == 0:
        raise ModelFileError("the file holds no weights (a vocabulary only)")
    keys = _ArchKeys(metadata, arch)
    n_embd = keys.number("embedding_length")
    quant, quant_short = quantisation(metadata, tensors)
    head_size_k, head_size_v = _head_sizes(keys, n_embd)
    names = {tensor.name for tensor in tensors}
    return ModelFacts(
        arch=arch,
        name=_text(metadata, "general.name"),
        quant=quant,
        quant_short=quant_short,
        n_params=n_params,
        size_bytes=sum(tensor.n_bytes for tensor in tensors),
        n_layers=keys.number("block_count"),
        n_embd=n_embd,
        n_vocab=_n_vocab(keys, tensors, array_lengths),
        n_ctx_train=keys.number("context_length"),
        n_expert=_n_of_experts(keys, "expert_count"),
        n_expert_used=_n_of_experts(keys, "expert_used_count"),
        head_size_k=head_size_k,
        head_size_v=head_size_v,
        tied_embeddings="token_embd.weight" in names and "output.weight" not in names,
        is_synthetic=metadata.get(SYNTHETIC_KEY) is True,
        n_shards=n_shards,
        tensors=tuple(tensors),
        metadata=tuple(metadata.items()),
    )


def quantisation(metadata: Mapping[str, object], tensors: Sequence[TensorInfo]) -> tuple[str, str]:
    """What the file's quantisation is called: (as llama-bench prints it, as people write it).

    Without `general.file_type` llama.cpp takes the type that most tensors have and prints
    "(guessed) " before it; people are told the type that most weights have.
    """
    number = _number(metadata.get("general.file_type"))
    if number is not None:
        known = file_type(number)
        if known is not None:
            return known.llama_bench_name, known.short_name
        return "unknown, may not work", _short_of(_heaviest_type(tensors))
    guess = file_type_by_short_name(_GUESSED_SHORT_NAMES.get(_commonest_type(tensors), "F32"))
    assert guess is not None  # noqa: S101  (the tables are ours)
    return f"(guessed) {guess.llama_bench_name}", _short_of(_heaviest_type(tensors))


_GUESSED_SHORT_NAMES = {
    **{
        name: name.upper()
        for name in (
            *("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q1_0", "q2_0"),
            *("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"),
            *("iq4_nl", "iq4_xs", "tq1_0", "tq2_0", "nvfp4"),
        )
    },
    **{"q2_K": "Q2_K", "q3_K": "Q3_K_M", "q4_K": "Q4_K_M", "q5_K": "Q5_K_M", "q6_K": "Q6_K"},
}
"""Tensor type -> the file type that llama.cpp guesses from it."""


def _short_of(ggml_type: str) -> str:
    return _GUESSED_SHORT_NAMES.get(ggml_type, ggml_type.upper())


def _heaviest_type(tensors: Sequence[TensorInfo]) -> str:
    n_elements: Counter[str] = Counter()
    for tensor in tensors:
        n_elements[tensor.ggml_type] += math.prod(tensor.ne)
    return n_elements.most_common(1)[0][0]


def _commonest_type(tensors: Sequence[TensorInfo]) -> str:
    """As llama.cpp counts: by layer and name, the first type to reach the highest count."""
    counts: Counter[str] = Counter()
    best, best_count = "f32", 0
    for tensor in sorted(tensors, key=lambda t: (_layer(t.name), t.name)):
        counts[tensor.ggml_type] += 1
        if counts[tensor.ggml_type] > best_count:
            best, best_count = tensor.ggml_type, counts[tensor.ggml_type]
    return best


def _layer(name: str) -> int:
    match = re.match(r"blk\.(\d{1,9})\.", name)
    return int(match[1]) if match else -1


class _ArchKeys:
    """The keys of one architecture; what is absent or of the wrong kind is None."""

    def __init__(self, metadata: Mapping[str, object], arch: str) -> None:
        self._metadata = metadata
        self._arch = arch

    def number(self, key: str) -> int | None:
        """A number; the first one of an array."""
        value = self._metadata.get(f"{self._arch}.{key}")
        if isinstance(value, tuple):
            value = value[0] if value else None
        return _number(value)

    def largest(self, key: str) -> int | None:
        """A number; the largest one of an array."""
        value = self._metadata.get(f"{self._arch}.{key}")
        numbers = [_number(entry) for entry in (value if isinstance(value, tuple) else (value,))]
        return max((n for n in numbers if n is not None), default=None)


def _n_of_experts(keys: _ArchKeys, key: str) -> int:
    """The largest number of any layer; 0 of a dense model, whose header has no such key."""
    found = keys.largest(key)
    return 0 if found is None else found


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    return None


def _text(metadata: Mapping[str, object], key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) else None


def _head_sizes(keys: _ArchKeys, n_embd: int | None) -> tuple[int | None, int | None]:
    """key_length and value_length, by default n_embd / head_count[0] (llama.cpp's rule)."""
    n_heads = keys.number("attention.head_count")
    default = n_embd // n_heads if n_embd is not None and n_heads else None
    size_k = keys.number("attention.key_length")
    size_v = keys.number("attention.value_length")
    return (default if size_k is None else size_k, default if size_v is None else size_v)


def _n_vocab(
    keys: _ArchKeys, tensors: Sequence[TensorInfo], array_lengths: Mapping[str, int]
) -> int | None:
    n_tokens = array_lengths.get("tokenizer.ggml.tokens") or keys.number("vocab_size")
    if n_tokens is not None:
        return n_tokens
    for tensor in tensors:
        if tensor.name == "token_embd.weight" and len(tensor.ne) > 1:
            return tensor.ne[1]
    return None
