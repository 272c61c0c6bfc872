"""The bound on compute buffers against llama.cpp's own, fits, and models that come from disk."""

from __future__ import annotations

import statistics

import pytest
from tests.unit.ceilings.reference import reference_models, rows
from tests.unit.ceilings.test_kv_cache import settings_of
from tests.unit.ceilings.test_placement import model_of

from llamasweep.ceilings.assumptions import Bandwidth
from llamasweep.ceilings.decode import PencilModel, decode_ceiling
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.memory_fit import (
    DEVICE_RESERVE_BYTES,
    SYSTEM_RESERVE_BYTES,
    DiskTier,
    MemoryFit,
    compute_bytes_upper,
    disk_decode,
    largest_n_ctx,
    memory_fit,
    tiered_tps,
)
from llamasweep.ceilings.placement import PlacementSettings, place
from llamasweep.ceilings.traffic import weight_traffic

HOST_ONLY = PlacementSettings(tensor_split=())
CONTEXT = ContextSettings(n_ctx=4096)
DISK = DiskTier(
    ram=Bandwidth(bytes_per_s=50e9),
    sequential=Bandwidth(bytes_per_s=3e9),
    random=Bandwidth(bytes_per_s=0.05e9),
)


def test_compute_buffers_are_never_above_the_bound_and_not_far_below() -> None:
    ratios = [
        compute_bytes_upper(reference_models()[row["model"]], settings_of(row))
        / int(row["cpu_compute_buffer_bytes"])
        for row in rows("context_sizes.csv")
    ]
    assert len(ratios) == 390
    assert min(ratios) >= 1.0
    assert max(ratios) <= 2.5
    assert statistics.median(ratios) <= 1.25


@pytest.mark.parametrize("side", ["gpu", "host"])
def test_the_bound_holds_on_both_sides_of_a_split(side: str) -> None:
    for row in rows("placement.csv"):
        settings = ContextSettings(n_ctx=int(row["n_ctx"]), n_ubatch=int(row["n_ubatch"]))
        bound = compute_bytes_upper(reference_models()[model_of(row["file"])], settings)
        assert bound >= int(row[f"{side}_compute_bytes"])


@pytest.mark.parametrize("name", list(reference_models()))
def test_the_bound_grows_with_the_physical_batch_alone_where_the_context_is_long(name: str) -> None:
    facts = reference_models()[name]
    small, large = (
        compute_bytes_upper(facts, ContextSettings(n_ctx=8192, n_ubatch=u)) for u in (256, 512)
    )
    assert small < large <= 2 * small * 1.2


def fit_of(name: str, available: tuple[int | None, ...], placement: PlacementSettings) -> MemoryFit:
    """Of a reference model in 4,096 cells."""
    facts = reference_models()[name]
    placed = place(facts, CONTEXT, placement)
    return memory_fit(facts, CONTEXT, placed, available_bytes=available)


def test_a_model_fits_to_the_byte() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    need = facts.size_bytes + 536870912 + compute_bytes_upper(facts, CONTEXT)
    need += SYSTEM_RESERVE_BYTES
    fits = fit_of("Llama-3.1-8B", (need,), HOST_ONLY)
    assert fits.fits is True
    assert fits.devices[0].total_bytes == need
    assert (fits.resident_bytes, fits.mapped_bytes) == (facts.size_bytes, 0)
    short = fit_of("Llama-3.1-8B", (need - 1,), HOST_ONLY)
    assert short.fits is False
    assert (short.resident_bytes, short.mapped_bytes) == (facts.size_bytes - 1, 1)


def test_all_is_mapped_where_not_even_the_context_fits() -> None:
    fit = fit_of("Llama-3.1-8B", (10**9,), HOST_ONLY)
    assert fit.resident_bytes == 0
    assert fit.mapped_bytes == reference_models()["Llama-3.1-8B"].size_bytes
    assert any("mmap" in a.text for a in fit.assumptions)


