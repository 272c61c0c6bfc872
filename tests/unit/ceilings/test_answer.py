"""One answer: its keys, how its parts hang together, and what it says where nothing is known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.ceilings.reference import facts_of, quantised, reference_models

from llamasweep.ceilings.answer import Answer, answer
from llamasweep.ceilings.answer_pencil import pencil_answer
from llamasweep.ceilings.cell import cell_ceiling
from llamasweep.ceilings.decode import PencilModel
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Processor, Rig, rig_of, with_sizes
from llamasweep.errors import NotModelledError

KEYS = {
    "model": "arch name quant n_params size_bytes bits_per_weight n_active_params "
    "active_bytes_per_token tied_embeddings n_expert n_expert_used",
    "kv_cache": "n_ctx bytes_per_token_full bytes_per_token_swa swa_cells recurrent_state_bytes "
    "allocated_bytes read_bytes_per_step",
    "decode": "bytes_per_token bandwidth_bytes_per_s ceiling_tps pencil_ceiling_tps "
    "pencil_with_kv_tps flop_per_byte ridge_flop_per_byte",
    "prefill": "flop_per_token pencil_flop_per_token ceiling_tps bound ridge_tokens",
    "concurrency": "streams ceiling_tps estimate_tps",
    "memory": "weights_bytes context_bytes compute_bytes_upper reserve_bytes total_bytes "
    "available_bytes fits resident_bytes mapped_bytes",
    "workload": "n_prompt n_gen ttft_s decode_s e2e_s prefill_fraction",
}
M4_PRO = rig_of(["M4 Pro"])
SPLIT = with_sizes(rig_of(["RTX 3060 12GB", "DDR5-5600x2"]), ram_bytes=64 * 2**30, vram_bytes=None)


def plain(found: Answer) -> dict[str, Any]:
    """As JSON gives it back; NaN and infinity would raise."""
    document: dict[str, Any] = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    return document


def test_every_key_of_the_contract_is_there() -> None:
    found = plain(answer(quantised("Qwen3-4B", "Q4_K_M"), Question(), M4_PRO))

    for part, keys in KEYS.items():
        assert set(keys.split()) <= set(found[part]), part
    assert {"device", "weights_bytes", "context_bytes"} <= set(found["placement"][0])
    assert {"topic", "text"} == set(found["assumptions"][0])


def test_no_figure_is_missing_where_all_is_known() -> None:
    found = plain(answer(quantised("Gemma-3-4B", "Q4_K_M"), Question(n_streams=4), M4_PRO))

    empty = {
        f"{part}.{key}"
        for part, keys in KEYS.items()
        for key in keys.split()
        if found[part][key] is None
    }
    assert not empty
    assert found["reasons"] == {}


@pytest.mark.parametrize("name", sorted(reference_models()))
def test_every_reference_model_has_an_answer(name: str) -> None:
    facts = reference_models()[name]

    found = plain(answer(facts, Question(n_depth=1000), rig_of(["M3 Ultra"])))

    assert found["model"]["size_bytes"] == facts.size_bytes
    assert 0 < found["decode"]["bytes_per_token"] <= 2 * facts.size_bytes
    assert found["decode"]["ceiling_tps"] > 0


@pytest.mark.parametrize("n_depth", [0, 5000])
@pytest.mark.parametrize("shape", ["Mistral-Nemo-12B", "Gemma-3-4B", "Qwen3-30B-A3B"])
def test_rates_are_those_of_a_cell_of_a_sweep(shape: str, n_depth: int) -> None:
    facts = quantised(shape, "Q4_K_M")
    found = answer(facts, Question(n_depth=n_depth), M4_PRO)

    for n_prompt, n_gen, tps in (
        (512, 0, found.prefill.ceiling_tps),
        (0, 128, found.decode.ceiling_tps),
    ):
        cell = cell_ceiling(
            facts,
            n_prompt=n_prompt,
            n_gen=n_gen,
            n_depth=n_depth,
            bandwidth_bytes_per_s=273e9,
            peak_flop_per_s=M4_PRO.processors[0].peak_for(facts),
        )
        assert cell.ceiling_tps == pytest.approx(tps)


def test_the_seed_with_32_streams_comes_out() -> None:
    question = Question(n_streams=32, prefill_tps=286)
    streams = answer(reference_models()["Mistral-Nemo-12B"], question, M4_PRO).concurrency

    assert streams.ceiling_tps == 286
    assert streams.estimate_tps == pytest.approx(230, rel=0.01)
    assert streams.bound == "compute"


def test_times_of_a_spread_model_add() -> None:
    facts = quantised("Qwen3-30B-A3B", "Q4_K_M")
    found = answer(facts, Question(n_cpu_moe=24, n_depth=2000), SPLIT)

    seconds = sum(
        part.read_bytes_per_token / (part.bandwidth_bytes_per_s or 0) for part in found.placement
    )
    assert found.decode.ceiling_tps == pytest.approx(1 / seconds)
    assert found.decode.bytes_per_token == pytest.approx(
        sum(part.read_bytes_per_token for part in found.placement)
    )
    assert found.memory.weights_bytes == facts.size_bytes
    assert found.prefill.ceiling_tps is None
    assert found.prefill.flop_per_token is not None
    assert "several devices" in found.reasons["prefill.ceiling_tps"]
    assert found.workload.decode_s is not None
    assert found.workload.e2e_s is None


def test_a_card_alone_fits_without_a_word_about_the_host() -> None:
    found = answer(quantised("Qwen3-4B", "Q4_K_M"), Question(), rig_of(["RTX 4090"]))

    assert found.memory.fits is True
    assert found.memory.available_bytes == 24 * 2**30
    assert any("host" in a.text for a in found.assumptions if a.topic == "memory")


def test_experts_on_an_unknown_host_have_no_rate_and_a_reason() -> None:
    question = Question(n_cpu_moe=10)
    found = answer(quantised("Qwen3-30B-A3B", "Q4_K_M"), question, rig_of(["RTX 4090"]))

    assert found.decode.ceiling_tps is None
    assert found.decode.bytes_per_token is not None
    assert "the host's memory was not named" in found.reasons["decode.ceiling_tps"]
    assert found.memory.fits is None


def test_two_cards_without_a_host_have_a_rate() -> None:
    found = answer(quantised("Qwen3-32B", "Q4_K_M"), Question(), rig_of(["2 x RTX 3090"]))

    bytes_per_token, rate = found.decode.bytes_per_token, found.decode.ceiling_tps
    assert bytes_per_token is not None
    assert rate == pytest.approx(936.2e9 / bytes_per_token, rel=1e-3)
    assert [part.n_layers for part in found.placement if part.n_layers] == [33, 31]


def test_the_disk_gives_a_range_where_memory_is_too_small() -> None:
    host = M4_PRO.processors[0]
    assert host.bandwidth is not None
    fast, slow = replace(host.bandwidth, bytes_per_s=5e9), replace(host.bandwidth, bytes_per_s=1e8)
    rig = Rig(host=host._replace(memory_bytes=32 * 2**30, disk=(fast, slow)))

    memory = answer(quantised("Qwen3-30B-A3B", "F16"), Question(), rig).memory

    assert memory.fits is False
    assert memory.mapped_bytes is not None
    assert memory.mapped_bytes > 0
    assert memory.disk is not None
    assert 0 < memory.disk.slowest_tps < memory.disk.fastest_tps
    assert plain(answer(quantised("Qwen3-30B-A3B", "F16"), Question(), rig))["memory"]["disk"]


def test_nothing_is_guessed_of_an_architecture_that_is_not_modelled() -> None:
    facts = facts_of(
        {"general.architecture": "rwkv7", "rwkv7.block_count": 2},
        [("token_embd.weight", (64, 100), "f16"), ("blk.0.x.weight", (64, 64), "q8_0")],
    )
    found = answer(facts, Question(), M4_PRO)

    assert found.decode.ceiling_tps is None
    assert found.decode.pencil_ceiling_tps == pytest.approx(273e9 / facts.size_bytes)
    assert "rwkv7" in found.reasons["decode.ceiling_tps"]
    assert found.memory.fits is None
    assert found.kv_cache.allocated_bytes is None
    assert plain(found)["model"]["n_active_params"] is None


def test_settings_that_llama_cpp_refuses_are_refused() -> None:
    question = Question(type_v="q8_0", flash_attn=False)
    with pytest.raises(NotModelledError, match="without flash attention"):
        answer(quantised("Qwen3-4B", "Q4_K_M"), question, M4_PRO)


def test_one_memory_does_not_mind_where_layers_are_put() -> None:
    facts = quantised("Qwen3-4B", "Q4_K_M")
    moved = answer(facts, Question(n_gpu_layers=10), M4_PRO)

    assert moved.decode == answer(facts, Question(), M4_PRO).decode
    assert any("one memory only" in a.text for a in moved.assumptions)


def test_measured_rates_take_the_place_of_ceilings_in_a_request() -> None:
    question = Question(
        n_request_prompt=1000, n_request_gen=101, prefill_tps=200.0, decode_tps=10.0
    )
    work = answer(quantised("Qwen3-4B", "Q4_K_M"), question, M4_PRO).workload

    assert (work.ttft_s, work.decode_s, work.e2e_s) == (5.0, 10.0, 15.0)
    assert work.prefill_fraction == pytest.approx(1 / 3)
    assert work.is_measured


def test_a_machine_whose_bandwidth_is_not_known_has_counts_and_a_reason() -> None:
    rig = Rig(host=Processor(name="this machine", reason="nobody measured it"))
    found = answer(quantised("Qwen3-4B", "Q4_K_M"), Question(), rig)

    assert found.decode.bytes_per_token is not None
    assert found.decode.ceiling_tps is None
    assert found.reasons["decode.ceiling_tps"] == "this machine: nobody measured it"
    assert found.prefill.reason == "nobody measured it"


# -- what is absent has a reason


def unexplained(found: Answer) -> list[str]:
    """Promised figures that are null with no reason under their name or their part's."""
    document = plain(found)
    parts = {name.partition(".")[0] for name in found.reasons}
    return [
        f"{part}.{key}"
        for part, keys in KEYS.items()
        for key in keys.split()
        if document[part][key] is None
        and not ({part, f"{part}.{key}"} & found.reasons.keys() or _is_told(part, document, parts))
    ]


