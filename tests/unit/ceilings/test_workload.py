"""What a request feels like, from two rates."""

from __future__ import annotations

import pytest

from llamasweep.ceilings.peaks import cpu_flop_per_s, matrix_units_flop_per_s, times_below_ridge
from llamasweep.ceilings.workload import workload


def test_by_hand() -> None:
    chat = workload(20000, 201, prefill_tps=1000, decode_tps=50)
    assert chat.ttft_s == 20
    assert chat.decode_s == 4
    assert chat.e2e_s == 24
    assert chat.prefill_fraction == pytest.approx(20 / 24)
    assert chat.pp_over_tg == 20
    assert chat.tpot_s == 0.02
    assert any("alone" in a.text for a in chat.assumptions)


def test_a_single_token_comes_with_the_prompt() -> None:
    one = workload(100, 1, prefill_tps=100, decode_tps=10)
    assert one.decode_s == 0
    assert one.e2e_s == one.ttft_s
    assert one.prefill_fraction == 1


@pytest.mark.parametrize(
    ("n_prompt", "n_gen", "pp", "tg"),
    [(0, 1, 1.0, 1.0), (1, 0, 1.0, 1.0), (1, 1, 0.0, 1.0), (1, 1, 1.0, float("nan"))],
)
def test_requests_of_nothing_are_refused(n_prompt: int, n_gen: int, pp: float, tg: float) -> None:
    with pytest.raises(ValueError, match="rates above 0"):
        workload(n_prompt, n_gen, prefill_tps=pp, decode_tps=tg)


def test_peaks_from_counts_and_clocks() -> None:
    assert matrix_units_flop_per_s(184, 128, 2.475e9) == pytest.approx(116.582e12, rel=1e-4)
    assert cpu_flop_per_s(8, 32, 4e9) == 1.024e12
    assert times_below_ridge(3.3, 116) == pytest.approx(35.15, abs=0.01)