def test_unknown_memory_makes_an_unknown_fit_not_a_false_one() -> None:
    fit = fit_of("Llama-3.1-8B", (64 * 10**9, None), PlacementSettings())
    assert fit.devices[1].fits is None
    assert fit.fits is None
    assert fit_of("Llama-3.1-8B", (None,), HOST_ONLY).resident_bytes is None
    known_short = fit_of("Llama-3.1-8B", (None, 10**9), PlacementSettings())
    assert known_short.fits is False


def test_a_device_without_anything_needs_nothing() -> None:
    fit = fit_of("Llama-3.1-8B", (64 * 10**9, 0), PlacementSettings(n_gpu_layers=0))
    assert fit.devices[1].total_bytes == 0
    assert fit.fits is True
    gpu = fit_of("Llama-3.1-8B", (64 * 10**9, 0), PlacementSettings()).devices[1]
    assert gpu.reserve_bytes == DEVICE_RESERVE_BYTES


def test_memory_is_told_for_every_device() -> None:
    with pytest.raises(ValueError, match="1 devices, there are 2"):
        fit_of("Llama-3.1-8B", (1,), PlacementSettings())


def test_the_largest_context_fits_and_the_next_does_not() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    available = (16_000_000_000,)
    n_ctx = largest_n_ctx(facts, CONTEXT, HOST_ONLY, available_bytes=available)
    assert n_ctx is not None
    for asked, fits in ((n_ctx, True), (n_ctx + 256, False)):
        settings = ContextSettings(n_ctx=asked)
        placed = place(facts, settings, HOST_ONLY)
        assert memory_fit(facts, settings, placed, available_bytes=available).fits is fits


def test_the_largest_context_ends_where_the_model_or_the_caller_does() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    much = (10**12,)
    assert largest_n_ctx(facts, CONTEXT, HOST_ONLY, available_bytes=much) == 131072
    limited = largest_n_ctx(facts, CONTEXT, HOST_ONLY, available_bytes=much, limit=5000)
    assert limited == 5120
    assert largest_n_ctx(facts, CONTEXT, HOST_ONLY, available_bytes=(10**9,)) is None


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-30B-A3B"])
def test_what_is_resident_runs_at_the_speed_of_memory(name: str) -> None:
    facts = reference_models()[name]
    whole = disk_decode(
        facts, CONTEXT, resident_bytes=facts.size_bytes, n_depth=0, n_gen=64, disk=DISK
    )
    exact = decode_ceiling(facts, CONTEXT, n_depth=0, n_gen=64, bandwidth=DISK.ram)
    assert whole.fastest_tps == pytest.approx(exact.ceiling_tps)
    assert whole.slowest_tps == whole.fastest_tps


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-30B-A3B", "GLM-4.5-Air"])
def test_less_in_memory_is_slower_and_the_range_is_ordered(name: str) -> None:
    facts = reference_models()[name]
    last = float("inf")
    for share in (1.0, 0.95, 0.6, 0.2, 0.0):
        resident = round(weight_traffic(facts).loaded_bytes * share)
        disk = disk_decode(facts, CONTEXT, resident_bytes=resident, n_depth=0, n_gen=64, disk=DISK)
        assert disk.slowest_tps <= disk.fastest_tps <= last
        assert disk.least_cold_bytes <= disk.most_cold_bytes
        last = disk.fastest_tps
    assert disk.least_cold_bytes == pytest.approx(disk.most_cold_bytes, rel=1e-3)


def test_the_seeds_collapse_is_reached_in_two_ways() -> None:
    bytes_per_token = PencilModel(
        params=177e9, active_params=6e9, bits_per_weight=4.27
    ).bytes_per_token
    at_random = bytes_per_token * 0.013
    assert tiered_tps(
        bytes_per_token - at_random, at_random, DISK.ram, DISK.random
    ) == pytest.approx(1.1, abs=0.05)
    in_order = bytes_per_token * 0.84
    assert tiered_tps(
        bytes_per_token - in_order, in_order, DISK.ram, DISK.sequential
    ) == pytest.approx(1.1, abs=0.05)
