"""The one call of the runner: a cell's axes in, its ceiling or a reason out."""

from __future__ import annotations

import dataclasses

import pytest
from tests.unit.ceilings.reference import facts_of, reference_models

from llamasweep.ceilings.assumptions import Bandwidth, Peak
from llamasweep.ceilings.cell import cell_ceiling
from llamasweep.ceilings.decode import decode_ceiling
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.placement import Machine, PlacementSettings
from llamasweep.ceilings.prefill import prefill_ceiling

NEMO = reference_models()["Mistral-Nemo-12B"]
BANDWIDTH = Bandwidth(bytes_per_s=273e9, basis="spec")
PEAK = Peak(flop_per_s=9e12, basis="spec")


def test_generation_is_the_decode_ceiling_in_llama_benchs_context() -> None:
    cell = cell_ceiling(NEMO, n_prompt=0, n_gen=128, n_depth=4096, bandwidth_bytes_per_s=BANDWIDTH)
    decode = decode_ceiling(
        NEMO, ContextSettings(n_ctx=4224), n_depth=4096, n_gen=128, bandwidth=BANDWIDTH
    )
    assert cell.kind == "tg"
    assert cell.ceiling_tps == decode.ceiling_tps
    assert cell.pencil_ceiling_tps == decode.pencil_ceiling_tps
    assert cell.bytes_per_token == decode.bytes_per_token
    assert cell.arithmetic_intensity == decode.flop_per_byte
    assert (cell.bound, cell.reason) == ("memory", None)
    assert cell.assumptions == decode.assumptions


def test_a_prompt_is_the_prefill_ceiling() -> None:
    cell = cell_ceiling(
        NEMO,
        n_prompt=4096,
        n_gen=0,
        n_batch=1024,
        n_ubatch=4096,
        bandwidth_bytes_per_s=BANDWIDTH,
        peak_flop_per_s=PEAK,
    )
    prefill = prefill_ceiling(
        NEMO,
        ContextSettings(n_ctx=4096, n_ubatch=1024),
        n_prompt=4096,
        n_batch=1024,
        bandwidth=BANDWIDTH,
        peak=PEAK,
    )
    assert cell.kind == "pp"
    assert cell.ceiling_tps == prefill.ceiling_tps
    assert cell.flop_per_token == prefill.flop_per_token
    assert cell.bound == "compute"
    assert cell.pencil_ceiling_tps == pytest.approx(9e12 / (2 * NEMO.n_params))


def test_a_prompt_without_a_peak_has_a_reason() -> None:
    cell = cell_ceiling(NEMO, n_prompt=512, n_gen=0, bandwidth_bytes_per_s=273e9)
    assert cell.ceiling_tps is None
    assert cell.pencil_ceiling_tps is None
    assert cell.reason == "no peak compute rate is known for this device"
    assert cell.flop_per_token is not None


def test_both_in_one_span_take_the_time_of_both() -> None:
    both = cell_ceiling(
        NEMO, n_prompt=512, n_gen=128, bandwidth_bytes_per_s=273e9, peak_flop_per_s=9e12
    )
    prompt = cell_ceiling(
        NEMO, n_prompt=512, n_gen=0, bandwidth_bytes_per_s=273e9, peak_flop_per_s=9e12
    )
    answer = cell_ceiling(
        NEMO,
        n_prompt=0,
        n_gen=128,
        n_depth=512,
        bandwidth_bytes_per_s=273e9,
        peak_flop_per_s=9e12,
    )
    assert both.kind == "pg"
    assert both.ceiling_tps is not None
    assert prompt.ceiling_tps is not None
    assert answer.ceiling_tps is not None
    seconds = 512 / prompt.ceiling_tps + 128 / answer.ceiling_tps
    assert both.ceiling_tps == pytest.approx(640 / seconds)
    assert both.bound == "memory"
    assert answer.ceiling_tps < both.ceiling_tps < prompt.ceiling_tps
    assert both.pencil_ceiling_tps is not None
    without = cell_ceiling(NEMO, n_prompt=512, n_gen=128, bandwidth_bytes_per_s=273e9)
    assert without.ceiling_tps is None
    assert "no peak" in (without.reason or "")


