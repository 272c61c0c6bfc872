"""The verdicts of a comparison as values, and what a comparison returns. Knows no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

SpeedVerdict = Literal["faster", "slower", "same", "undecided"]

Direction = Literal["faster", "slower"]

Verdict = Literal[
    "faster",
    "slower",
    "same",
    "undecided",
    "newly_failing",
    "fixed",
    "failing_on_both",
    "only_in_a",
    "only_in_b",
    "not_comparable",
]
"""b against a. undecided: the data allow neither a change beyond the floor nor "the same within the floor"."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

NotComparableReason = Literal[
    "other_model_content",
    "other_applied_settings",
    "other_machine",
    "throttled",
    "contaminated",
    "above_its_ceiling",
    "calibration_moved",
    "several_programs",
    "gone_or_replaced",
]
"""Why two sides of a cell must not be compared, although both were measured or, for the last, asked for."""

Standing = Literal["measured", "failed", "lost", "absent"]
"""How one side of a cell stands: it has rates; it was tried and failed each time; its program or model was gone or replaced
whenever its turn came, so that nothing ran; it was never tried there."""

Evidence = Literal["paired", "unpaired"]
"""paired: measured by turns. unpaired: at different times, so that the machine may have changed between; weaker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What two sides of one cell show: b against a.

    ratio: b ÷ a, Hodges–Lehmann; None without a usable value. low, high: interval of the ratio with confidence
    1 - alpha (at least); None where there are too few values for one. p_value: two-sided, of no change; None without a
    usable value. n_rounds: usable rounds (of the smaller side where unpaired). n_dropped: rounds or values left out,
    notes say why.
    """

    verdict: SpeedVerdict
    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    n_rounds: int
    n_dropped: int
    floor_fraction: float
    alpha: float
    evidence: Evidence
    notes: tuple[str, ...] = ()


def standing_verdict(a: Standing, b: Standing) -> Verdict | None:
    """The verdict where not both sides have rates; None where both have, and the rates decide.

    absent on both sides raises ValueError: then there is no cell.
    """
    found: dict[tuple[Standing, Standing], Verdict] = {
        ("measured", "failed"): "newly_failing",
        ("failed", "measured"): "fixed",
        ("failed", "failed"): "failing_on_both",
    }
    if (a, b) == ("absent", "absent"):
        raise ValueError("a cell that neither side has")
    if "absent" in (a, b):
        return "only_in_a" if b == "absent" else "only_in_b"
    return "not_comparable" if "lost" in (a, b) else found.get((a, b))


def standing(has_rate: Sequence[bool]) -> Standing:
    """Of the attempts of one side, each with a rate or failed. A side that failed at times still has rates."""
    if not has_rate:
        return "absent"
    return "measured" if any(has_rate) else "failed"
