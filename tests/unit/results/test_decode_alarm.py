"""The alarm rule by itself: at its borders, and against 291 published rates."""

from __future__ import annotations

import pytest
from tests.unit.results.published import shallow_rows

from llamasweep.results.decode_alarm import decode_shortfall, is_decode_alarm


def test_shortfall_by_hand() -> None:
    lack = decode_shortfall(20.0, 50.0)
    assert lack.fraction == 0.4
    assert lack.excess_ms == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("measured", "ceiling"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0)]
)
def test_shortfall_refuses_what_is_no_rate(measured: float, ceiling: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        decode_shortfall(measured, ceiling)


@pytest.mark.parametrize(
    ("measured", "ceiling", "depth", "fires"),
    [
        (20.0, 50.0, 0, True),
        (20.0, 50.0, 512, True),
        (20.0, 50.0, 513, False),  # deep
        (35.0, 50.0, 0, False),  # 70 %
        (34.9, 50.0, 0, False),  # 8.7 ms over
        (6.9, 10.0, 0, True),
        (100.0, 400.0, 0, False),  # 25 %, 7.5 ms over
        (12.0, 10.0, 0, False),  # above its ceiling
    ],
)
def test_the_rule_needs_share_excess_and_depth(
    measured: float, ceiling: float, depth: int, *, fires: bool
) -> None:
    assert is_decode_alarm(measured, ceiling, depth) is fires


def test_it_fires_on_52_of_291_published_rates() -> None:
    rows = shallow_rows()
    assert len(rows) == 291
    assert sum(row.is_alarm for row in rows) == 52
