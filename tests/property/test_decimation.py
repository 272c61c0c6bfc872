"""Thinned readings keep every bucket's extremes and invent nothing, whatever was read and whenever."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from llamasweep.report.decimation import buckets, decimated, finite, pieces, rates
from llamasweep.results.timeline import Series

VALUES = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def series(draw: st.DrawFn, values: st.SearchStrategy[float] = VALUES) -> Series:
    times = sorted(draw(st.sets(st.integers(0, 10**12), max_size=300)))
    read = draw(st.lists(values, min_size=len(times), max_size=len(times)))
    return Series(times_ns=tuple(times), values=tuple(read))


@given(series(), st.integers(1, 60))
def test_the_lowest_and_the_highest_of_every_bucket_survive(read: Series, n_buckets: int) -> None:
    kept = set(zip(*_pairs(decimated(read, n_buckets)), strict=True))
    for indices in buckets(read.times_ns, n_buckets):
        inside = {i for i in indices if (read.times_ns[i], read.values[i]) in kept}
        values = [read.values[i] for i in indices]
        assert min(read.values[i] for i in inside) == min(values)
        assert max(read.values[i] for i in inside) == max(values)


def _pairs(read: Series) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return read.times_ns, read.values


@given(series(), st.integers(1, 60))
def test_what_is_kept_was_read_in_this_order_and_is_bounded(read: Series, n_buckets: int) -> None:
    thin = decimated(read, n_buckets)
    at = dict(zip(*_pairs(read), strict=True))
    assert all(at[time] == value for time, value in zip(*_pairs(thin), strict=True))
    assert list(thin.times_ns) == sorted(set(thin.times_ns))
    assert len(thin.times_ns) <= 2 * n_buckets + 2
    assert thin.times_ns[:1] == read.times_ns[:1]
    assert thin.times_ns[-1:] == read.times_ns[-1:]


@given(series(), st.integers(1, 60))
def test_every_reading_is_in_one_bucket(read: Series, n_buckets: int) -> None:
    found = buckets(read.times_ns, n_buckets)
    assert [i for indices in found for i in indices] == list(range(len(read.times_ns)))
    assert len(found) <= n_buckets


@given(series(st.floats(0, 1e9)))
def test_rates_of_a_counter_are_never_negative_and_lie_within_its_time(read: Series) -> None:
    found = rates(read, 1_000_000)
    assert all(value >= 0 for value in found.values)
    assert all(read.times_ns[0] <= time <= read.times_ns[-1] for time in found.times_ns)


@given(series(), st.integers(0, 10**9))
def test_rates_of_a_rising_counter_add_up_to_its_rise(read: Series, span_ns: int) -> None:
    counter = Series(times_ns=read.times_ns, values=tuple(map(float, range(len(read.times_ns)))))
    found = rates(counter, span_ns)
    if span_ns == 0 and found.times_ns:
        widths = [b - a for a, b in zip(read.times_ns, read.times_ns[1:], strict=False)]
        risen = sum(v * w / 1e9 for v, w in zip(found.values, widths, strict=True))
        assert math.isclose(risen, len(widths), rel_tol=1e-6)
    assert len(found.times_ns) < max(1, len(read.times_ns))


@given(series())
def test_pieces_are_the_series_cut_at_its_pauses(read: Series) -> None:
    found = pieces(read)
    assert tuple(t for piece in found for t in piece.times_ns) == read.times_ns
    assert tuple(v for piece in found for v in piece.values) == read.values
    assert all(piece.times_ns for piece in found)


@given(series(st.floats(width=32)))
def test_only_numbers_are_left(read: Series) -> None:
    kept = finite(read)
    assert all(math.isfinite(value) for value in kept.values)
    assert len(kept.values) == sum(math.isfinite(value) for value in read.values)
