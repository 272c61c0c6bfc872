"""A small part of benchmarks/regression_simulation.py on every run: no false alarms, and changes are found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import regression_simulation as simulation
from benchmarks.regression_simulation import Scenario


@pytest.mark.parametrize("kind", simulation.KINDS)
def test_no_change_gives_no_alarm_and_stops_early(kind: str) -> None:
    found = simulation.simulate(Scenario(kind=kind, sigma=0.02, change=0.0), 1, 0)
    assert found["ours"]["alarm"] == 0
    assert found["ours"]["same"] >= 0.85
    assert found["ours"]["rounds"] <= 13


@pytest.mark.parametrize("kind", simulation.KINDS)
def test_a_change_of_five_percent_is_found_and_confirmed(kind: str) -> None:
    found = simulation.simulate(Scenario(kind=kind, sigma=0.02, change=0.05), 1, 1)
    assert found["ours"]["power"] >= 0.9
    assert found["ours"]["same"] == 0
    assert found["ours"]["rounds"] <= 9
    assert found["ours"]["coverage"] >= 0.85


def test_the_three_ways_differ_as_they_should_on_the_same_sweep() -> None:
    found = simulation.simulate(Scenario(kind="gaussian", sigma=0.005, change=0.01), 1, 2)
    assert found["ours"]["alarm"] == found["upstream"]["alarm"] == 0
    assert found["welch"]["alarm"] == 1.0
    large = simulation.simulate(Scenario(kind="gaussian", sigma=0.005, change=0.10), 1, 3)
    assert [large[way]["power"] for way in ("ours", "upstream", "welch")] == [1.0, 1.0, 1.0]
    assert large["ours"]["rounds"] == 7 < large["upstream"]["rounds"] == 20


@pytest.mark.parametrize("kind", ["gaussian", "heavy_tailed", "bimodal", "drifting", "slow_first"])
def test_noise_has_the_size_it_is_said_to_have(kind: str) -> None:
    draw = np.random.default_rng(1)
    a, b = simulation.sides(draw, kind, 0.02, 3000, 20)
    assert float(np.std(b - a)) == pytest.approx(0.02 * math.sqrt(2), rel=0.1)
    assert float(np.mean(b - a)) == pytest.approx(0, abs=0.0005)
