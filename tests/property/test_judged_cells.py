"""Whole comparisons of rows mirror when the sides are swapped, know no unit and no order, and leave bad rates out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.stats.rounds_made import row

from llamasweep.results.records import Attempt
from llamasweep.stats.judged import Judgement, judge
from llamasweep.stats.verdicts import Verdict

QUICK = settings(max_examples=60, deadline=None)  # other processes share the machine
MIRRORED: dict[Verdict, Verdict] = {
    "faster": "slower",
    "slower": "faster",
    "newly_failing": "fixed",
    "fixed": "newly_failing",
    "only_in_a": "only_in_b",
    "only_in_b": "only_in_a",
}
FACTORS = (0.8, 0.96, 0.98, 1.0, 1.02, 1.05, 1.3)
FATES: tuple[tuple[str | None, str | None], ...] = (
    ("rate", "rate"),
    ("rate", "failed"),
    ("failed", "rate"),
    ("rate", "unsupported"),
    (None, None),
)
"""What becomes of all rounds of a and of b; None: drawn for each."""
outcome = st.sampled_from(["rate"] * 8 + ["failed", "unsupported"])
noise = st.floats(0.995, 1.005)
"""One round of one side: what became of it, and how its rate scattered."""


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[list[Attempt], list[Attempt]]:
    """One to four cells of up to ten rounds, in which tries fail or cannot be asked for."""
    sides: tuple[list[Attempt], list[Attempt]] = ([], [])
    for number in range(draw(st.integers(1, 4))):
        factor = draw(st.sampled_from(FACTORS))
        fates = draw(st.sampled_from(FATES))
        for r in range(draw(st.integers(1, 10))):
            for rows, label, fate, level in zip(
                sides, "ab", fates, (100.0, 100.0 * factor), strict=True
            ):
                became = fate or draw(outcome)
                tps = level * draw(noise) if became == "rate" else None
                status = "ok" if became == "rate" else became
                rows.append(row(r, tps, cell_id=f"c{number}", build_label=label, status=status))
    return sides


def verdicts(found: Judgement) -> dict[str, Verdict]:
    return {judged.cell.cell_id: judged.cell.verdict for judged in found.cells}


def ratios(found: Judgement) -> dict[str, float | None]:
    return {
        judged.cell.cell_id: None if judged.cell.comparison is None else judged.cell.comparison.ratio
        for judged in found.cells
    }  # fmt: skip


@QUICK
@given(two_sides(), st.booleans())
def test_swapped_sides_mirror_every_verdict(
    sides: tuple[list[Attempt], list[Attempt]], is_drawn: bool
) -> None:
    a, b = sides
    plain, swapped = judge(a, b, is_drawn=is_drawn), judge(b, a, is_drawn=is_drawn)
    assert verdicts(swapped) == {
        cell_id: MIRRORED.get(verdict, verdict) for cell_id, verdict in verdicts(plain).items()
    }
    for cell_id, ratio in ratios(plain).items():
        mirrored = ratios(swapped)[cell_id]
        assert mirrored == (None if ratio is None else pytest.approx(1 / ratio))


@QUICK
@given(two_sides(), st.sampled_from([1e-3, 0.37, 1e6]))
def test_the_unit_of_the_rates_does_not_matter(
    sides: tuple[list[Attempt], list[Attempt]], factor: float
) -> None:
    scaled = [
        [replace(r, median_tps=None if r.median_tps is None else factor * r.median_tps) for r in s]
        for s in sides
    ]
    assert verdicts(judge(*scaled)) == verdicts(judge(*sides))


@QUICK
@given(two_sides(), st.randoms(use_true_random=False))
def test_the_order_in_which_rows_come_does_not_matter(
    sides: tuple[list[Attempt], list[Attempt]], shuffler: object
) -> None:
    mixed = [list(side) for side in sides]
    for side in mixed:
        shuffler.shuffle(side)  # type: ignore[attr-defined]
    found, plain = judge(*mixed), judge(*sides)
    assert verdicts(found) == verdicts(plain)
    assert [judged.is_official for judged in found.cells] == [
        judged.is_official for judged in plain.cells
    ]


@QUICK
@given(
    st.sampled_from(FACTORS),
    st.lists(st.sampled_from([0.0, -1.0, math.inf, math.nan]), min_size=1, max_size=3),
)
def test_a_rate_that_nothing_can_have_is_dropped_with_a_note(
    factor: float, wrong: Sequence[float]
) -> None:
    a = [row(r, 100.0 + r % 3) for r in range(8)]
    b = [row(r, (100.0 + r % 3) * factor, build_label="b") for r in range(8)]
    spoilt = [row(8 + i, 100.0) for i in range(len(wrong))]
    spoilt_b = [row(8 + i, value, build_label="b") for i, value in enumerate(wrong)]
    (found,) = judge([*a, *spoilt], [*b, *spoilt_b]).cells
    (plain,) = judge(a, b).cells
    assert (found.cell.verdict, found.is_official) == (plain.cell.verdict, plain.is_official)
    assert found.cell.comparison is not None
    assert plain.cell.comparison is not None
    assert found.cell.comparison.ratio == plain.cell.comparison.ratio
    assert found.cell.comparison.n_dropped == len(wrong)
    assert any("dropped" in note for note in found.cell.comparison.notes)
