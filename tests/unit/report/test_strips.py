from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.unit.report.factory import Part, failed_parts, lost, measured, run_of, sweep_parts

from llamasweep.report.rows import rows_of
from llamasweep.report.strips import (
    MAX_STRIPS,
    Strip,
    hero,
    per_model,
    representative,
)
from llamasweep.report.tracks import Missing, Track


def test_a_strip_stands_for_model_quantisation_and_depth_when_there_are_many_settings() -> None:
    view = hero(rows_of([run_of(sweep_parts())]))
    assert view is not None
    assert len(view.strips) == 2 * 2 * 3
    assert view.choice == "Each strip is the fastest of its settings of threads"
    assert "depth 0" in view.strips[0].setting
    assert "threads" in view.strips[0].setting


def test_few_cells_each_have_their_strip() -> None:
    view = hero(rows_of([run_of(sweep_parts(models=("m",), quants=("Q4_0",), depths=(0,)))]))
    assert view is not None
    assert view.choice is None
    assert sorted(strip.setting for strip in view.strips) == ["threads 1", "threads 2", "threads 4"]


def test_one_repetition_has_no_whisker() -> None:
    (strip,) = _strips([measured(1, [10.0])])
    assert isinstance(strip.tg, Track)
    assert strip.tg.low is None
    assert strip.tg.high is None


def test_a_failed_half_tells_its_reason() -> None:
    bad = lost(
        2, status="failed", error_message="out of luck", test_kind="pp", n_prompt=512, n_gen=0
    )
    (strip,) = _strips([measured(1, [10.0]), bad])
    assert isinstance(strip.pp, Missing)
    assert strip.pp.reason == "out of luck"


def test_a_half_that_failed_is_told_before_one_that_was_not_tried() -> None:
    prompt = {"test_kind": "pp", "n_prompt": 512, "n_gen": 0}
    parts = [
        *(measured(n, [10.0 + n], n_depth=n, requested={"n_threads": n}) for n in range(13)),
        lost(20, status="unsupported", error_message="no way", **prompt),
        lost(21, status="failed", error_message="it broke", requested={"n_threads": 9}, **prompt),
    ]
    reasons = {strip.pp.reason for strip in _strips(parts) if isinstance(strip.pp, Missing)}
    assert reasons == {"it broke", "not in the sweep"}


def test_doubts_stand_at_their_strip() -> None:
    (strip,) = _strips([measured(1, [10.0], flags=("wide_spread", "busy_neighbour"))])
    assert [mark.text for mark in strip.marks] == ["noisy", "others busy"]


def test_nothing_measured_has_no_hero() -> None:
    assert hero(rows_of([run_of(failed_parts())])) is None


def test_many_models_are_bounded_and_counted() -> None:
    parts = [measured(n, [10.0 + n], model_label=f"m{n}", model_quant=None) for n in range(40)]
    view = hero(rows_of([run_of(parts)]))
    assert view is not None
    assert len(view.strips) == MAX_STRIPS
    assert view.n_left_out == 40 - MAX_STRIPS


def test_the_longest_test_of_a_kind_stands_for_it() -> None:
    rows = rows_of([run_of([measured(1, [10.0], n_gen=16), measured(2, [9.0], n_gen=128)])])
    assert [row.attempt.n_gen for row in representative(rows, "tg")] == [128]


def test_models_are_sorted_by_their_fastest() -> None:
    rows = rows_of([run_of(sweep_parts(models=("slow", "fast")[::-1]))])
    assert [tg.subject for tg, _ in per_model(rows) if tg] == [
        "fast Q4_0",
        "fast Q8_0",
        "slow Q4_0",
        "slow Q8_0",
    ]


def _prompt(number: int, tps: float, **changes: Any) -> Part:
    return measured(number, [tps, tps * 1.01], test_kind="pp", n_prompt=512, n_gen=0, **changes)


def _strips(parts: Sequence[Part]) -> tuple[Strip, ...]:
    view = hero(rows_of([run_of(parts)]))
    assert view is not None
    return view.strips
