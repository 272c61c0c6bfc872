"""Is one build faster than another, by how much, and since when? Arrays in, values out.

Compares two sides of a cell, decides after each round whether more rounds are needed, confirms on fresh rounds, and
finds changes in a history. Knows no files, no clock and no engine. docs/regressions.md says which test is used and why.
"""

from llamasweep.stats.cells import CellComparison, SidesCompared, compare_sides
from llamasweep.stats.change_points import ChangePoint, change_points
from llamasweep.stats.compare import compare_paired, compare_unpaired
from llamasweep.stats.confirm import (
    Candidate,
    Confirmation,
    confirm,
    confirmation_rounds,
    is_clear,
)
from llamasweep.stats.differences import Difference
from llamasweep.stats.floor import Floor, SameBuildPairs, default_floor, floor_of, practical_floors
from llamasweep.stats.many import benjamini_hochberg, holm
from llamasweep.stats.sequential import Decision, SequentialComparison, StoppingRule, decide
from llamasweep.stats.series import Stretch, changes_of_series
from llamasweep.stats.verdicts import (
    VERDICTS,
    Comparison,
    NotComparableReason,
    Verdict,
    standing,
    standing_verdict,
)

__all__ = [
    "VERDICTS",
    "Candidate",
    "CellComparison",
    "ChangePoint",
    "Comparison",
    "Confirmation",
    "Decision",
    "Difference",
    "Floor",
    "NotComparableReason",
    "SameBuildPairs",
    "SequentialComparison",
    "SidesCompared",
    "StoppingRule",
    "Stretch",
    "Verdict",
    "benjamini_hochberg",
    "change_points",
    "changes_of_series",
    "compare_paired",
    "compare_sides",
    "compare_unpaired",
    "confirm",
    "confirmation_rounds",
    "decide",
    "default_floor",
    "floor_of",
    "holm",
    "is_clear",
    "practical_floors",
    "standing",
    "standing_verdict",
]