def test_an_unknown_architecture_keeps_the_pencil_and_says_its_name() -> None:
    facts = dataclasses.replace(NEMO, arch="qwen4exp")
    cell = cell_ceiling(facts, n_prompt=0, n_gen=128, bandwidth_bytes_per_s=273e9)
    assert cell.ceiling_tps is None
    assert cell.bound is None
    assert cell.pencil_ceiling_tps == pytest.approx(273e9 / facts.size_bytes)
    assert cell.reason == "not modelled: the architecture 'qwen4exp'"


def test_settings_that_llama_cpp_refuses_are_a_reason() -> None:
    cell = cell_ceiling(
        NEMO,
        n_prompt=0,
        n_gen=16,
        type_v="q8_0",
        flash_attn="off",
        bandwidth_bytes_per_s=273e9,
    )
    assert cell.ceiling_tps is None
    assert "without flash attention" in (cell.reason or "")


def test_missing_metadata_is_a_reason() -> None:
    facts = facts_of({"general.architecture": "llama"}, [("token_embd.weight", (256, 4), "f32")])
    cell = cell_ceiling(facts, n_prompt=0, n_gen=16, bandwidth_bytes_per_s=273e9)
    assert cell.reason == "the key 'llama.block_count' is missing"


def test_heads_of_an_unknown_size_are_a_reason_and_no_cache_of_nothing() -> None:
    facts = facts_of(
        {
            "general.architecture": "llama",
            "llama.block_count": 1,
            "llama.attention.head_count": 4,
        },
        [("token_embd.weight", (256, 4), "f32")],
    )
    cell = cell_ceiling(facts, n_prompt=0, n_gen=16, bandwidth_bytes_per_s=273e9)
    assert cell.ceiling_tps is None
    assert "embedding length is missing" in (cell.reason or "")


def test_a_test_of_nothing_is_a_reason() -> None:
    cell = cell_ceiling(NEMO, n_prompt=0, n_gen=0, bandwidth_bytes_per_s=1e9)
    assert cell.reason == "a test has tokens"


def test_flash_attention_at_auto_is_taken_on_and_said() -> None:
    auto = cell_ceiling(
        NEMO, n_prompt=0, n_gen=16, flash_attn="auto", type_v="q8_0", bandwidth_bytes_per_s=1e9
    )
    assert auto.ceiling_tps is not None
    assert "left to the engine" in auto.assumptions[-1].text


def test_a_model_over_two_devices() -> None:
    slow, fast = Bandwidth(bytes_per_s=50e9), Bandwidth(bytes_per_s=500e9)
    rates = {}
    for n_gpu_layers in (0, 20, -1):
        cell = cell_ceiling(
            NEMO,
            n_prompt=0,
            n_gen=64,
            bandwidth_bytes_per_s=fast,
            machine=Machine(bandwidths=(slow, fast)),
            placement=PlacementSettings(n_gpu_layers=n_gpu_layers),
        )
        assert cell.ceiling_tps is not None
        rates[n_gpu_layers] = cell.ceiling_tps
    assert rates[0] == pytest.approx(50e9 / 7091837760, rel=0.01)
    assert rates[0] < rates[20] < rates[-1]
    prompt = cell_ceiling(
        NEMO,
        n_prompt=64,
        n_gen=0,
        bandwidth_bytes_per_s=fast,
        peak_flop_per_s=1e12,
        machine=Machine(bandwidths=(slow, fast)),
        placement=PlacementSettings(n_gpu_layers=20),
    )
    assert prompt.ceiling_tps is None
    assert "several devices" in (prompt.reason or "")
