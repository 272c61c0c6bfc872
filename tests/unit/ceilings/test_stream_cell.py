"""The ceiling of one cell with several streams: generation by hand, prompts in shared batches, and what is absent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.ceilings.reference import reference_models

from llamasweep.ceilings.assumptions import Bandwidth, Peak
from llamasweep.ceilings.cell import CellCeiling, cell_ceiling
from llamasweep.ceilings.concurrency import NO_COMPUTE_LINE
from llamasweep.ceilings.flop import decode_flop
from llamasweep.ceilings.kv_cache import ContextSettings, kv_read_bytes
from llamasweep.ceilings.prefill import NO_PEAK, prefill_ceiling
from llamasweep.ceilings.stream_cell import (
    ESTIMATES_GENERATION,
    OVERLAPPING,
    stream_cell_ceiling,
)
from llamasweep.ceilings.traffic import batch_traffic, weight_traffic

MEMORY = Bandwidth(bytes_per_s=273e9, basis="spec")
PEAK = Peak(flop_per_s=8e12, basis="spec")
REFERENCE = replace(PEAK, is_reference=True)
MODELS = reference_models()


def ceiling(
    lengths: tuple[int, int, int],
    *,
    n_streams: int = 8,
    name: str = "Llama-3.1-8B",
    peak: Peak | None = PEAK,
    is_overlapping: bool = False,
) -> CellCeiling:
    return stream_cell_ceiling(
        MODELS[name],
        ContextSettings(n_ctx=max(1, sum(lengths))),
        n_streams=n_streams,
        lengths=lengths,
        n_batch=2048,
        bandwidth=MEMORY,
        peak=peak,
        is_overlapping=is_overlapping,
    )


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-30B-A3B"])
def test_generation_by_hand(name: str) -> None:
    """Least experts in the ceiling, uniform routing in the estimate."""
    facts, context = MODELS[name], ContextSettings(n_ctx=640)
    found = ceiling((0, 128, 512), name=name)
    weights, kv = batch_traffic(facts, 8), kv_read_bytes(facts, context, 512, 128)
    compute_s = 8 * decode_flop(facts, 512, 128) / 8e12
    least_s = (weights.least_bytes + 8 * kv) / 273e9
    expected_s = (weights.expected_bytes + 8 * kv) / 273e9
    assert found.ceiling_tps == pytest.approx(8 / max(least_s, compute_s))
    assert found.estimate_tps == pytest.approx(8 / (expected_s + compute_s))
    assert found.estimate_reason is None
    assert found.bytes_per_token == pytest.approx((weights.least_bytes + 8 * kv) / 8)
    assert found.pencil_ceiling_tps is None
    assert {"bandwidth", "peak", "streams"} <= {a.topic for a in found.assumptions}


def test_one_stream_is_a_cell_of_one() -> None:
    alone = cell_ceiling(
        MODELS["Llama-3.1-8B"],
        n_prompt=0,
        n_gen=128,
        bandwidth_bytes_per_s=MEMORY,
        peak_flop_per_s=PEAK,
    )
    assert ceiling((0, 128, 0), n_streams=1).ceiling_tps == pytest.approx(alone.ceiling_tps)


def test_many_streams_are_bound_by_compute_and_few_by_memory() -> None:
    few, many = ceiling((0, 128, 0), n_streams=2), ceiling((0, 128, 0), n_streams=256)
    assert (few.bound, many.bound) == ("memory", "compute")
    assert few.ceiling_tps is not None
    assert many.ceiling_tps is not None
    assert few.ceiling_tps < many.ceiling_tps


def test_a_reference_peak_makes_a_reference_only_where_it_binds() -> None:
    assert not ceiling((0, 128, 0), n_streams=2, peak=REFERENCE).is_reference
    assert ceiling((0, 128, 0), n_streams=256, peak=REFERENCE).is_reference


def test_without_a_peak_memory_bounds_generation_and_nothing_is_estimated() -> None:
    found = ceiling((0, 128, 0), peak=None)
    assert found.ceiling_tps == pytest.approx(273e9 / (found.bytes_per_token or 0))
    assert (found.estimate_tps, found.estimate_reason) == (None, NO_COMPUTE_LINE)
    assert ceiling((512, 0, 0), peak=None).reason == NO_PEAK


@pytest.mark.parametrize("n_prompt", [32, 512, 3000])
def test_prompts_calculate_as_much_and_read_the_weights_less_often(n_prompt: int) -> None:
    facts = MODELS["Llama-3.1-8B"]
    context = ContextSettings(n_ctx=n_prompt)
    one = prefill_ceiling(facts, context, n_prompt=n_prompt, bandwidth=MEMORY, peak=PEAK)
    found = ceiling((n_prompt, 0, 0))
    assert found.flop_per_token == pytest.approx(one.flop_per_token)
    assert found.bytes_per_token is not None
    n_passes = -(-8 * n_prompt // 512)
    least = n_passes * (weight_traffic(facts).dense_bytes - weight_traffic(facts).head_bytes)
    assert found.bytes_per_token <= one.bytes_per_token
    assert found.bytes_per_token * 8 * n_prompt >= least * 0.8
    assert found.estimate_reason == ESTIMATES_GENERATION
    assert found.ceiling_tps is not None
    assert one.ceiling_tps is not None
    assert found.ceiling_tps >= one.ceiling_tps * 0.999


def test_short_prompts_gain_by_being_read_together() -> None:
    fast = Peak(flop_per_s=4e14, basis="spec")
    alone = ceiling((16, 0, 0), n_streams=1, peak=fast)
    together = ceiling((16, 0, 0), n_streams=8, peak=fast)
    assert alone.bound == "memory"
    assert together.ceiling_tps is not None
    assert together.ceiling_tps > 3 * (alone.ceiling_tps or 0)


def test_a_test_of_both_is_the_sum_of_its_parts_unless_they_overlap() -> None:
    both = ceiling((512, 64, 0))
    prompts, answers = ceiling((512, 0, 0)).ceiling_tps, ceiling((0, 64, 512)).ceiling_tps
    assert prompts is not None
    assert answers is not None
    assert both.ceiling_tps == pytest.approx(576 / (512 / prompts + 64 / answers), rel=1e-3)
    overlapping = ceiling((512, 64, 0), is_overlapping=True)
    assert (overlapping.ceiling_tps, overlapping.reason) == (None, OVERLAPPING)
    assert ceiling((512, 64, 0), peak=None).reason == NO_PEAK


def test_what_is_not_modelled_has_its_reason() -> None:
    alien = replace(MODELS["Llama-3.1-8B"], arch="llamazilla")
    for lengths in ((512, 0, 0), (0, 64, 0), (512, 64, 0)):
        found = stream_cell_ceiling(
            alien,
            ContextSettings(n_ctx=1024),
            n_streams=2,
            lengths=lengths,
            n_batch=2048,
            bandwidth=MEMORY,
            peak=PEAK,
            is_overlapping=False,
        )
        assert found.ceiling_tps is None
        assert "llamazilla" in (found.reason or "")
        assert found.estimate_reason == found.reason
