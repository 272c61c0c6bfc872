"""Several streams on one device."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import reference_models

from llamasweep.ceilings.assumptions import Bandwidth, Peak
from llamasweep.ceilings.concurrency import concurrency_ceiling, stream_rates
from llamasweep.ceilings.decode import decode_ceiling
from llamasweep.ceilings.flop import decode_flop
from llamasweep.ceilings.kv_cache import ContextSettings, kv_read_bytes
from llamasweep.ceilings.traffic import batch_traffic

CONTEXT = ContextSettings(n_ctx=4096)
FAST = Bandwidth(bytes_per_s=273e9, basis="spec")
PEAK = Peak(flop_per_s=8e12, basis="spec")


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-30B-A3B", "Mamba-Codestral-7B"])
def test_one_stream_is_a_decode(name: str) -> None:
    facts = reference_models()[name]
    one = concurrency_ceiling(facts, CONTEXT, n_streams=1, n_depth=512, bandwidth=FAST)
    alone = decode_ceiling(facts, CONTEXT, n_depth=512, n_gen=1, bandwidth=FAST)
    assert one.ceiling_tps == pytest.approx(alone.ceiling_tps)
    assert one.estimate_tps is None
    assert "neither a peak nor" in (one.reason or "")


def test_by_hand() -> None:
    facts = reference_models()["Qwen3-30B-A3B"]
    both = concurrency_ceiling(facts, CONTEXT, n_streams=16, n_depth=512, bandwidth=FAST, peak=PEAK)
    weights = batch_traffic(facts, 16)
    kv_bytes = kv_read_bytes(facts, CONTEXT, 512, 1)
    compute_s = 16 * decode_flop(facts, 512, 1) / 8e12
    least_s = (weights.least_bytes + 16 * kv_bytes) / 273e9
    expected_s = (weights.expected_bytes + 16 * kv_bytes) / 273e9
    assert both.ceiling_tps == pytest.approx(16 / max(least_s, compute_s))
    assert both.estimate_tps == pytest.approx(16 / (expected_s + compute_s))
    assert both.memory_tps == pytest.approx(16 / least_s)
    assert both.reason is None
    assert {"bandwidth", "peak", "routing", "streams"} <= {a.topic for a in both.assumptions}


def test_a_measured_prefill_rate_is_the_compute_line() -> None:
    facts = reference_models()["Llama-3.1-8B"]
    both = concurrency_ceiling(
        facts, CONTEXT, n_streams=64, n_depth=0, bandwidth=FAST, peak=PEAK, prefill_tps=100.0
    )
    assert both.compute_tps == both.ceiling_tps == 100.0
    assert both.bound == "compute"
    assert any("100 tokens/s" in a.text for a in both.assumptions)


def test_the_estimate_is_below_the_ceiling_and_at_least_half_of_it() -> None:
    for n_streams in (1, 3, 8, 40):
        rates = stream_rates(7e9, 1e8, n_streams, FAST, 286.0)
        assert rates.estimate_tps is not None
        assert rates.ceiling_tps / 2 <= rates.estimate_tps < rates.ceiling_tps


def test_no_streams_are_refused() -> None:
    with pytest.raises(ValueError, match="0 streams"):
        concurrency_ceiling(
            reference_models()["Llama-3.1-8B"], CONTEXT, n_streams=0, n_depth=0, bandwidth=FAST
        )
