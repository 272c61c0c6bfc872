"""The knee and the doubts of a curve, on figures that are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamasweep.machine.bandwidth import Bandwidth
from llamasweep.machine.memory_curve import MemoryCurve, measure_curve, thread_counts
from llamasweep.machine.readers import Pages


def point(
    n_threads: int,
    best: float,
    *,
    median: float | None = None,
    pages: Pages = "huge",
    huge_fraction: float | None = 1.0,
) -> Bandwidth:
    return Bandwidth(
        best_bytes_per_s=best * 1e9,
        median_bytes_per_s=(0.95 * best if median is None else median) * 1e9,
        n_threads=n_threads,
        buffer_bytes=2**30,
        n_rounds=4,
        pages=pages,
        huge_fraction=huge_fraction,
    )


class Machine:
    """Memory that gives each thread 12 GB/s up to a limit; notes the settings measured."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.asked: list[tuple[int, Pages]] = []

    def measure(self, n_threads: int, pages: Pages) -> list[Bandwidth]:
        self.asked.append((n_threads, pages))
        return [point(n_threads, min(12.0 * n_threads, self.limit), pages=pages)]


@pytest.mark.parametrize(
    ("n_cores", "counts"),
    [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12))],
)
def test_threads_double_up_to_all_cores(n_cores: int, counts: tuple[int, ...]) -> None:
    assert thread_counts(n_cores) == counts


def test_the_knee_is_the_fewest_threads_that_reach_95_percent_of_the_best() -> None:
    curve = MemoryCurve(points=(point(1, 12), point(2, 24), point(4, 47.6), point(8, 50)))

    assert curve.knee_threads == 4
    assert curve.best.n_threads == 8


def test_one_number_of_threads_has_no_knee() -> None:
    assert MemoryCurve(points=(point(2, 24), point(2, 20, pages="4 KiB"))).knee_threads is None


def test_the_knee_is_that_of_the_fastest_pages() -> None:
    points = (
        point(1, 50),
        point(2, 51),
        point(1, 30, pages="4 KiB"),
        point(2, 60, pages="4 KiB"),
    )

    assert MemoryCurve(points=points).knee_threads == 2


def test_settings_take_turns_in_every_pass() -> None:
    machine = Machine(50)
    settings: list[tuple[int, Pages]] = [(1, "huge"), (2, "huge")]

    curve = measure_curve(
        machine.measure, settings, n_passes=3, is_bisecting=False, on_step=lambda _: None
    )

    assert machine.asked == settings * 3
    assert [p.n_rounds for p in curve.points] == [12, 12]


@pytest.mark.parametrize("limit", [37.0, 50.0, 61.0, 90.0, 200.0])
def test_the_knee_between_two_powers_is_found_by_halving(limit: float) -> None:
    machine = Machine(limit)
    settings: list[tuple[int, Pages]] = [(n, "huge") for n in (1, 2, 4, 8, 16)]

    curve = measure_curve(
        machine.measure, settings, n_passes=1, is_bisecting=True, on_step=lambda _: None
    )

    best = min(12.0 * 16, limit)
    expected = next(n for n in range(1, 17) if min(12.0 * n, limit) >= 0.95 * best)
    assert curve.knee_threads == expected
    assert len(machine.asked) <= len(settings) + 4


def test_passes_are_pooled_into_the_best_and_the_median_of_medians() -> None:
    rates = iter([point(1, 30, median=20), point(1, 40, median=22), point(1, 35, median=34)])

    curve = measure_curve(
        lambda _n, _pages: [next(rates)],
        [(1, "huge")],
        n_passes=3,
        is_bisecting=False,
        on_step=lambda _: None,
    )

    assert curve.best.best_bytes_per_s == 40e9
    assert curve.best.median_bytes_per_s == 22e9
    assert curve.best.is_noisy


def test_the_knee_is_that_of_the_fastest_way_of_reading() -> None:
    slower = (point(1, 10), point(2, 20), point(4, 36))
    faster = tuple(replace(p, method="memcmp") for p in (point(1, 20), point(2, 40), point(4, 40)))

    curve = MemoryCurve(points=(*slower, *faster))

    assert curve.methods == ("memchr", "memcmp")
    assert curve.knee_threads == 2
    assert [p.best_bytes_per_s for p in curve.of("huge")] == [20e9, 40e9, 40e9]
    assert [p.best_bytes_per_s for p in curve.of("huge", "memchr")] == [10e9, 20e9, 36e9]


def test_each_way_of_reading_is_pooled_by_itself() -> None:
    def both(n_threads: int, pages: Pages) -> list[Bandwidth]:
        one = point(n_threads, 10, pages=pages)
        return [one, replace(one, method="memcmp", best_bytes_per_s=13e9)]

    curve = measure_curve(
        both, [(1, "huge")], n_passes=2, is_bisecting=False, on_step=lambda _: None
    )

    assert [(p.method, p.best_bytes_per_s, p.n_rounds) for p in curve.points] == [
        ("memchr", 10e9, 8),
        ("memcmp", 13e9, 8),
    ]


def test_a_steady_curve_has_no_warnings() -> None:
    assert MemoryCurve(points=(point(1, 30), point(2, 40))).warnings() == []


def test_a_median_far_below_the_best_is_a_warning() -> None:
    (told,) = MemoryCurve(points=(point(1, 30), point(2, 40, median=25))).warnings()

    assert "62%" in told


def test_huge_pages_that_were_not_given_are_a_warning() -> None:
    (told,) = MemoryCurve(points=(point(1, 30, huge_fraction=0.1),)).warnings()

    assert "10%" in told
    unknown = replace(point(1, 30), huge_fraction=None)
    assert MemoryCurve(points=(unknown,)).warnings() == []
