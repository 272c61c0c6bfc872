"""Which round stands for all where one must."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.results.made import attempt

from llamasweep.results.rounds import middle_round


@pytest.mark.parametrize(
    ("rates", "expected"),
    [((10.0,), 10.0), ((10.0, 30.0), 10.0), ((30.0, 10.0, 20.0), 20.0), ((4.0, None, 2.0), 2.0)],
)
def test_the_round_whose_rate_is_in_the_middle_of_two_the_slower(
    rates: tuple[float | None, ...], expected: float
) -> None:
    for order in itertools.permutations(rates):
        rounds = [attempt(i, round_index=i, median_tps=tps) for i, tps in enumerate(order)]
        assert middle_round(rounds).median_tps == expected


def test_the_last_stands_for_rounds_without_a_rate() -> None:
    rounds = [attempt(i, round_index=i, median_tps=None) for i in range(3)]
    assert middle_round(rounds) is rounds[-1]
