"""The bisection on simulated builds with a known answer: 64 of them, 6 % at 2 % noise, one in ten broken, one hanging."""

from __future__ import annotations

from benchmarks.bisect_simulation import setting


def test_the_right_build_or_a_range_holding_it_is_found_in_95_of_100_seeds() -> None:
    found = setting(n_seeds=100, n_builds=64, step=0.06, noise=0.02)

    assert found["holds_the_build"] >= 0.95, found
    assert found["exact_and_right"] >= 0.6, found
    assert found["confirmed_and_wrong"] <= 0.05, found
    assert found["suspects_most"] <= 8, found
    assert found["builds_mean"] <= found["least_builds"] + 2, found
    assert found["measurements_mean"] <= 200, found