def _is_told(part: str, document: dict[str, Any], parts: set[str]) -> bool:
    """A part whose figures all hang on one thing tells it once."""
    return part in ("model", "prefill", "concurrency", "decode") and (
        part in parts or bool(document[part].get("reason"))
    )


RIGS = {
    "a card": rig_of(["RTX 4090"]),
    "two cards": rig_of(["2 x RTX 3090"]),
    "memory": rig_of(["DDR5-5600x2"]),
    "a split": SPLIT,
    "unknown": Rig(host=Processor(name="this machine", reason="nobody measured it")),
}


@pytest.mark.parametrize("rig", RIGS.values(), ids=list(RIGS))
@pytest.mark.parametrize("n_gpu_layers", [-1, 3])
def test_every_absent_figure_has_a_reason(rig: Rig, n_gpu_layers: int) -> None:
    question = Question(n_gpu_layers=n_gpu_layers, n_streams=2)
    known = quantised("Qwen3-4B", "Q4_K_M")
    assert unexplained(answer(known, question, rig)) == []
    assert unexplained(answer(replace(known, arch="rwkv7"), question, rig)) == []
    model = PencilModel(params=177e9, active_params=6e9, bits_per_weight=4.27)
    assert unexplained(pencil_answer(model, question, rig)) == []


