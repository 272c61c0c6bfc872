"""Table tests of units: bits against bytes, K against Ki, and what is refused."""

from __future__ import annotations

import pytest

from llamasweep.units import (
    counted,
    format_bytes,
    format_bytes_per_s,
    format_decimal_bytes,
    format_flop,
    format_flop_per_s,
    format_gb_per_s,
    format_seconds,
    format_tps,
    parse_bytes,
    parse_bytes_per_s,
    parse_flop_per_s,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("0", 0),
        (17, 17),
        ("1024 B", 1024),
        ("1 kB", 1000),
        ("1 KB", 1000),
        ("1 KiB", 1024),
        ("512 MB", 512_000_000),
        ("512MiB", 512 * 2**20),
        ("8 GiB", 8 * 2**30),
        ("8 GB", 8_000_000_000),
        ("1.5 TiB", 3 * 2**39),
        ("8 Gb", 1_000_000_000),
        ("8 Gib", 2**30),
        ("16 bits", 2),
    ],
)
def test_sizes_are_read_as_written(text: str | int, n_bytes: int) -> None:
    assert parse_bytes(text) == n_bytes


@pytest.mark.parametrize("text", ["8G", "8 Gi", "512M", "", "GiB", "-1 GB", "1e3 B", "nan B", -1])
def test_ambiguous_or_broken_sizes_are_refused(text: str | int) -> None:
    with pytest.raises(ValueError, match=r"ambiguous|not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("51.2 GB/s", 51.2e9), ("400 Gb/s", 50e9), ("1 GiB/s", 2**30), ("3 GBps", 3e9)],
)
def test_bandwidths_are_read_as_written(text: str | float, bytes_per_s: float) -> None:
    assert parse_bytes_per_s(text) == pytest.approx(bytes_per_s)


@pytest.mark.parametrize(
    "text", ["51.2", 51, 5e9, "51.2 GB", "0 GB/s", "G/s", 0, float("inf"), True]
)
def test_broken_bandwidths_are_refused(text: str | float) -> None:
    with pytest.raises(ValueError, match="not a bandwidth"):
        parse_bytes_per_s(text)


@pytest.mark.parametrize(
    ("text", "flop_per_s"),
    [("58.3 TFLOPS", 58.3e12), ("300GFLOP/s", 300e9), ("1.6 PFLOPS", 1.6e15), ("330 TOPS", 330e12)],
)
def test_compute_rates_are_read_as_written(text: str, flop_per_s: float) -> None:
    assert parse_flop_per_s(text) == pytest.approx(flop_per_s)


@pytest.mark.parametrize(
    "text", ["58.3", 58, 5e13, "58 T", "0 TFLOPS", "-1 TFLOPS", "TFLOPS", True]
)
def test_broken_compute_rates_are_refused(text: str | float) -> None:
    with pytest.raises(ValueError, match="not a compute rate"):
        parse_flop_per_s(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("90", 90),
        (2.5, 2.5),
        ("10m", 600),
        ("10 min", 600),
        ("1h30m", 5400),
        ("1h 30m 15s", 5415),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("2d", 172800),
        ("1m30s", 90),
        ("1min30s", 90),
    ],
)
def test_durations_are_read_as_written(text: str | float, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "30m1h", "1h1h", "1 week", "-5s", "07:00", "1e9d", True])
def test_broken_durations_are_refused(text: str | float) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_seconds(text)


def test_values_are_shown_with_digits_that_mean_something() -> None:
    assert format_bytes(999) == "999 B"
    assert format_bytes(1024) == "1.00 KiB"
    assert format_bytes(4_920_000_000) == "4.58 GiB"
    assert format_bytes(2**30 - 1) == "1.00 GiB"
    assert format_bytes_per_s(51.2e9) == "51.2 GB/s"
    assert format_flop_per_s(82.6e12) == "82.6 TFLOPS"
    assert [format_seconds(s) for s in (0.25, 12.34, 59.97, 245, 12_000, 183_600)] == [
        "250 ms",
        "12.3 s",
        "1 min 00 s",
        "4 min 05 s",
        "3 h 20 min",
        "2 d 3 h",
    ]
    assert [format_tps(v) for v in (8.123, 42.34, 1183.2)] == ["8.12 t/s", "42.3 t/s", "1183 t/s"]


def test_one_of_a_thing_is_not_many() -> None:
    assert [counted(n, "cell") for n in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]


def test_bytes_beside_a_bandwidth_are_decimal_like_it() -> None:
    assert format_bytes(2**30) == "1.00 GiB"
    assert format_decimal_bytes(2**30) == "1.07 GB"
    assert format_decimal_bytes(0) == "0 B"
    assert format_flop(8.04e9) == "8.04 GFLOP"
    assert format_gb_per_s(89.6e9) == "89.6 GB/s"
    assert format_gb_per_s(1008e9) == "1,008 GB/s"
