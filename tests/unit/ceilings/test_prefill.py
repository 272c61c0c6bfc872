"""Prompts: FLOP against llama.cpp's graphs, and the roofline of each physical batch."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import quantised, reference_models, rows

from llamasweep.ceilings.architecture import read_architecture
from llamasweep.ceilings.assumptions import Bandwidth, Peak, ridge_flop_per_byte
from llamasweep.ceilings.flop import attention_flop, decode_flop, matrix_flop
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.prefill import MAX_PASSES, cells_in_windows, prefill_ceiling, ridge_tokens
from llamasweep.ceilings.traffic import weight_traffic

FAST = Bandwidth(bytes_per_s=1008e9, basis="spec")
PEAK = Peak(flop_per_s=165.2e12, basis="spec")


def context(n_ubatch: int = 512, n_ctx: int = 8192) -> ContextSettings:
    return ContextSettings(n_ctx=n_ctx, n_ubatch=n_ubatch)


@pytest.mark.parametrize("row", rows("prefill_flops.csv"), ids=lambda row: row["model"])
def test_flop_of_a_prompt_are_those_of_the_graph_or_up_to_3_5_percent_fewer(
    row: dict[str, str],
) -> None:
    flop = matrix_flop(reference_models()[row["model"]], 512, 1)
    real = int(row["weight_matmul_flops_pp512_1_output"])
    assert real * 0.965 <= flop <= real


def test_most_models_agree_to_four_digits() -> None:
    exact = [
        row["model"]
        for row in rows("prefill_flops.csv")
        if matrix_flop(reference_models()[row["model"]], 512, 1)
        >= int(row["weight_matmul_flops_pp512_1_output"]) * 0.9999
    ]
    assert len(exact) == 24


@pytest.mark.parametrize("name", list(reference_models()))
def test_attention_of_a_prompt_is_the_sum_of_its_tokens(name: str) -> None:
    facts = reference_models()[name]
    tokens = sum(attention_flop(facts, 9000 + i, 1) for i in range(40))
    assert attention_flop(facts, 9000, 40) == tokens


def test_attention_by_hand() -> None:
    llama = reference_models()["Llama-3.1-8B"]
    assert attention_flop(llama, 0, 512) == 32 * 2 * 32 * 256 * (512 * 513 // 2)
    deepseek = reference_models()["DeepSeek-V3"]
    assert attention_flop(deepseek, 100, 1) == 61 * 2 * 128 * (576 + 512) * 101
    mamba = reference_models()["Mamba-Codestral-7B"]
    assert attention_flop(mamba, 1000, 512) == 0
    sparse = reference_models()["DeepSeek-V3.2"]
    assert attention_flop(sparse, 9999, 1) == 61 * (2 * 128 * 1088 * 2048 + 2 * 64 * 128 * 10000)


def test_a_generated_token_calculates_everything_once() -> None:
    facts = reference_models()["Qwen3-8B"]
    expected = matrix_flop(facts, 1, 1) + attention_flop(facts, 64, 8) / 8
    assert decode_flop(facts, 64, 8) == expected
    assert matrix_flop(facts, 1, 1) == 2 * weight_traffic(facts).matrix_params


@pytest.mark.parametrize("row", rows("ubatch_rtx4090.csv"), ids=lambda row: row["ubatch"])
def test_small_physical_batches_are_bound_by_memory(row: dict[str, str]) -> None:
    """The table reads the head in every pass; llama.cpp reads it in the last one only, so ours is higher."""
    facts = quantised("Llama-3.1-8B", "Q4_0")
    n_ubatch = int(row["ubatch"])
    ceiling = prefill_ceiling(facts, context(n_ubatch), n_prompt=512, bandwidth=FAST, peak=PEAK)
    assert ceiling.ceiling_tps is not None
    measured = float(row["measured_tps_llama8B_Q4_0_pp512_PR7676"])
    assert ceiling.ceiling_tps > measured
    table = float(row["ceiling_tps_fp16"])
    assert table * 0.985 <= ceiling.ceiling_tps <= table * 1.14, (
        "attention is in ours, not in the table"
    )
    read_s = float(row["t_weights_ms_1008GBps"])
    compute_s = float(row["t_compute_ms_165.2TF_fp16_fp32acc"])
    assert ceiling.bound == ("memory" if read_s > compute_s else "compute")
    assert weight_traffic(facts).active_bytes / 1008e6 == pytest.approx(read_s, rel=2e-3)


def test_one_pass_by_hand() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    ceiling = prefill_ceiling(facts, context(), n_prompt=512, bandwidth=FAST, peak=PEAK)
    traffic = weight_traffic(facts)
    n_bytes = traffic.active_bytes + 511 * traffic.row_bytes + 131072 * 1024
    flop = matrix_flop(facts, 512, 1) + attention_flop(facts, 0, 512)
    assert ceiling.bytes_per_token == n_bytes / 512
    assert ceiling.flop_per_token == flop / 512
    assert ceiling.ceiling_tps == pytest.approx(512 / (flop / 165.2e12))
    assert ceiling.memory_tps == pytest.approx(512 / (n_bytes / 1008e9))
    assert ceiling.flop_per_byte == pytest.approx(flop / n_bytes)
    assert ceiling.pencil_flop_per_token == 2 * facts.n_params


def test_passes_follow_both_batch_sizes() -> None:
    facts = reference_models()["Qwen3-0.6B"]

    def n_passes(n_prompt: int, n_batch: int, n_ubatch: int) -> int:
        return prefill_ceiling(
            facts, context(n_ubatch), n_prompt=n_prompt, n_batch=n_batch, bandwidth=FAST
        ).n_passes

    assert n_passes(512, 2048, 512) == 1
    assert n_passes(513, 2048, 512) == 2
    assert n_passes(4096, 2048, 512) == 8
    assert n_passes(1000, 300, 512) == 4
    assert n_passes(1000, 300, 200) == 7


def test_logits_of_every_batch_read_the_head() -> None:
    facts = reference_models()["Qwen3-8B"]
    traffic = weight_traffic(facts)
    late = traffic.head_bytes + traffic.last_ff_bytes
    one, two = (
        prefill_ceiling(facts, context(), n_prompt=2048, n_batch=b, bandwidth=FAST)
        for b in (2048, 1024)
    )
    assert (two.bytes_per_token - one.bytes_per_token) * 2048 == pytest.approx(late)


def test_without_a_peak_there_is_no_ceiling_and_a_reason() -> None:
    ceiling = prefill_ceiling(
        reference_models()["Qwen3-0.6B"], context(), n_prompt=64, bandwidth=FAST
    )
    assert ceiling.ceiling_tps is None
    assert ceiling.bound is None
    assert ceiling.ridge_tokens is None
    assert "no peak" in (ceiling.reason or "")
    assert ceiling.memory_tps > 0


def test_uniform_routing_reads_more_than_the_bound() -> None:
    facts = reference_models()["Qwen3-30B-A3B"]
    ceiling = prefill_ceiling(facts, context(), n_prompt=512, bandwidth=FAST, peak=PEAK)
    assert ceiling.ceiling_tps is not None
    assert ceiling.expected_tps is not None
    assert ceiling.expected_tps < ceiling.ceiling_tps
    cells = 98304 * 1024
    read_s = (18009700352 + cells) / 1008e9
    assert ceiling.expected_tps == pytest.approx(512 / read_s, rel=1e-4)
    dense = prefill_ceiling(
        reference_models()["Qwen3-8B"], context(), n_prompt=512, bandwidth=FAST, peak=PEAK
    )
    assert dense.expected_tps == dense.ceiling_tps


def test_a_reference_peak_is_marked() -> None:
    peak = Peak(flop_per_s=1e12, is_reference=True)
    ceiling = prefill_ceiling(
        reference_models()["Qwen3-0.6B"], context(), n_prompt=64, bandwidth=FAST, peak=peak
    )
    assert ceiling.is_reference
    assert any("reference" in a.text for a in ceiling.assumptions)


def test_compute_takes_over_at_the_ridge() -> None:
    facts = reference_models()["Llama-2-7B"]
    ridge = ridge_flop_per_byte(PEAK, FAST)
    tokens = ridge_tokens(facts, ridge)
    traffic = weight_traffic(facts)
    assert tokens * 2 * traffic.matrix_params / PEAK.flop_per_s == pytest.approx(
        traffic.active_bytes / FAST.bytes_per_s
    )
    assert tokens == pytest.approx(ridge * facts.bits_per_weight / 8 / 2, rel=0.02)


def test_windows_of_a_pass_cover_the_cells_that_its_tokens_see() -> None:
    for name in ("Gemma-3-1B", "Llama-4-Scout"):
        architecture = read_architecture(reference_models()[name])
        window = architecture.window_tokens or 0
        for n_before, n_tokens in ((0, 5), (window - 2, 5), (3 * window + 7, 64)):
            seen = set()
            for at in range(n_before, n_before + n_tokens):
                first = at - at % window if architecture.is_chunked else at - window + 1
                seen |= set(range(max(0, first), at + 1))
            covered = cells_in_windows(architecture, n_before, n_tokens)
            assert covered == len(seen)


@pytest.mark.parametrize(
    ("n_prompt", "n_batch", "n_depth"), [(0, 512, 0), (512, 0, 0), (512, 512, -1)]
)
def test_senseless_prompts_are_refused(n_prompt: int, n_batch: int, n_depth: int) -> None:
    with pytest.raises(ValueError, match="counted from"):
        prefill_ceiling(
            reference_models()["Qwen3-0.6B"],
            context(),
            n_prompt=n_prompt,
            n_batch=n_batch,
            n_depth=n_depth,
            bandwidth=FAST,
        )


def test_endless_prompts_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=str(MAX_PASSES)):
        prefill_ceiling(
            reference_models()["Qwen3-0.6B"], context(1), n_prompt=10**9, bandwidth=FAST
        )
