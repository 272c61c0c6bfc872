"""Where a measured speed lies on its track: against the exact ceiling, the pencil, or the fastest where there is neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import BANDWIDTH, NO_PEAK, SIZES, Part, lost, measured, run_of

from llamasweep.report.rows import Measured, Row, rows_of
from llamasweep.report.tracks import Missing, Scale, Track, scale_of, track_of

PENCIL = BANDWIDTH / SIZES["Q4_0"]
EXACT = PENCIL / 0.95


def _rows(parts: Sequence[Part]) -> tuple[Row, ...]:
    return rows_of([run_of(parts)])


def _drawn(parts: Sequence[Part]) -> tuple[Scale, list[Track | Missing]]:
    rows = _rows(parts)
    scale = scale_of(rows)
    assert scale is not None
    return scale, [track_of(row, scale) for row in rows]


def _only(part: Part) -> Track:
    _, (track,) = _drawn([part])
    assert isinstance(track, Track)
    return track


def _changed(part: Part, **changes: Any) -> Part:
    return replace(part[0], **changes), part[1]


def test_a_track_ends_at_the_exact_ceiling() -> None:
    track = _only(measured(1, [10.0, 11.0, 12.0]))
    assert track.ceiling == 1.0
    assert track.measured == pytest.approx(11.0 / EXACT)
    assert track.pencil == pytest.approx(0.95)
    assert track.band_low == pytest.approx(0.95 * 0.70)
    assert track.band_high == pytest.approx(0.95 * 0.85)
    assert track.low == pytest.approx(10.0 / EXACT)
    assert track.high == pytest.approx(12.0 / EXACT)


def test_a_speed_above_the_ceiling_runs_past_the_end_mark() -> None:
    track = _only(measured(1, [EXACT * 1.5, EXACT * 1.5]))
    assert track.ceiling is not None
    assert track.ceiling < track.measured < 1
    assert track.measured / track.ceiling == pytest.approx(1.5)
    assert not track.is_beyond


def test_a_speed_far_above_the_ceiling_is_marked_as_beyond() -> None:
    track = _only(measured(1, [400.0, 400.0]))
    assert track.is_beyond
    assert track.measured == 1.0


def test_the_pencil_stands_past_the_end_mark_where_it_is_the_higher() -> None:
    track = _only(measured(1, [10.0], n_depth=2048))
    assert track.ceiling is not None
    assert track.pencil is not None
    assert track.ceiling < track.pencil < 1


def test_a_pencil_far_beyond_the_exact_ceiling_does_not_shorten_the_tracks() -> None:
    track = _only(measured(1, [10.0], n_depth=16384))
    assert track.ceiling == 1.0
    assert track.pencil is None
    assert track.band_low is None


def test_all_tracks_of_a_kind_share_their_end() -> None:
    scale, tracks = _drawn([measured(1, [EXACT * 1.2]), measured(2, [EXACT * 0.6])])
    assert scale.end_fraction == pytest.approx(1.2 * 1.03)
    ends = {track.ceiling for track in tracks if isinstance(track, Track)}
    assert len(ends) == 1


def test_without_any_ceiling_tracks_run_to_the_fastest_and_say_why() -> None:
    scale, tracks = _drawn([measured(n, [5.0 * n], model_size_bytes=None) for n in (1, 2)])
    assert (scale.end_fraction, scale.end_tps) == (None, 10.0)
    assert scale.reason == "the memory bandwidth is not known"
    assert isinstance(tracks[0], Track)
    assert tracks[0].measured == 0.5
    assert tracks[0].ceiling is None


def test_prompts_without_a_peak_have_no_end_mark() -> None:
    scale, (track,) = _drawn([measured(1, [200.0], test_kind="pp", n_prompt=512, n_gen=0)])
    assert isinstance(track, Track)
    assert (track.ceiling, track.pencil, scale.reason) == (None, None, NO_PEAK)
    assert not scale.has_pencil


def test_a_pencil_ceiling_alone_is_drawn_as_a_tick() -> None:
    part = _changed(measured(1, [18.0]), ceiling_tps=None, reasons={"ceiling_tps": "not modelled"})
    scale, (track,) = _drawn([part])
    assert isinstance(track, Track)
    assert scale.end_tps == pytest.approx(PENCIL)
    assert track.pencil == pytest.approx(1.0)
    assert track.ceiling is None


def test_a_row_without_a_ceiling_beside_rows_with_one_says_so() -> None:
    _, tracks = _drawn([measured(1, [10.0]), measured(2, [9.0], model_size_bytes=None)])
    assert isinstance(tracks[1], Missing)
    assert tracks[1].row is not None
    assert tracks[1].reason == "no exact ceiling: the memory bandwidth is not known"


def test_what_was_not_measured_tells_its_reason() -> None:
    (row,) = _rows([lost(1, status="failed", error_message="out of luck")])
    assert scale_of([row, None]) is None
    assert track_of(row, None) == Missing(row=row, reason="out of luck")
    assert track_of(None, None) == Missing(row=None, reason="not in the sweep")


def test_no_end_of_a_range_is_made_up() -> None:
    (row,) = _rows([measured(1, [10.0, 11.0, 12.0])])
    assert row.rates is not None
    row = replace(row, rates=replace(row.rates, low=None, high=None))
    track = track_of(row, scale_of([row]))
    assert isinstance(track, Track)
    assert (track.low, track.high) == (None, None)
    assert track.measured == pytest.approx(11.0 / EXACT)


def test_no_pencil_is_made_up_beside_an_exact_ceiling() -> None:
    (row,) = _rows([measured(1, [10.0])])
    row = replace(row, pencil_ceiling=Measured(value=None, reason="not known"))
    scale = scale_of([row])
    track = track_of(row, scale)
    assert isinstance(track, Track)
    assert (track.ceiling, track.pencil, track.band_low, track.band_high) == (1.0, None, None, None)
    assert scale is not None
    assert not scale.has_pencil


@pytest.mark.parametrize(
    ("are_references", "is_reference", "has_bound"),
    [((False,), False, True), ((True,), True, False), ((False, True), True, True)],
)
def test_a_scale_says_whether_its_tracks_end_at_bounds_references_or_both(
    are_references: tuple[bool, ...], *, is_reference: bool, has_bound: bool
) -> None:
    parts = [
        measured(place, [20.0, 20.1], ceiling_is_reference=flag, requested={"concurrency": place})
        for place, flag in enumerate(are_references, start=1)
    ]
    scale, _ = _drawn(parts)
    assert (scale.is_reference, scale.has_bound) == (is_reference, has_bound)
