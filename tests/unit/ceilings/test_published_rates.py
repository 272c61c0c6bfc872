"""Published decode rates of dense models on one device against their exact ceilings.

No rate may pass its ceiling: bandwidths are the makers', so that 1.02 leaves room for rounding only.
"""

from __future__ import annotations

import statistics

import pytest
from tests.unit.ceilings.published import published


def test_the_table_is_whole_and_most_rows_are_exact() -> None:
    assert len(published()) == 353
    assert sum(one.is_exact for one in published()) >= 275


def test_no_published_rate_passes_its_ceiling() -> None:
    above = [(one.row, one.share) for one in published() if one.share > 1.02]
    assert not above


def test_rates_pass_the_pencil_ceiling_where_the_embedding_is_a_lookup() -> None:
    above = {
        (one.row["device"], one.row["quant"])
        for one in published()
        if float(one.row["pct_weights_only"]) > 102
    }
    assert above == {("Ryzen 9 7950X (CPU)", "BF16"), ("Ryzen 9 7950X (CPU)", "Q6_K")}


@pytest.mark.parametrize(
    ("family", "low", "high"),
    [("NVIDIA GPU", 0.6, 0.9), ("AMD APU", 0.7, 0.85), ("Apple", 0.6, 0.85)],
)
def test_shares_by_family_are_what_people_see(family: str, low: float, high: float) -> None:
    shares = [
        one.share
        for one in published()
        if one.row["family"] == family and one.is_exact and one.is_shallow
    ]
    assert len(shares) >= 30
    assert low < statistics.median(shares) < high