def test_reasons_that_follow_name_what_they_follow_from() -> None:
    found = answer(quantised("Qwen3-4B", "Q4_K_M"), Question(), rig_of(["DDR5-5600x2"]))
    no_peak = "no peak compute rate is known for this device"

    assert found.reasons["workload.ttft_s"] == no_peak
    assert found.reasons["decode.ridge_flop_per_byte"] == no_peak
    assert found.reasons["kv_cache.swa_cells"] == "no layer has a sliding window"
    assert "workload.decode_s" not in found.reasons


# -- lengths against the context


def context_notes(question: Question) -> list[str]:
    found = answer(quantised("Qwen3-4B", "Q4_K_M"), question, M4_PRO)
    return [a.text for a in found.assumptions if a.topic == "context"]


def test_the_context_holds_the_request_too() -> None:
    question = Question(n_request_prompt=8000, n_request_gen=500, n_streams=4)
    found = answer(quantised("Qwen3-4B", "Q4_K_M"), question, M4_PRO)

    assert found.kv_cache.n_ctx == 4 * 8704
    assert found.memory.context_bytes == 4 * 8704 * 147_456
    shorter = answer(quantised("Qwen3-4B", "Q4_K_M"), Question(n_request_prompt=8), M4_PRO)
    assert shorter.kv_cache.n_ctx == 768
    assert context_notes(question) == []


