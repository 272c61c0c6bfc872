"""The practical floor from A/A measurements, and the verdicts of cells that failed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from llamasweep.stats import (
    VERDICTS,
    SameBuildPairs,
    default_floor,
    floor_of,
    practical_floors,
    standing,
    standing_verdict,
)
from llamasweep.stats.floor import size_class
from llamasweep.stats.verdicts import Standing, Verdict

GIB = 2**30


def pairs(kind: str, size_bytes: int, sigma: float, n: int) -> SameBuildPairs:
    draw = np.random.default_rng(n)
    return SameBuildPairs(
        test_kind=kind,
        model_size_bytes=size_bytes,
        a_tps=(100 * np.exp(draw.normal(0, sigma, n))).tolist(),
        b_tps=(100 * np.exp(draw.normal(0, sigma, n))).tolist(),
    )


def test_a_floor_by_hand() -> None:
    # Half of the pairs at +0.02, half at -0.02: HL 0, root mean square 0.02, 1.4826 MAD = 0.029652 is larger.
    found = floor_of([0.02, -0.02] * 8)
    expected = math.expm1(2.807034 * 1.4826 * 0.02 / math.sqrt(7))
    assert found.floor_fraction == pytest.approx(expected, rel=1e-5)
    assert found.n_rounds == 16


def test_outliers_widen_the_floor() -> None:
    calm = floor_of([0.01, -0.01] * 10)
    wild = floor_of([0.01, -0.01] * 10 + [0.3, -0.3])
    assert wild.floor_fraction > 3 * calm.floor_fraction


def test_a_machine_that_favours_one_side_has_a_wider_floor() -> None:
    assert floor_of([0.04] * 12).floor_fraction == pytest.approx(math.expm1(0.04))


def test_a_very_quiet_machine_keeps_a_floor_of_one_percent() -> None:
    assert floor_of([0.0] * 12).floor_fraction == 0.01


def test_too_few_rounds_give_no_floor() -> None:
    with pytest.raises(ValueError, match="too few"):
        floor_of([0.0] * 11)


def test_floors_are_kept_apart_by_kind_and_size() -> None:
    found = practical_floors(
        [
            pairs("tg", GIB, 0.003, 12),
            pairs("pp", GIB, 0.02, 13),
            pairs("pp", 9 * GIB, 0.02, 11),
            pairs("tg", GIB, 0.003, 14),
            SameBuildPairs(test_kind="pg", model_size_bytes=GIB, a_tps=[None], b_tps=[1.0]),
        ]
    )
    assert set(found) == {("tg", 0), ("pp", 0)}
    assert found["tg", 0].n_rounds == 26
    assert found["pp", 0].floor_fraction > found["tg", 0].floor_fraction


@pytest.mark.parametrize(
    ("size_bytes", "expected"), [(GIB, 0), (2 * GIB - 1, 0), (2 * GIB, 1), (GIB // 2, -1)]
)
def test_size_classes_double(size_bytes: int, expected: int) -> None:
    assert size_class(size_bytes) == expected


def test_a_model_without_a_size_has_no_class() -> None:
    with pytest.raises(ValueError, match="0 bytes"):
        size_class(0)


def test_defaults_are_wider_for_prompts() -> None:
    assert default_floor("tg").floor_fraction == 0.03
    assert default_floor("pp").floor_fraction == 0.05
    assert default_floor("pp").n_rounds == 0
    with pytest.raises(KeyError):
        default_floor("embedding")


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("measured", "measured", None),
        ("measured", "failed", "newly_failing"),
        ("failed", "measured", "fixed"),
        ("failed", "failed", "failing_on_both"),
        ("measured", "absent", "only_in_a"),
        ("failed", "absent", "only_in_a"),
        ("absent", "measured", "only_in_b"),
        ("absent", "failed", "only_in_b"),
    ],
)
def test_cells_without_two_rates_have_their_own_verdicts(
    a: Standing, b: Standing, verdict: Verdict | None
) -> None:
    assert standing_verdict(a, b) == verdict
    assert verdict is None or verdict in VERDICTS


def test_a_cell_that_neither_side_has_is_none() -> None:
    with pytest.raises(ValueError, match="neither"):
        standing_verdict("absent", "absent")


def test_a_side_that_failed_at_times_still_counts_as_measured() -> None:
    assert standing([False, True, False]) == "measured"
    assert standing([False, False]) == "failed"
    assert standing([]) == "absent"
