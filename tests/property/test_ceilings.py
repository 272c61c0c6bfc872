"""Ceilings move as they must, whatever the model, the settings and the hardware."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ceilings.reference import reference_models

from llamasweep.ceilings.architecture import MODELLED, not_modelled
from llamasweep.ceilings.assumptions import Bandwidth, Peak
from llamasweep.ceilings.cell import CellCeiling, cell_ceiling
from llamasweep.ceilings.concurrency import concurrency_ceiling, stream_rates
from llamasweep.ceilings.decode import DecodeCeiling, decode_ceiling
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory, visible_pairs
from llamasweep.ceilings.memory_fit import compute_bytes_upper
from llamasweep.ceilings.placement import Machine, PlacementSettings, place
from llamasweep.ceilings.prefill import prefill_ceiling
from llamasweep.ceilings.traffic import batch_traffic, expected_experts
from llamasweep.ceilings.workload import workload
from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import ModelFacts, TensorInfo, facts_from
from llamasweep.gguf.ggml_types import tensor_bytes

FEW = settings(max_examples=60, deadline=None, derandomize=True)

MODELS = st.sampled_from(list(reference_models())).map(reference_models().__getitem__)
CHUNKED = {"llama4"}
"""A token at the start of a chunk sees less than the one before it: not monotone in depth, by design."""
DEPTHS = st.integers(0, 200_000)
SPEEDS = st.floats(1e9, 1e13)
KINDS = st.sampled_from(["f32", "f16", "q8_0", "q5_1", "q4_0"])


@st.composite
def contexts(draw: st.DrawFn) -> ContextSettings:
    """Settings that llama.cpp takes for every reference model."""
    return ContextSettings(
        n_ctx=draw(st.integers(1, 300_000)),
        n_ubatch=draw(st.sampled_from([1, 32, 512, 2048])),
        type_k=draw(KINDS),
        type_v=draw(KINDS),
        n_seq=draw(st.integers(1, 8)),
        kv_unified=draw(st.booleans()),
    )


def decode(facts: ModelFacts, context: ContextSettings, depth: int, speed: float) -> DecodeCeiling:
    return decode_ceiling(
        facts, context, n_depth=depth, n_gen=32, bandwidth=Bandwidth(bytes_per_s=speed)
    )


@FEW
@given(MODELS, contexts(), DEPTHS, DEPTHS, SPEEDS)
def test_depth_never_makes_generation_faster(
    facts: ModelFacts, context: ContextSettings, a: int, b: int, speed: float
) -> None:
    shallow, deep = (decode(facts, context, depth, speed) for depth in sorted((a, b)))
    if facts.arch not in CHUNKED:
        assert deep.ceiling_tps <= shallow.ceiling_tps * (1 + 1e-12)
    assert shallow.pencil_with_kv_tps <= shallow.pencil_ceiling_tps


@FEW
@given(MODELS, contexts(), DEPTHS, SPEEDS, st.floats(1, 100))
def test_generation_is_proportional_to_bandwidth(
    facts: ModelFacts, context: ContextSettings, depth: int, speed: float, times: float
) -> None:
    slow, fast = decode(facts, context, depth, speed), decode(facts, context, depth, speed * times)
    assert math.isclose(fast.ceiling_tps, slow.ceiling_tps * times, rel_tol=1e-9)
    assert fast.flop_per_byte == slow.flop_per_byte


@FEW
@given(MODELS, contexts())
def test_contexts_grow_with_what_is_asked_and_shrink_with_the_types(
    facts: ModelFacts, context: ContextSettings
) -> None:
    stored = context_memory(facts, context).stored_bytes
    assert (
        context_memory(facts, replace(context, n_ctx=context.n_ctx + 4096)).stored_bytes >= stored
    )
    small = replace(context, type_k="q4_0", type_v="q4_0")
    assert context_memory(facts, small).stored_bytes <= stored
    layers = context_memory(facts, context).layers
    assert stored == sum(layer.stored_bytes for layer in layers)
    assert compute_bytes_upper(facts, replace(context, n_ctx=context.n_ctx + 4096)) >= (
        compute_bytes_upper(facts, context)
    )


@FEW
@given(
    MODELS,
    contexts(),
    st.integers(-1, 80),
    st.integers(0, 80),
    st.lists(st.floats(0.01, 10), min_size=0, max_size=3),
)
def test_a_split_sums_to_the_whole(
    facts: ModelFacts,
    context: ContextSettings,
    n_gpu_layers: int,
    n_cpu_moe: int,
    shares: list[float],
) -> None:
    asked = PlacementSettings(
        n_gpu_layers=n_gpu_layers, n_cpu_moe=n_cpu_moe, tensor_split=tuple(shares)
    )
    placed = place(facts, context, asked)
    stored = context_memory(facts, context).stored_bytes
    assert sum(device.context_bytes for device in placed.devices) == stored
    alone = place(facts, context, PlacementSettings(tensor_split=()))
    whole = alone.devices[0]
    held = sum(device.weights_bytes for device in placed.devices)
    table = max((t.n_bytes for t in facts.tensors if t.name == "token_embd.weight"), default=0)
    assert whole.weights_bytes <= held <= whole.weights_bytes + table + 4096
    layers = sorted(layer for device in placed.devices for layer in device.layers)
    assert layers == list(whole.layers)
    assert (placed.graph_splits or 0) >= (1 if not shares else alone.graph_splits or 0)


@FEW
@given(MODELS, st.integers(1, 3000), st.integers(1, 600), SPEEDS, st.floats(1e10, 1e15))
def test_a_prompt_is_as_fast_as_its_slower_side(
    facts: ModelFacts, n_prompt: int, n_ubatch: int, speed: float, flop_per_s: float
) -> None:
    ceiling = prefill_ceiling(
        facts,
        ContextSettings(n_ctx=4096, n_ubatch=n_ubatch),
        n_prompt=n_prompt,
        bandwidth=Bandwidth(bytes_per_s=speed),
        peak=Peak(flop_per_s=flop_per_s),
    )
    assert ceiling.ceiling_tps is not None
    assert ceiling.expected_tps is not None
    compute_tps = flop_per_s / ceiling.flop_per_token
    assert ceiling.ceiling_tps <= min(compute_tps, ceiling.memory_tps) * (1 + 1e-9)
    assert ceiling.ceiling_tps >= 1 / (1 / compute_tps + 1 / ceiling.memory_tps) * (1 - 1e-9)
    assert ceiling.expected_tps <= ceiling.ceiling_tps * (1 + 1e-12)


@FEW
@given(MODELS, st.integers(0, 20_000), st.integers(1, 500), SPEEDS, st.floats(1, 1e5))
def test_more_streams_are_never_slower_together(
    facts: ModelFacts, n_depth: int, n_streams: int, speed: float, prefill_tps: float
) -> None:
    few, more = (
        concurrency_ceiling(
            facts,
            ContextSettings(n_ctx=4096),
            n_streams=n,
            n_depth=n_depth,
            bandwidth=Bandwidth(bytes_per_s=speed),
            prefill_tps=prefill_tps,
        )
        for n in (n_streams, n_streams + 1)
    )
    assert more.ceiling_tps >= few.ceiling_tps * (1 - 1e-12)
    for both in (few, more):
        assert both.estimate_tps is not None
        assert both.estimate_tps <= both.ceiling_tps


@FEW
@given(MODELS, st.integers(1, 5000))
def test_expected_experts_stay_between_one_tokens_and_all(facts: ModelFacts, n: int) -> None:
    batch, one = batch_traffic(facts, n), batch_traffic(facts, 1)
    assert one.least_bytes <= batch.least_bytes
    assert batch.least_bytes <= batch.expected_bytes * (1 + 1e-12)
    assert batch.expected_bytes <= batch.most_bytes * (1 + 1e-12)
    if facts.n_expert:
        expected = expected_experts(facts.n_expert, facts.n_expert_used, n)
        assert facts.n_expert_used * (1 - 1e-12) <= expected <= facts.n_expert


@FEW
@given(DEPTHS, st.integers(1, 3000), st.integers(1, 3000), st.none() | st.integers(1, 9000))
def test_pairs_of_two_stretches_add_up(n_depth: int, a: int, b: int, window: int | None) -> None:
    for is_chunked in (False, window is not None):
        whole = visible_pairs(n_depth, a + b, window, is_chunked=is_chunked)
        first = visible_pairs(n_depth, a, window, is_chunked=is_chunked)
        assert whole == first + visible_pairs(n_depth + a, b, window, is_chunked=is_chunked)
        assert a + b <= whole


def cell(facts: ModelFacts, n_prompt: int, n_gen: int) -> CellCeiling:
    return cell_ceiling(
        facts,
        n_prompt=n_prompt,
        n_gen=n_gen,
        n_depth=100,
        bandwidth_bytes_per_s=1e11,
        peak_flop_per_s=1e13,
    )


@FEW
@given(MODELS, st.integers(0, 4000), st.integers(0, 300))
def test_a_cell_has_a_ceiling_or_a_reason(facts: ModelFacts, n_prompt: int, n_gen: int) -> None:
    ceiling = cell(facts, n_prompt, n_gen)
    assert (ceiling.ceiling_tps is None) == (ceiling.reason is not None)
    assert (ceiling.ceiling_tps is None) == (n_prompt + n_gen == 0)
    if ceiling.ceiling_tps is not None:
        assert math.isfinite(ceiling.ceiling_tps)
        assert ceiling.ceiling_tps > 0
        assert ceiling.assumptions


@FEW
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_times_of_a_request_add_up(n_prompt: int, n_gen: int, pp: float, tg: float) -> None:
    request = workload(n_prompt, n_gen, prefill_tps=pp, decode_tps=tg)
    assert request.e2e_s == request.ttft_s + request.decode_s
    assert 0 < request.prefill_fraction <= 1


@FEW
@given(st.floats(1, 1e12), st.floats(0, 1e10), st.integers(1, 1000), SPEEDS, st.floats(0.1, 1e6))
def test_the_estimate_of_streams_lies_between_half_the_ceiling_and_it(
    weights: float, context: float, n: int, speed: float, compute_tps: float
) -> None:
    rates = stream_rates(weights, context, n, Bandwidth(bytes_per_s=speed), compute_tps)
    assert rates.estimate_tps is not None
    assert rates.ceiling_tps / 2 * (1 - 1e-9) <= rates.estimate_tps
    assert rates.estimate_tps <= rates.ceiling_tps * (1 + 1e-9)


KEYS = (
    "block_count", "nextn_predict_layers", "embedding_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length", "attention.key_length_mla", "attention.value_length_mla",
    "attention.sliding_window", "attention.sliding_window_pattern", "attention.shared_kv_layers",
    "attention.indexer.key_length", "attention.indexer.top_k", "attention.indexer.head_count", "expert_count",
    "expert_used_count", "expert_feed_forward_length", "feed_forward_length", "full_attention_interval",
    "attention.recurrent_layers", "ssm.inner_size", "ssm.state_size", "ssm.conv_kernel", "ssm.group_count",
    "shortconv.l_cache", "context_length",
)  # fmt: skip
NAMES = (
    "token_embd.weight", "output.weight", "output_norm.weight", "rope_freqs.weight", "blk.0.attn_q.weight",
    "blk.1.ffn_up_exps.weight", "blk.2.nextn.eh_proj.weight", "blk.9999.attn_k.weight", "blk.0.attn_k.weight",
    "per_layer_token_embd.weight", "blk.x", "", "altup_proj.weight",
)  # fmt: skip
VALUES = (
    st.integers(0, 8)
    | st.integers(-1, 2**33)
    | st.lists(st.integers(0, 4), max_size=9).map(tuple)
    | st.sampled_from(["many", 1.5, True, None])
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(MODELLED)) | st.text(max_size=8),
    st.dictionaries(st.sampled_from(KEYS), VALUES),
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.lists(st.integers(1, 64), max_size=4)), min_size=1
    ),
    KINDS,
    st.booleans(),
)
def test_whatever_a_file_says_there_is_a_ceiling_or_a_reason(
    arch: str,
    keys: dict[str, object],
    tensors: list[tuple[str, list[int]]],
    kind: str,
    flash_attn: bool,
) -> None:
    facts = facts_from(
        {"general.architecture": arch or "x", **{f"{arch}.{k}": v for k, v in keys.items()}},
        [
            TensorInfo(name=name, ne=tuple(ne), ggml_type="f16", n_bytes=tensor_bytes("f16", ne))
            for name, ne in tensors
        ],
        array_lengths={},
    )
    for n_prompt, n_gen in ((64, 0), (0, 8), (64, 8)):
        ceiling = cell_ceiling(
            facts,
            n_prompt=n_prompt,
            n_gen=n_gen,
            n_depth=300,
            type_k=kind,
            type_v=kind,
            flash_attn=flash_attn,
            bandwidth_bytes_per_s=1e10,
            peak_flop_per_s=1e12,
            machine=Machine(bandwidths=(Bandwidth(bytes_per_s=1e10),)) if n_prompt == 0 else None,
            placement=PlacementSettings(tensor_split=()) if n_prompt == 0 else None,
        )
        assert (ceiling.ceiling_tps is None) == (ceiling.reason is not None)
        assert ceiling.ceiling_tps is None or 0 < ceiling.ceiling_tps < math.inf
        assert len(ceiling.reason or "") < 300
    if ceiling.ceiling_tps is not None:
        assert not_modelled(facts) is None
        context = ContextSettings(n_ctx=512)
        assert context_memory(facts, context).stored_bytes >= 0
        if facts.n_embd is None or facts.n_vocab is None:
            with pytest.raises(ModelFileError, match=r"embedding_length|vocabulary"):
                compute_bytes_upper(facts, context)
        else:
            assert compute_bytes_upper(facts, context) >= 0
