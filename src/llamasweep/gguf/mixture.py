"""Which tensor gets which ggml type in a file called `Q4_K_M` and its like. Pure.

Follows what llama-quantize of build 11434 does without overrides: more bits for some layers of
attn_v and ffn_down and for the head, mixtures of experts, fall-backs for rows that are not made of
whole blocks. Architectures with rules of their own (falcon, glm5-next, bailingmoe3) are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.ggml_types import file_type_by_short_name, type_by_name

QUANTS: tuple[str, ...] = (
    *("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0"),
    *("Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4_MOE"),
    *("Q3_K_L", "Q3_K_M", "Q3_K_S", "IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS"),
    *("Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "Q2_0", "TQ2_0", "TQ1_0"),
    *("IQ1_M", "IQ1_S", "Q1_0"),
)
"""Every quantisation that can be planned and written, from many bits to few."""

IMATRIX_QUANTS = frozenset(
    {"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "Q2_K_S"}
)
"""What llama-quantize makes only with an importance matrix, which changes the mixture."""

_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4": "MXFP4_MOE"}
_ARCHS_WITH_OWN_RULES = frozenset({"falcon", "glm5-next", "bailingmoe3"})
_VERY_LOW = frozenset({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M"})

_NEVER_QUANTIZED_PARTS = (
    *("_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel"),
    *("per_layer_model_proj", "ssm_conv1d", "shortconv.conv.weight"),
    *("indexer.k_proj.weight", "indexer.q_proj.weight", "attn_rel_b.weight"),
    *("time_mix_first.weight", "time_mix_lerp_fused.weight"),
    *("time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight"),
    *("time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight"),
    *("time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight"),
    *("time_mix_g1.weight", "time_mix_g2.weight"),
    *("time_mix_decay_w1.weight", "time_mix_decay_w2.weight"),
)
_NEVER_QUANTIZED_NAMES = frozenset({"position_embd.weight", "token_types.weight"})

_FALLBACKS = {
    **dict.fromkeys(
        ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"
    ),
    **dict.fromkeys(("q2_0", "q2_K", "q3_K", "tq1_0", "tq2_0"), "q4_0"),
    "q4_K": "q5_0",
    "q5_K": "q5_1",
    "q6_K": "q8_0",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTensor:
    """A tensor before quantising: contiguous dimension first; f16 or f32 as converters write it."""

    name: str
    ne: tuple[int, ...]
    ggml_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What of a model's metadata the rules look at.

    n_gqa: query heads per key head in layer 0; 0 where that layer has no attention. is_70b: llama
    or qwen2 with 80 layers, whose attn_v is small enough to deserve five bits.
    """

    arch: str
    n_layers: int
    n_expert: int
    n_gqa: int
    is_70b: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where a tensor stands among its like: i of n, and what else a rule may ask for."""

    i: int
    n: int
    n_gqa: int
    n_expert: int
    has_imatrix: bool

    @property
    def is_grouped(self) -> bool:
        return self.n_gqa >= 4

    @property
    def deserves_more_bits(self) -> bool:
        eighth = self.n // 8
        return self.i < eighth or self.i >= 7 * self.n // 8 or (self.i - eighth) % 3 == 2


_Rule = Callable[[_Place], str | None]

_VALUE_RULES: dict[str, _Rule] = {
    "Q2_K": lambda p: "q4_K" if p.is_grouped else "q3_K",
    "Q2_K_S": lambda p: "q4_K" if p.is_grouped else None,
    "IQ3_XXS": lambda p: "q4_K" if p.is_grouped else None if p.has_imatrix else "iq3_s",
    "IQ3_XS": lambda p: "q4_K" if p.is_grouped else None,
    "IQ3_S": lambda p: "q4_K" if p.is_grouped else None,
    "IQ3_M": lambda _: "q4_K",
    "Q3_K_M": lambda p: "q5_K" if p.i < 2 else "q4_K",
    "Q3_K_L": lambda _: "q5_K",
    "IQ4_NL": lambda p: "q5_K" if p.is_grouped else None,
    "IQ4_XS": lambda p: "q5_K" if p.is_grouped else None,
    "Q4_K_M": lambda p: "q6_K" if p.deserves_more_bits else None,
    "Q5_K_M": lambda p: "q6_K" if p.deserves_more_bits else None,
    "Q4_K_S": lambda p: "q5_K" if p.i < 4 else None,
}

_DOWN_RULES: dict[str, _Rule] = {
    "Q2_K": lambda _: "q3_K",
    "Q2_K_S": lambda p: "q4_K" if p.i < p.n // 8 else None,
    "IQ3_XXS": lambda p: None if p.has_imatrix else "q4_K" if p.i < p.n // 8 else "q3_K",
    "Q3_K_M": lambda p: "q5_K" if p.i < p.n // 16 else "q4_K",
    "IQ3_M": lambda p: (
        "q4_K" if p.i < p.n // 8 or (p.n_expert == 8 and p.deserves_more_bits) else None
    ),
    "Q3_K_L": lambda _: "q5_K",
    "Q4_K_M": lambda p: "q6_K" if p.deserves_more_bits else None,
    "IQ4_NL": lambda p: "q5_K" if p.i < p.n // 8 and not p.has_imatrix else None,
    "IQ4_XS": lambda p: "q5_K" if p.i < p.n // 8 and not p.has_imatrix else None,
    "Q5_K_M": lambda p: "q6_K" if p.deserves_more_bits else None,
    "Q4_K_S": lambda p: "q5_K" if p.i < p.n // 8 else None,
    "Q4_0": lambda p: "q4_1" if p.has_imatrix and p.i < p.n // 8 else None,
    "Q5_0": lambda p: "q5_1" if p.has_imatrix and p.i < p.n // 8 else None,
}

_MIDDLE_RULES: dict[str, _Rule] = {
    "IQ3_XS": lambda p: "iq3_xxs" if p.n // 8 <= p.i < 7 * p.n // 8 else None,
}

_EMBEDDING_TYPES = {
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"), "q2_K"),
    **dict.fromkeys(("IQ2_S", "IQ2_M", "IQ3_XXS"), "iq3_s"),
    **dict.fromkeys(("TQ1_0", "TQ2_0", "Q2_0"), "q4_K"),
}
_QUERY_KEY_TYPES = {"IQ3_XS": "iq3_xxs", "IQ3_XXS": "iq2_s"}
_ATTN_OUTPUT_TYPES = {
    "Q2_K": "q3_K",
    "IQ3_XXS": "iq3_s",
    "Q3_K_M": "q4_K",
    "Q3_K_L": "q5_K",
    "IQ3_M": "q4_K",
}
_ATTN_OUTPUT_OF_EIGHT_EXPERTS = frozenset(
    {
        *("Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL"),
        *("Q4_K_S", "Q4_K_M", "IQ3_S", "IQ3_M", "IQ4_XS"),
    }
)

_CATEGORIES = (
    ("attn_qkv.weight", "attn_v"),
    ("attn_kv_b.weight", "attn_v"),
    ("attn_v.weight", "attn_v"),
    ("attn_k.weight", "attn_k"),
    ("attn_q.weight", "attn_q"),
    ("attn_output.weight", "attn_output"),
    ("ffn_up", "ffn_up"),
    ("ffn_gate", "ffn_gate"),
    ("ffn_down", "ffn_down"),
)


def canonical_quant(quant: str) -> str:
    """The spelling in QUANTS of what a user wrote ("q4_k_m", "Q4_K"). Raises ModelSynthError."""
    upper = quant.upper()
    name = _ALIASES.get(upper, upper)
    if name not in QUANTS:
        raise ModelSynthError(
            f"unknown quantisation {quant!r}", hint=f"Known are: {', '.join(QUANTS)}."
        )
    return name


def is_quantizable(name: str, ne: Sequence[int]) -> bool:
    """Whether llama-quantize touches it: matrices named `…weight`, but no norms or routers."""
    has_two_dimensions = any(n > 1 for n in ne[1:])
    return (
        has_two_dimensions
        and name.endswith("weight")
        and name not in _NEVER_QUANTIZED_NAMES
        and not any(part in name for part in _NEVER_QUANTIZED_PARTS)
    )


def read_traits(metadata: Mapping[str, object]) -> Traits:
    """The traits that GGUF metadata give, with llama.cpp's own defaults for absent keys."""
    arch = str(metadata["general.architecture"])
    n_layers = _first(metadata.get(f"{arch}.block_count"), 0)
    n_head = _first(metadata.get(f"{arch}.attention.head_count"), 0)
    n_head_kv = _first(metadata.get(f"{arch}.attention.head_count_kv"), n_head)
    return Traits(
        arch=arch,
        n_layers=n_layers,
        n_expert=_first(metadata.get(f"{arch}.expert_count"), 0),
        n_gqa=n_head // n_head_kv if n_head_kv else 0,
        is_70b=n_layers == 80 and (arch == "qwen2" or (arch == "llama" and n_head != n_head_kv)),
    )


