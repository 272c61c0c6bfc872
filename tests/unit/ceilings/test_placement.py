"""Where weights and cells go, against 67 placements that llama.cpp reported."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import reference_models, rows

from llamasweep.ceilings.assumptions import Bandwidth
from llamasweep.ceilings.decode import decode_ceiling
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory
from llamasweep.ceilings.placement import Machine, PlacementSettings, place, placed_decode
from llamasweep.ceilings.traffic import weight_traffic

CONTEXT = ContextSettings(n_ctx=4096)


def model_of(file: str) -> str:
    """Name of the reference model behind a row of placement.csv."""
    return file.removesuffix("-Q4_K_M").removesuffix("-MXFP4_MOE")


def test_the_reference_table_is_whole() -> None:
    assert len(rows("placement.csv")) == 67


@pytest.mark.parametrize(
    "row",
    rows("placement.csv"),
    ids=lambda r: f"{r['file']}-{r['n_gpu_layers']}-{r['n_cpu_moe']}-{r['n_ctx']}-{r['n_ubatch']}",
)
def test_devices_hold_what_llama_cpp_put_there(row: dict[str, str]) -> None:
    placed = place(
        reference_models()[model_of(row["file"])],
        ContextSettings(n_ctx=int(row["n_ctx"]), n_ubatch=int(row["n_ubatch"])),
        PlacementSettings(n_gpu_layers=int(row["n_gpu_layers"]), n_cpu_moe=int(row["n_cpu_moe"])),
    )
    host, gpu = placed.devices
    assert abs(gpu.weights_bytes - int(row["gpu_model_bytes"])) <= 1024
    assert abs(host.weights_bytes - int(row["host_model_bytes"])) <= 1024
    assert gpu.context_bytes == int(row["gpu_context_bytes"])
    assert host.context_bytes == int(row["host_context_bytes"])
    assert placed.graph_splits == int(row["graph_splits"])


@pytest.mark.parametrize("name", list(reference_models()))
@pytest.mark.parametrize("n_gpu_layers", [0, 1, 7, -1])
def test_devices_together_read_what_one_would(name: str, n_gpu_layers: int) -> None:
    facts = reference_models()[name]
    placed = place(facts, CONTEXT, PlacementSettings(n_gpu_layers=n_gpu_layers, n_cpu_moe=3))
    traffic = weight_traffic(facts)
    doubled = sum(use.read_bytes for use in traffic.uses if use.tensor.name.startswith(("rope_f",)))
    extra = sum(d.active_bytes for d in placed.devices) - traffic.active_bytes
    assert 0 <= extra <= doubled
    context = sum(device.context_bytes for device in placed.devices)
    assert context == context_memory(facts, CONTEXT).stored_bytes


def test_a_tied_head_lies_on_both_sides() -> None:
    facts = reference_models()["Qwen3-4B"]
    host, gpu = place(facts, CONTEXT, PlacementSettings()).devices
    assert host.weights_bytes + gpu.weights_bytes - facts.size_bytes == host.weights_bytes
    assert host.weights_bytes == 319065600
    assert host.active_bytes == 2100, "a row of the table; the head is read on the other side"


def test_layers_are_cut_by_the_shares_of_several_devices() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    placed = place(facts, CONTEXT, PlacementSettings(tensor_split=(3.0, 1.0)))
    host, first, second = placed.devices
    assert (len(host.layers), len(first.layers), len(second.layers)) == (0, 25, 7)
    assert first.layers[-1] + 1 == second.layers[0]
    assert placed.graph_splits == 3
    assert any("were not compared" in a.text for a in placed.assumptions)
    rope = 256
    whole = place(facts, CONTEXT, PlacementSettings()).devices[1]
    assert first.weights_bytes + second.weights_bytes == whole.weights_bytes + rope


def test_without_accelerators_the_host_holds_all() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    placed = place(facts, CONTEXT, PlacementSettings(tensor_split=()))
    (host,) = placed.devices
    assert host.weights_bytes == facts.size_bytes
    assert placed.graph_splits == 1


def test_cells_may_stay_on_the_host() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    placed = place(facts, CONTEXT, PlacementSettings(kv_offload=False))
    host, gpu = placed.devices
    assert (host.context_bytes, gpu.context_bytes) == (536870912, 0)
    assert placed.graph_splits is None


def test_times_of_devices_add() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    placed = place(facts, CONTEXT, PlacementSettings(n_gpu_layers=17))
    machine = Machine(bandwidths=(Bandwidth(bytes_per_s=50e9), Bandwidth(bytes_per_s=500e9)))
    decode = placed_decode(facts, CONTEXT, placed, machine, n_depth=1000, n_gen=100)
    host, gpu = placed.devices
    kv_bytes = 131072 / 2 * 1050.5
    assert decode.device_s[0] == pytest.approx((host.active_bytes + kv_bytes) / 50e9)
    assert decode.device_s[1] == pytest.approx((gpu.active_bytes + kv_bytes) / 500e9)
    assert decode.ceiling_tps == pytest.approx(1 / sum(decode.device_s))
    slow = Machine(bandwidths=machine.bandwidths, handover_s=0.001)
    slower = placed_decode(facts, CONTEXT, placed, slow, n_depth=1000, n_gen=100)
    assert 1 / slower.ceiling_tps == pytest.approx(1 / decode.ceiling_tps + 0.001)


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-4B", "Qwen3-30B-A3B", "Falcon-H1-7B"])
def test_devices_of_one_speed_are_as_fast_as_one(name: str) -> None:
    facts = reference_models()[name]
    bandwidth = Bandwidth(bytes_per_s=100e9)
    placed = place(facts, CONTEXT, PlacementSettings(n_gpu_layers=9, n_cpu_moe=2))
    spread = placed_decode(
        facts, CONTEXT, placed, Machine(bandwidths=(bandwidth, bandwidth)), n_depth=64, n_gen=8
    )
    one = decode_ceiling(facts, CONTEXT, n_depth=64, n_gen=8, bandwidth=bandwidth)
    assert spread.ceiling_tps == pytest.approx(one.ceiling_tps, rel=1e-6)


def test_bandwidths_are_told_for_every_device() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    placed = place(facts, CONTEXT, PlacementSettings())
    machine = Machine(bandwidths=(Bandwidth(bytes_per_s=1e9),))
    with pytest.raises(ValueError, match="1 bandwidths for 2 devices"):
        placed_decode(facts, CONTEXT, placed, machine, n_depth=0, n_gen=1)


@pytest.mark.parametrize("shares", [(-1.0,), (0.0, 0.0), (float("nan"),), (float("inf"), 1.0)])
def test_senseless_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="shares"):
        PlacementSettings(tensor_split=shares)
    with pytest.raises(ValueError, match="make no sense"):
        PlacementSettings(n_cpu_moe=-1)
