"""The matrix rate is counted as 2 n^3 per product and called a reference."""

from __future__ import annotations

from llamasweep.machine.matrix_peak import MIN_CALLS, measure_matrix_peak


def test_products_are_timed_at_least_three_times() -> None:
    peak = measure_matrix_peak(0.0, matrix_size=64)

    assert peak.n_calls >= MIN_CALLS
    assert 0 < peak.median_flop_per_s <= peak.best_flop_per_s
    assert peak.matrix_size == 64
    assert "reference" in peak.method
    assert peak.blas
