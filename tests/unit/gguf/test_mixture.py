"""Rules of the mixtures that the thirty known shapes do not reach."""

from __future__ import annotations

import pytest

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.mixture import (
    QUANTS,
    SourceTensor,
    Traits,
    canonical_quant,
    choose_types,
    is_quantizable,
    read_traits,
)

N_LAYERS = 16


def _traits(
    *, arch: str = "llama", n_expert: int = 0, n_gqa: int = 1, is_70b: bool = False
) -> Traits:
    return Traits(arch=arch, n_layers=N_LAYERS, n_expert=n_expert, n_gqa=n_gqa, is_70b=is_70b)


def _matrix(name: str, n_columns: int = 512, *more: int) -> SourceTensor:
    return SourceTensor(name=name, ne=(n_columns, 512, *more), ggml_type="f16")


def _layers(part: str, n_columns: int = 512) -> list[SourceTensor]:
    return [_matrix(f"blk.{i}.{part}.weight", n_columns) for i in range(N_LAYERS)]


def _types_of(part: str, quant: str, traits: Traits, *, imatrix: bool = False) -> list[str]:
    chosen = choose_types(
        [*_layers(part), _matrix("output.weight")], quant, traits, has_imatrix=imatrix
    )
    return [chosen[f"blk.{i}.{part}.weight"] for i in range(N_LAYERS)]


def test_q4_k_m_gives_more_bits_to_the_first_the_last_and_every_third_layer() -> None:
    kinds = _types_of("ffn_down", "Q4_K_M", _traits())

    assert [i for i, kind in enumerate(kinds) if kind == "q6_K"] == [0, 1, 4, 7, 10, 13, 14, 15]


@pytest.mark.parametrize(
    ("quant", "n_gqa", "expected"),
    [
        ("Q2_K", 1, "q3_K"),
        ("Q2_K", 4, "q4_K"),
        ("Q2_K_S", 1, "q2_K"),
        ("IQ3_M", 1, "q4_K"),
        ("Q3_K_L", 1, "q5_K"),
        ("IQ4_XS", 1, "iq4_xs"),
        ("IQ4_XS", 8, "q5_K"),
        ("Q3_K_S", 8, "q3_K"),
    ],
)
def test_attn_v_of_the_middle_layers_follows_grouping(
    quant: str, n_gqa: int, expected: str
) -> None:
    assert _types_of("attn_v", quant, _traits(n_gqa=n_gqa))[9] == expected


def test_attn_v_of_a_70b_model_gets_five_bits_where_it_would_get_four() -> None:
    kinds = _types_of("attn_v", "Q4_K_M", _traits(n_gqa=8, is_70b=True))

    assert set(kinds) == {"q5_K", "q6_K"}


def test_eight_experts_keep_attn_k_and_attn_v_at_eight_bits() -> None:
    traits = _traits(n_expert=8)

    assert set(_types_of("attn_k", "Q4_K_M", traits)) == {"q8_0"}
    assert set(_types_of("attn_v", "Q4_K_M", traits)) == {"q8_0"}
    assert set(_types_of("attn_output", "Q4_K_M", traits)) == {"q5_K"}


def test_an_importance_matrix_changes_iq3_xxs() -> None:
    without = _types_of("ffn_down", "IQ3_XXS", _traits(), imatrix=False)
    with_one = _types_of("ffn_down", "IQ3_XXS", _traits(), imatrix=True)

    assert without[:3] == ["q4_K", "q4_K", "q3_K"]
    assert set(with_one) == {"iq3_xxs"}


def test_iq3_xs_saves_bits_in_the_middle_layers_only() -> None:
    kinds = _types_of("ffn_up", "IQ3_XS", _traits())

    assert kinds[:2] == ["iq3_s", "iq3_s"]
    assert set(kinds[2:14]) == {"iq3_xxs"}
    assert kinds[14:] == ["iq3_s", "iq3_s"]


@pytest.mark.parametrize(
    ("quant", "attn_v", "attn_output", "first_down"),
    [
        ("IQ1_S", "q2_K", "iq2_xxs", "q2_K"),
        ("IQ2_XS", "q2_K", "iq2_xs", "q2_K"),
        ("IQ2_M", "iq3_s", "iq3_s", "iq3_s"),
    ],
)
def test_very_low_quantisations_protect_the_sensitive_tensors(
    quant: str, attn_v: str, attn_output: str, first_down: str
) -> None:
    assert _types_of("attn_v", quant, _traits())[0] == attn_v
    assert _types_of("attn_output", quant, _traits())[0] == attn_output
    assert _types_of("ffn_down", quant, _traits())[0] == first_down


