"""Two rows beside each other: what is said where an end of a range is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import measured, run_of

from llamasweep.report.comparison import compare
from llamasweep.report.rows import rows_of


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_range_without_an_end_decides_nothing(end: str) -> None:
    fast, slow = rows_of([run_of([measured(1, [12.0, 12.1]), measured(2, [10.0, 10.1])])])
    assert slow.rates is not None
    assert compare(fast, slow) == "faster"
    changes: dict[str, Any] = {end: None}
    slow = replace(slow, rates=replace(slow.rates, **changes))
    assert compare(fast, slow) == "undecided"
    assert compare(slow, fast) == "undecided"
