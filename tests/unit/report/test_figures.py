from __future__ import annotations

import pytest

from llamasweep.report import figures

T = figures.THIN


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (41.25, "41.2"),
        (99.96, "100"),
        (123.4, "123"),
        (2048, "2048"),
        (12345.6, f"12{T}346"),
        (1234567, f"1{T}234{T}567"),
        (-41.2, "−41.2"),
    ],
)
def test_numbers_have_three_digits_and_are_integers_above_100(value: float, text: str) -> None:
    assert figures.number(value) == text


def test_numbers_that_are_none_are_not_dressed_up() -> None:
    assert figures.number(float("nan")) == "nan"


@pytest.mark.parametrize(
    ("std", "value", "text"),
    [
        (0.61, 41.2, "0.6"),
        (12.4, 485.0, "12"),
        (0.004, 41.2, "0.004"),
        (0.0, 41.2, "0.0"),
        (0.061, 9.5, "0.06"),
    ],
)
def test_spread_has_the_decimals_of_its_value_but_never_reads_as_zero(
    std: float, value: float, text: str
) -> None:
    assert figures.spread(std, value) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.814, f"81{T}%"), (0, f"0{T}%"), (0.003, f"under 1{T}%"), (1.7, f"170{T}%")],
)
def test_percent_has_no_decimals(fraction: float, text: str) -> None:
    assert figures.percent(fraction) == text


def test_units_stand_behind_a_thin_space() -> None:
    assert figures.rate(41.25) == f"41.2{T}t/s"
    assert figures.size(4.58 * 2**30) == f"4.58{T}GiB"
    assert figures.bandwidth(41.8e9) == f"41.8{T}GB/s"
    assert figures.energy(0.41) == f"0.410{T}J"
    assert figures.energy(0.0123) == f"12.3{T}mJ"
    assert figures.duration(161) == f"2{T}min{T}41{T}s"


def test_words_count_in_singular_and_plural() -> None:
    assert figures.counted(1, "cell") == "1 cell"
    assert figures.counted(12000, "cell") == f"12{T}000 cells"
    assert figures.counted(2, "process", "processes") == "2 processes"
    assert figures.times(1.734) == "1.73 times"


def test_a_span_of_equal_ends_is_one_value() -> None:
    assert figures.span(f"62{T}%", f"62{T}%") == f"62{T}%"
    assert figures.span(f"62{T}%", f"77{T}%") == f"62 to 77{T}%"
    assert figures.span("1", "2") == "1 to 2"
