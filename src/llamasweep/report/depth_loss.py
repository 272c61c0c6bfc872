"""Whether the growing KV cache explains what a model loses with depth: then its share of the exact ceiling stays the same.

The exact ceiling falls with depth as each step reads more of the cache, so a steady share means a loss that no setting of
the engine can win back.
"""

from __future__ import annotations

from typing import Literal

from llamasweep.report import figures
from llamasweep.report.panels import Panel, Series

STEADY_WITHIN = 0.05
"""Shares that differ by less, 5 points, count as the same."""


Verdict = Literal["explained", "more", "less"]


def loss_words(panel: Panel) -> str:
    """The end of a title: `: KV growth explains the loss`, or that it does not; '' where no ceiling tells."""
    verdicts = [verdict(series) for series in panel.series]
    if not verdicts or None in verdicts:
        return ""
    cause = "KV growth" if panel.kind == "tg" else "longer attention"
    if set(verdicts) == {"explained"}:
        return f": {cause} explains the loss"
    if set(verdicts) == {"more"}:
        return f": a larger loss than {cause} explains"
    if set(verdicts) == {"less"}:
        return f": a smaller loss than {cause} would cause"
    explained = [
        s.label for s, one in zip(panel.series, verdicts, strict=True) if one == "explained"
    ]
    if explained:
        return f": {cause} explains the loss of {', '.join(explained)} alone"
    return f", which {cause} does not explain"


def verdict(series: Series) -> Verdict | None:
    """Whether the share of the ceiling is steady along the series; None where a point has no share.

    more: the loss is larger than that of the ceiling. less: smaller.
    """
    shares = [point.row.fraction.value for point in series.points]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or len(known) < 2:
        return None
    if max(known) - min(known) <= STEADY_WITHIN:
        return "explained"
    return "more" if known[-1] < known[0] else "less"


def share_words(panel: Panel) -> str:
    """The evidence, per series: `Share of the exact ceiling: Q4_0 81 % at depth 0, 79 % at depth 4096.`"""
    parts = []
    for series in panel.series:
        first, last = series.points[0], series.points[-1]
        if first.row.fraction.value is None or last.row.fraction.value is None:
            continue
        parts.append(
            f"{series.label} {figures.percent(first.row.fraction.value)} at depth {figures.count(int(float(first.x)))}, "
            f"{figures.percent(last.row.fraction.value)} at depth {figures.count(int(float(last.x)))}"
        )
    return f" Share of the exact ceiling: {'; '.join(parts)}." if parts else ""