def test_a_context_beyond_the_model_s_own_is_told() -> None:
    n_train = quantised("Qwen3-4B", "Q4_K_M").n_ctx_train
    assert n_train is not None

    assert context_notes(Question(n_depth=n_train - 640)) == []
    (text,) = context_notes(Question(n_depth=n_train))
    assert f"{n_train + 640:,} tokens is longer than the {n_train:,}" in text
    assert len(context_notes(Question(n_ctx=n_train + 1))) == 1
    assert context_notes(Question(n_ctx=4 * n_train, n_streams=4)) == []


def test_a_context_that_does_not_hold_what_is_asked_is_told() -> None:
    (text,) = context_notes(Question(n_ctx=300))
    assert text.startswith("640 tokens are asked about, and the context holds 512:")
    assert context_notes(Question(n_ctx=640)) == []
    (text,) = context_notes(Question(n_ctx=2048, n_streams=4))
    assert "holds 512:" in text


# -- three numbers


def pencil(rig: Rig, **changes: float) -> Answer:
    numbers = {"params": 177e9, "active_params": 6e9, "bits_per_weight": 4.27, **changes}
    return pencil_answer(PencilModel(**numbers), Question(), rig)


def test_three_numbers_give_a_pencil_answer() -> None:
    found = pencil(rig_of(bandwidth_bytes_per_s=50e9))

    assert found.kind == "pencil"
    assert found.model.active_bytes_per_token == pytest.approx(3.2e9, rel=0.01)
    assert found.decode.pencil_ceiling_tps == pytest.approx(15.6, rel=0.01)
    assert found.decode.ceiling_tps is None
    assert found.memory.weights_bytes == pytest.approx(94.5e9, rel=0.01)
    assert plain(found)["kv_cache"]["n_ctx"] is None


def test_a_pencil_answer_has_the_same_keys() -> None:
    found = plain(pencil(rig_of(["RTX 4090"])))

    for part, keys in KEYS.items():
        assert set(keys.split()) <= set(found[part]), part
    assert found["memory"]["fits"] is False


def test_a_prompt_passes_the_active_parameters_only() -> None:
    found = pencil(rig_of(["RTX 4090"]))

    assert found.prefill.pencil_ceiling_tps == pytest.approx(660.6e12 / 12e9)
    assert found.workload.ttft_s == pytest.approx(512 / (660.6e12 / 12e9))


@pytest.mark.parametrize(
    "changes", [{"active_params": 178e9}, {"bits_per_weight": 0.0}, {"bits_per_weight": 65.0}]
)
def test_numbers_that_make_no_sense_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="bits per weight"):
        pencil(M4_PRO, **changes)


def test_pencil_figures_are_of_one_memory() -> None:
    found = pencil(rig_of(["2 x RTX 3090"]))

    assert found.decode.pencil_ceiling_tps is None
    assert "one memory" in found.reasons["decode.pencil_ceiling_tps"]
