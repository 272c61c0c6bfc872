"""What share of its exact ceiling each published decode rate reaches, by class of device.

Dense models on one device, at the maker's bandwidth, behind 512 tokens at most. A share above 1.02 would mean that
the arithmetic or a bandwidth is wrong.
"""

from __future__ import annotations

import statistics

from benchmarks.bare import emit
from tests.unit.ceilings.published import Published, published


def figures(found: list[Published]) -> dict[str, float | int]:
    """Count, spread and how many are above the ceiling."""
    shares = sorted(one.share for one in found)
    return {
        "rows": len(shares),
        "lowest": round(shares[0], 3),
        "median": round(statistics.median(shares), 3),
        "highest": round(shares[-1], 3),
        "above_1.02": sum(share > 1.02 for share in shares),
    }


def main() -> None:
    """Print one JSON object."""
    shallow = [one for one in published() if one.is_shallow]
    families = sorted({one.row["family"] for one in shallow})
    emit(
        "ceiling_fractions",
        {
            "all_depths": figures(list(published())),
            "depth_to_512": figures(shallow),
            **{f: figures([one for one in shallow if one.row["family"] == f]) for f in families},
        },
    )


if __name__ == "__main__":
    main()
