"""Whatever the shape, every tensor gets a type that its rows can have, and the head can be read."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from llamasweep.gguf.facts import TensorInfo
from llamasweep.gguf.ggml_types import tensor_bytes, type_by_name
from llamasweep.gguf.layout import read_layout
from llamasweep.gguf.mixture import QUANTS, SourceTensor, Traits, choose_types, is_quantizable
from llamasweep.gguf.writer import encode_head

WITH_FALLBACKS = [quant for quant in QUANTS if quant != "Q1_0"]
PARTS = (
    *("attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "attn_norm", "ssm_out"),
    *("ffn_up", "ffn_down", "ffn_gate", "ffn_gate_inp", "ffn_down_exps"),
)

tensors_strategy = st.lists(
    st.builds(
        lambda layer, part, ne: SourceTensor(
            name=f"blk.{layer}.{part}.weight", ne=tuple(ne), ggml_type="f16"
        ),
        st.integers(0, 63),
        st.sampled_from(PARTS),
        st.lists(st.integers(1, 2_000), min_size=1, max_size=3),
    ),
    max_size=30,
    unique_by=lambda tensor: tensor.name,
)
traits_strategy = st.builds(
    Traits,
    arch=st.sampled_from(["llama", "qwen3moe"]),
    n_layers=st.integers(1, 64),
    n_expert=st.sampled_from([0, 1, 4, 8, 128]),
    n_gqa=st.integers(0, 16),
    is_70b=st.booleans(),
)


@given(tensors_strategy, st.sampled_from(WITH_FALLBACKS), traits_strategy, st.booleans())
def test_rows_are_always_whole_blocks_of_the_chosen_type(
    tensors: list[SourceTensor], quant: str, traits: Traits, has_imatrix: bool
) -> None:
    chosen = choose_types(tensors, quant, traits, has_imatrix=has_imatrix)

    assert set(chosen) == {t.name for t in tensors}
    for tensor in tensors:
        assert tensor_bytes(chosen[tensor.name], tensor.ne) > 0
        if not is_quantizable(tensor.name, tensor.ne):
            assert chosen[tensor.name] == tensor.ggml_type


@given(tensors_strategy, st.sampled_from(WITH_FALLBACKS), traits_strategy)
def test_the_order_in_which_tensors_are_listed_does_not_matter(
    tensors: list[SourceTensor], quant: str, traits: Traits
) -> None:
    assert choose_types(tensors, quant, traits) == choose_types(tensors[::-1], quant, traits)


scalars = st.one_of(
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.text(max_size=30).filter(lambda t: t.isascii()),
    st.integers(-(2**20), 2**20).map(lambda n: n / 8.0),
)


@settings(max_examples=50)
@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,8}\.[a-z_]{1,12}", fullmatch=True), scalars),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20),
    st.lists(st.integers(1, 64), max_size=12),
)
def test_a_head_that_was_written_is_read_back(
    metadata: dict[str, object], numbers: list[int], rows: list[int]
) -> None:
    metadata = {"general.architecture": "llama", **metadata, "llama.numbers": numbers}
    tensors = [
        TensorInfo(name=f"t{i}", ne=(32, n), ggml_type="q4_0", n_bytes=18 * n)
        for i, n in enumerate(rows)
    ]
    head = encode_head(metadata, tensors)
    n_data = sum(-(-t.n_bytes // 32) * 32 for t in tensors)

    layout = read_layout(io.BytesIO(head + bytes(n_data)), len(head) + n_data)

    expected = {**metadata, "llama.numbers": tuple(numbers)}
    assert layout.metadata == expected
    assert [(t.name, t.ne, t.ggml_type) for t in layout.tensors] == [
        (t.name, t.ne, t.ggml_type) for t in tensors
    ]
    assert layout.data_start == len(head)
    assert type_by_name("q4_0").type_id == 2
