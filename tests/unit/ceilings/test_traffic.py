"""Bytes and parameters that a token reads, against llama.cpp's own decode graphs of thirty models."""

from __future__ import annotations

import math

import pytest
from tests.unit.ceilings.reference import facts_of, reference_models, rows

from llamasweep.ceilings.traffic import batch_traffic, expected_experts, weight_traffic
from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import ModelFacts

MODELS = list(reference_models())


def tiny(*extra: tuple[str, tuple[int, ...], str], **metadata: object) -> ModelFacts:
    """Two llama blocks of 256 x 256 matrices in f32, 4 words, untied; more tensors and keys on demand."""
    blocks = [(f"blk.{i}.attn_q.weight", (256, 256), "f32") for i in (0, 1)]
    return facts_of(
        {
            "general.architecture": "llama",
            "llama.block_count": 2,
            "llama.embedding_length": 256,
            "llama.attention.head_count": 4,
            **{f"llama.{key}": value for key, value in metadata.items()},
        },
        [
            ("token_embd.weight", (256, 4), "f32"),
            ("output.weight", (256, 4), "f32"),
            *blocks,
            *extra,
        ],
    )


@pytest.mark.parametrize("row", rows("active.csv"), ids=lambda row: row["model"])
def test_active_bytes_are_those_of_the_decode_graph(row: dict[str, str]) -> None:
    traffic = weight_traffic(reference_models()[row["model"]])
    assert traffic.active_bytes == int(row["active_bytes_rule"])
    real = int(row["active_bytes_llamacpp_graph"])
    assert abs(traffic.active_bytes - real) <= real / 1000


@pytest.mark.parametrize("row", rows("active.csv"), ids=lambda row: row["model"])
def test_active_parameters_equal_the_reference_and_come_near_the_published(
    row: dict[str, str],
) -> None:
    traffic = weight_traffic(reference_models()[row["model"]])
    assert traffic.active_params == int(row["active_params_rule_incl_1_emb_row"])
    with_table = (traffic.active_params + traffic.embedding_params) / 1e9
    assert round(with_table, 3) == float(row["active_params_plus_embedding_B"])
    published = float(row["published_active_B"])
    without_head = (traffic.active_params - traffic.head_params) / 1e9
    assert without_head <= published * 1.12
    assert published <= with_table * 1.04


@pytest.mark.parametrize("row", rows("prefill_flops.csv"), ids=lambda row: row["model"])
def test_matrix_parameters_are_those_of_the_decode_graph(row: dict[str, str]) -> None:
    flop = 2 * weight_traffic(reference_models()[row["model"]]).matrix_params
    real = int(row["weight_matmul_flops_decode_1_token"])
    assert real * 0.998 <= flop <= real * 1.0006


@pytest.mark.parametrize(
    "row", rows("moe_experts.csv"), ids=lambda row: f"{row['model']}-{row['tokens_in_batch']}"
)
def test_expected_experts_under_uniform_routing(row: dict[str, str]) -> None:
    n_tokens = int(row["tokens_in_batch"])
    got = expected_experts(int(row["n_expert"]), int(row["n_used"]), n_tokens)
    assert got == pytest.approx(float(row["expected_distinct_experts"]), abs=1e-4)
    facts = reference_models()[row["model"]]
    batch, traffic = batch_traffic(facts, n_tokens), weight_traffic(facts)
    routed = sum(r.n_bytes for r in traffic.routed)
    shared = traffic.dense_bytes + n_tokens * traffic.row_bytes
    assert (batch.expected_bytes - shared) / routed == pytest.approx(
        float(row["fraction_of_expert_bytes"]), abs=1e-5
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_of_one_reads_what_a_token_reads(name: str) -> None:
    facts = reference_models()[name]
    one = batch_traffic(facts, 1)
    assert one.least_bytes == one.most_bytes == weight_traffic(facts).active_bytes
    assert one.expected_bytes == pytest.approx(one.least_bytes, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_tokens", [2, 32, 512])
def test_the_expectation_lies_between_the_bounds(name: str, n_tokens: int) -> None:
    batch = batch_traffic(reference_models()[name], n_tokens)
    assert batch.least_bytes <= batch.expected_bytes * (1 + 1e-12)
    assert batch.expected_bytes <= batch.most_bytes * (1 + 1e-12)


def test_uniform_routing_agrees_with_drawing_it() -> None:
    import random

    draw = random.Random(4)
    n_rounds = 4000
    touched = sum(
        len({expert for _ in range(6) for expert in draw.sample(range(16), 3)})
        for _ in range(n_rounds)
    )
    assert touched / n_rounds == pytest.approx(expected_experts(16, 3, 6), rel=0.01)


def test_an_untied_embedding_is_read_by_the_row_and_a_tied_one_whole_too() -> None:
    untied = weight_traffic(tiny())
    assert untied.active_bytes == 1024 + 4 * 1024 + 2 * 256 * 1024
    assert untied.embedding_params == 1024
    tied = reference_models()["Qwen3-4B"]
    traffic = weight_traffic(tied)
    assert traffic.embedding_params == 0
    assert traffic.active_bytes == tied.size_bytes + 2560 // 256 * 210


def test_experts_without_a_count_are_refused_not_read_whole() -> None:
    exps = ("blk.0.ffn_up_exps.weight", (256, 256, 4), "f32")
    with pytest.raises(ModelFileError, match="expert_count' is missing"):
        weight_traffic(tiny(exps))


def test_experts_may_be_chosen_differently_in_each_layer() -> None:
    exps = [(f"blk.{i}.ffn_up_exps.weight", (256, 256, 4), "f32") for i in (0, 1)]
    facts = tiny(*exps, expert_count=4, expert_used_count=[1, 3])
    assert weight_traffic(facts).active_bytes == weight_traffic(tiny()).active_bytes + 4 * 2**18
    assert len(weight_traffic(facts).routed) == 2


def test_blocks_for_drafts_are_neither_read_nor_loaded() -> None:
    facts = tiny(nextn_predict_layers=1)
    traffic = weight_traffic(facts)
    assert traffic.active_bytes == weight_traffic(tiny()).active_bytes - 2**18
    assert facts.size_bytes - traffic.loaded_bytes == 2**18


def test_tables_inside_blocks_are_read_by_the_row() -> None:
    table = ("blk.0.ffn_gate_tid2eid.weight", (8, 100), "f32")
    assert weight_traffic(tiny(table)).active_bytes == weight_traffic(tiny()).active_bytes + 32


def test_a_file_without_matrices_has_no_traffic() -> None:
    facts = facts_of(
        {
            "general.architecture": "llama",
            "llama.block_count": 1,
            "llama.embedding_length": 256,
            "llama.attention.head_count": 1,
        },
        [("blk.0.attn_norm.weight", (256,), "f32"), ("token_embd.weight", (), "f32")],
    )
    with pytest.raises(ModelFileError, match="no matrix"):
        weight_traffic(facts)


def test_the_traffic_carries_its_assumptions() -> None:
    assert {a.topic for a in batch_traffic(tiny(), 4).assumptions} == {"weights", "routing"}
    assert all(math.isfinite(len(a.text)) and a.text for a in weight_traffic(tiny()).assumptions)
