from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.report.factory import Part, failed_parts, lost, measured, run_of, sweep_parts

from llamasweep.report.rows import rows_of
from llamasweep.report.strips import (
    MAX_STRIPS,
    Missing,
    Strip,
    Track,
    hero,
    per_model,
    representative,
)


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


def test_tg_is_drawn_against_the_pencil_ceiling() -> None:
    (strip,) = _strips([measured(1, [10.0, 11.0, 12.0])])
    track = strip.tg
    assert isinstance(track, Track)
    assert track.ceiling is not None
    assert track.measured / track.ceiling == pytest.approx(11.0 / (41.8 / 1.9))
    assert track.band_low == pytest.approx(track.ceiling * 0.70)
    assert track.band_high == pytest.approx(track.ceiling * 0.85)
    assert track.low is not None
    assert track.high is not None
    assert track.low < track.measured < track.high


def test_pp_has_a_track_without_a_ceiling() -> None:
    parts = [_prompt(1, 200.0), _prompt(2, 400.0, model_label="other", model_quant="Q8_0")]
    strips = _strips(parts)
    track = strips[0].pp
    assert isinstance(track, Track)
    assert track.ceiling is None
    assert isinstance(strips[0].tg, Missing)
    assert strips[0].tg.reason == "not in the sweep"


def test_a_speed_above_the_ceiling_stays_within_its_track() -> None:
    (strip,) = _strips([measured(1, [40.0, 40.0])])
    assert isinstance(strip.tg, Track)
    assert strip.tg.measured < 1
    assert strip.tg.ceiling is not None
    assert strip.tg.measured > strip.tg.ceiling


def test_a_speed_far_above_the_ceiling_is_marked_as_beyond() -> None:
    (strip,) = _strips([measured(1, [400.0, 400.0])])
    assert isinstance(strip.tg, Track)
    assert strip.tg.is_beyond
    assert strip.tg.measured == 1.0


def test_without_any_ceiling_tracks_compare_with_the_fastest() -> None:
    parts = [
        measured(n, [tps], model_size_bytes=None, requested={"n_threads": n})
        for n, tps in ((1, 5.0), (2, 10.0))
    ]
    view = hero(rows_of([run_of(parts)]))
    assert view is not None
    assert view.tg_end_fraction is None
    assert view.tg_end_tps == 10.0
    track = view.strips[1].tg
    assert isinstance(track, Track)
    assert track.measured == 0.5
    assert view.why_no_ceiling == "the memory bandwidth is not known"


def test_a_row_without_a_ceiling_beside_rows_with_one_says_so() -> None:
    parts = [
        measured(1, [10.0]),
        measured(2, [9.0], model_size_bytes=None, requested={"n_threads": 1}),
    ]
    missing = [strip.tg for strip in _strips(parts) if isinstance(strip.tg, Missing)]
    assert [m.reason for m in missing] == [
        "no ceiling to draw it against: the memory bandwidth is not known"
    ]


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
    assert strip.doubts == ("noisy", "others busy")


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