def test_mxfp4_moe_touches_only_expert_matrices() -> None:
    tensors = [_matrix("blk.0.ffn_up_exps.weight", 512, 8), _matrix("blk.0.attn_q.weight")]

    chosen = choose_types(tensors, "MXFP4_MOE", _traits(n_expert=8))

    assert chosen["blk.0.ffn_up_exps.weight"] == "mxfp4"
    assert chosen["blk.0.attn_q.weight"] == "q8_0"


@pytest.mark.parametrize(
    ("quant", "n_columns", "expected"),
    [
        ("Q4_K_S", 160, "q5_0"),
        ("Q5_K_S", 160, "q5_1"),
        ("Q6_K", 160, "q8_0"),
        ("IQ4_XS", 160, "iq4_nl"),
        ("TQ1_0", 160, "q4_0"),
        ("Q4_K_S", 100, "f16"),
        ("Q8_0", 100, "f16"),
    ],
)
def test_rows_that_are_not_whole_blocks_fall_back(
    quant: str, n_columns: int, expected: str
) -> None:
    tensors = [_matrix("blk.0.attn_q.weight", n_columns), _matrix("output.weight")]

    assert choose_types(tensors, quant, _traits())["blk.0.attn_q.weight"] == expected


def test_q1_0_has_no_fall_back_and_says_so() -> None:
    with pytest.raises(ModelSynthError, match="whole q1_0 blocks of 128"):
        choose_types([_matrix("blk.0.attn_q.weight", 160)], "Q1_0", _traits())


def test_a_tied_embedding_is_quantised_like_a_head() -> None:
    tied = choose_types([_matrix("token_embd.weight")], "Q4_0", _traits())
    untied = choose_types(
        [_matrix("token_embd.weight"), _matrix("output.weight")], "Q4_0", _traits()
    )

    assert tied == {"token_embd.weight": "q6_K"}
    assert untied == {"token_embd.weight": "q4_0", "output.weight": "q6_K"}


@pytest.mark.parametrize(
    "name",
    [
        "blk.0.attn_norm.weight",
        "blk.0.ffn_gate_inp.weight",
        "blk.0.ssm_conv1d.weight",
        "blk.0.ssm_a",
        "blk.0.attn_q.bias",
        "per_layer_model_proj.weight",
    ],
)
def test_norms_routers_and_small_matrices_are_never_quantised(name: str) -> None:
    assert not is_quantizable(name, (512, 512))


def test_a_vector_is_never_quantised() -> None:
    assert not is_quantizable("blk.0.ffn_gate_inp_shexp.weight", (2048,))
    assert not is_quantizable("blk.0.ffn_gate_inp_shexp.weight", (2048, 1))


@pytest.mark.parametrize("quant", QUANTS)
def test_every_quantisation_gives_every_tensor_a_type(quant: str) -> None:
    tensors = [
        _matrix("token_embd.weight"),
        *_layers("attn_v"),
        *_layers("attn_q"),
        *_layers("ffn_down"),
        SourceTensor(name="output_norm.weight", ne=(512,), ggml_type="f32"),
    ]

    chosen = choose_types(tensors, quant, _traits())

    assert set(chosen) == {t.name for t in tensors}
    assert chosen["output_norm.weight"] == "f32"


def test_spellings_that_people_use_are_understood() -> None:
    assert canonical_quant("q4_k") == "Q4_K_M"
    assert canonical_quant("mxfp4") == "MXFP4_MOE"
    with pytest.raises(ModelSynthError):
        canonical_quant("Q4")


def test_architectures_with_rules_of_their_own_are_refused() -> None:
    with pytest.raises(ModelSynthError, match="falcon"):
        choose_types([_matrix("output.weight")], "Q4_0", _traits(arch="falcon"))


def test_traits_use_the_defaults_of_llama_cpp() -> None:
    bare = read_traits({"general.architecture": "llama", "llama.attention.head_count": 32})
    hybrid = read_traits(
        {
            "general.architecture": "lfm2",
            "lfm2.attention.head_count": 32,
            "lfm2.attention.head_count_kv": [0, 8],
        }
    )
    big = read_traits(
        {
            "general.architecture": "llama",
            "llama.block_count": 80,
            "llama.attention.head_count": 64,
            "llama.attention.head_count_kv": 8,
        }
    )

    assert (bare.n_gqa, bare.n_expert, bare.is_70b) == (1, 0, False)
    assert hybrid.n_gqa == 0
    assert (big.n_gqa, big.is_70b) == (8, True)