def choose_types(
    tensors: Sequence[SourceTensor],
    quant: str,
    traits: Traits,
    *,
    has_imatrix: bool | None = None,
) -> dict[str, str]:
    """ggml type by tensor name, as llama-quantize would write them.

    has_imatrix: None means as needed, that is for IMATRIX_QUANTS only. Raises ModelSynthError for
    an unknown quant and for an architecture with rules of its own.
    """
    quant = canonical_quant(quant)
    if traits.arch in _ARCHS_WITH_OWN_RULES:
        raise ModelSynthError(f"architecture {traits.arch!r} has quantisation rules of its own")
    chooser = _Chooser(
        quant,
        traits,
        has_imatrix=quant in IMATRIX_QUANTS if has_imatrix is None else has_imatrix,
        n_values=sum(_category(t.name) == "attn_v" for t in tensors),
        is_tied=all(t.name != "output.weight" for t in tensors),
    )
    ordered = sorted(tensors, key=lambda t: (_layer(t.name), t.name))
    return {
        t.name: chooser.choose(t.name, t.ne) if is_quantizable(t.name, t.ne) else t.ggml_type
        for t in ordered
    }


class _Chooser:
    """Walks the tensors in llama-quantize's order: some rules count those that went before."""

    def __init__(
        self, quant: str, traits: Traits, *, has_imatrix: bool, n_values: int, is_tied: bool
    ) -> None:
        entry = file_type_by_short_name(quant)
        if entry is None or entry.ggml_type is None:
            raise ModelSynthError(f"no tensor type is known for {quant}")
        self._quant = quant
        self._traits = traits
        self._default = entry.ggml_type
        self._has_imatrix = has_imatrix
        self._n_values = n_values
        self._is_tied = is_tied
        self._n_seen = dict.fromkeys(("attn_v", "ffn_down", "ffn_gate", "ffn_up"), 0)

    def choose(self, name: str, ne: Sequence[int]) -> str:
        if not type_by_name(self._default).is_quantized:
            return self._default
        category = _category(name)
        kind = self._preferred(category, name, ne)
        if category in self._n_seen:
            self._n_seen[category] += 1
        return _with_whole_blocks(kind, ne[0])

    def _preferred(self, category: str, name: str, ne: Sequence[int]) -> str:
        if category == "output" or (category == "token_embd" and self._is_tied):
            return self._head_type(ne[0])
        if self._quant == "MXFP4_MOE":
            return "mxfp4" if len(ne) > 2 and ne[2] > 1 else "q8_0"
        if category == "token_embd":
            return _EMBEDDING_TYPES.get(self._quant, self._default)
        if self._quant in _VERY_LOW:
            return self._very_low_type(category)
        return self._layer_type(category, name)

    def _head_type(self, n_columns: int) -> str:
        if self._quant == "MXFP4_MOE" or n_columns % type_by_name(self._default).block_elements:
            return "q8_0"
        if self._quant in _VERY_LOW or self._quant == "IQ3_XXS":
            return "q5_K"
        return "q8_0" if self._default == "q8_0" else "q6_K"

    def _very_low_type(self, category: str) -> str:
        better = "iq3_s" if self._quant in {"IQ2_S", "IQ2_M"} else "q2_K"
        n_expert = self._traits.n_expert
        if category == "attn_v":
            return "q4_K" if self._traits.n_gqa >= 4 or n_expert >= 4 else better
        if category == "attn_k" and n_expert == 8:
            return "q4_K"
        if category == "ffn_down" and self._n_seen["ffn_down"] < self._traits.n_layers // 8:
            return better
        if category == "attn_output":
            return self._very_low_attn_output()
        return self._default

    def _very_low_attn_output(self) -> str:
        if self._traits.n_expert == 8:
            return "q5_K"
        if self._quant in {"IQ1_S", "IQ1_M"}:
            return "iq2_xxs"
        return "iq3_s" if self._quant in {"IQ2_S", "IQ2_M"} else self._default

    def _layer_type(self, category: str, name: str) -> str:
        if category == "attn_v":
            return self._value_type()
        if category in self._n_seen:
            rules = _DOWN_RULES if category == "ffn_down" else _MIDDLE_RULES
            return self._apply(rules, self._ffn_place(category, name))
        if category in {"attn_k", "attn_q", "attn_output"}:
            return self._attention_type(category)
        return self._default

    def _attention_type(self, category: str) -> str:
        has_eight_experts = self._traits.n_expert == 8
        if category == "attn_output" and has_eight_experts:
            return "q5_K" if self._quant in _ATTN_OUTPUT_OF_EIGHT_EXPERTS else self._default
        if category == "attn_k" and has_eight_experts:
            return "q8_0"
        table = _ATTN_OUTPUT_TYPES if category == "attn_output" else _QUERY_KEY_TYPES
        return table.get(self._quant, self._default)

    def _value_type(self) -> str:
        if self._traits.n_expert == 8:
            return "q8_0"
        kind = self._apply(_VALUE_RULES, self._place(self._n_seen["attn_v"], self._n_values))
        return "q5_K" if self._traits.is_70b and kind in {"q3_K", "q4_K"} else kind

    def _ffn_place(self, category: str, name: str) -> _Place:
        i = _layer(name) if self._traits.n_expert > 1 else self._n_seen[category]
        return self._place(i, self._traits.n_layers)

    def _place(self, i: int, n: int) -> _Place:
        return _Place(
            i=i,
            n=n,
            n_gqa=self._traits.n_gqa,
            n_expert=self._traits.n_expert,
            has_imatrix=self._has_imatrix,
        )

    def _apply(self, rules: Mapping[str, _Rule], place: _Place) -> str:
        rule = rules.get(self._quant)
        return (rule(place) if rule else None) or self._default


def _with_whole_blocks(kind: str, n_columns: int) -> str:
    n_block = type_by_name(kind).block_elements
    if n_columns % n_block == 0:
        return kind
    if kind not in _FALLBACKS and n_block > 32:
        raise ModelSynthError(
            f"rows of {n_columns} elements are not made of whole {kind} blocks of {n_block}",
            hint="llama-quantize knows no fall-back here either; choose another quantisation.",
        )
    smaller = _FALLBACKS.get(kind, kind)
    return "f16" if n_columns % type_by_name(smaller).block_elements else smaller


def _category(name: str) -> str:
    if name == "output.weight":
        return "output"
    if name in {"token_embd.weight", "per_layer_token_embd.weight"}:
        return "token_embd"
    return next((category for part, category in _CATEGORIES if part in name), "other")


def _layer(name: str) -> int:
    """The number after `blk.`, -1 for tensors that belong to no layer."""
    head, _, rest = name.partition(".")
    number = rest.partition(".")[0]
    return int(number) if head == "blk" and number.isdecimal() else -1


def _first(value: object, default: int) -> int:
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return value if isinstance(value, int) else default
