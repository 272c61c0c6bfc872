"""One stream: exact and pencil ceilings, and rates of models known by their numbers only."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import reference_models

from llamasweep.ceilings.assumptions import Bandwidth, Peak, ridge_flop_per_byte
from llamasweep.ceilings.decode import (
    PencilModel,
    achieved_bytes_per_s,
    decode_ceiling,
    fraction_of,
)
from llamasweep.ceilings.flop import decode_flop
from llamasweep.ceilings.kv_cache import ContextSettings

CONTEXT = ContextSettings(n_ctx=8192)
M4_PRO = Bandwidth(bytes_per_s=273e9, basis="spec")


def test_by_hand() -> None:
    facts = reference_models()["Mistral-Nemo-12B"]
    ceiling = decode_ceiling(facts, CONTEXT, n_depth=4096, n_gen=128, bandwidth=M4_PRO)
    assert ceiling.weight_bytes == 7091837760
    assert ceiling.context_bytes == 163840 * (4096 + 129 / 2)
    assert ceiling.bytes_per_token == ceiling.weight_bytes + ceiling.context_bytes
    assert ceiling.ceiling_tps == pytest.approx(273e9 / ceiling.bytes_per_token)
    assert ceiling.pencil_ceiling_tps == pytest.approx(273e9 / 7469322240)
    assert ceiling.pencil_with_kv_tps == pytest.approx(273e9 / (7469322240 + ceiling.context_bytes))
    assert ceiling.flop_per_token == decode_flop(facts, 4096, 128)
    assert ceiling.flop_per_byte == ceiling.flop_per_token / ceiling.bytes_per_token
    assert ceiling.ridge_flop_per_byte is None
    assert ceiling.bound == "memory"


@pytest.mark.parametrize("row", [0, 1])
def test_the_benches_of_llama_cpp_agree(row: int) -> None:
    """gpt-oss 20B, tg32 on 800 GB/s: 811,008 bytes of cells and 310.62 t/s at depth 0."""
    n_depth, kv_bytes, tps = ((0, 811008, 310.62), (32768, 808857600, 236.44))[row]
    facts = reference_models()["gpt-oss-20b"]
    bandwidth = Bandwidth(bytes_per_s=800e9)
    settings = ContextSettings(n_ctx=n_depth + 32)
    ceiling = decode_ceiling(facts, settings, n_depth=n_depth, n_gen=32, bandwidth=bandwidth)
    assert ceiling.context_bytes == pytest.approx(kv_bytes, abs=1)
    assert ceiling.ceiling_tps == pytest.approx(tps, abs=0.01)


def test_a_slow_processor_binds_unless_its_peak_is_only_a_reference() -> None:
    facts = reference_models()["Llama-3.2-1B"]
    weak = Peak(flop_per_s=1e11, basis="measured")
    bound = decode_ceiling(facts, CONTEXT, n_depth=0, n_gen=8, bandwidth=M4_PRO, peak=weak)
    assert bound.bound == "compute"
    assert bound.ceiling_tps == pytest.approx(1e11 / bound.flop_per_token)
    assert bound.ridge_flop_per_byte == ridge_flop_per_byte(weak, M4_PRO)
    reference = Peak(flop_per_s=1e11, is_reference=True)
    free = decode_ceiling(facts, CONTEXT, n_depth=0, n_gen=8, bandwidth=M4_PRO, peak=reference)
    assert free.bound == "memory"
    assert free.ceiling_tps > bound.ceiling_tps


def test_assumptions_say_which_bandwidth_and_which_rules() -> None:
    ceiling = decode_ceiling(
        reference_models()["Falcon-H1-7B"],
        CONTEXT,
        n_depth=0,
        n_gen=8,
        bandwidth=Bandwidth(bytes_per_s=36.2e9, basis="measured"),
        peak=Peak(flop_per_s=1e12),
    )
    texts = {a.topic: a.text for a in ceiling.assumptions}
    assert texts["bandwidth"] == "memory is read at 36.2 GB/s (measured)"
    assert "1.00 TFLOPS" in texts["peak"]
    assert any("recurrent state is read and written" in a.text for a in ceiling.assumptions)
    assert "compared with" in texts["architecture"]


def test_shares_and_bandwidths_of_measured_rates() -> None:
    assert fraction_of(30, 40) == 0.75
    assert achieved_bytes_per_s(10, 5e9) == 5e10


def test_a_model_of_numbers_only() -> None:
    model = PencilModel(params=177e9, active_params=6e9, bits_per_weight=4.27)
    assert model.size_bytes == pytest.approx(94.47375e9)
    assert model.bytes_per_token == pytest.approx(3.2025e9)
    assert model.decode_flop_per_byte == pytest.approx(2 / (4.27 / 8))
    assert model.pencil_flop_per_token == 354e9
    assert model.ceiling_tps(Bandwidth(bytes_per_s=50e9)) == pytest.approx(15.6128, rel=1e-5)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_of_nothing_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="is not above 0"):
        Bandwidth(bytes_per_s=value)
    with pytest.raises(ValueError, match="is not above 0"):
        Peak(flop_per_s=value)
