"""Memory words become bandwidth, or a sentence that says what is missing."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamasweep.ceilings.memory_words import parse_memory


@pytest.mark.parametrize(
    ("text", "n_channels", "gb_per_s"),
    [
        ("DDR4-3200x1", 1, 25.6),
        ("DDR4-3200x2", 2, 51.2),
        ("DDR5-5600x2", 2, 89.6),
        ("ddr5-4800x12", 12, 460.8),
        ("2xDDR4-3200", 2, 51.2),
        ("DDR4-3200 dual channel", 2, 51.2),
        ("DDR4-2666 quad", 4, 85.312),
        ("DDR5 6000 MT/s x 4", 4, 192),
        ("DDR5-4800, 8 channels", 8, 307.2),
        ("MRDIMM-8800x12", 12, 844.8),
        ("DDR3L-1600×2", 2, 25.6),
        ("LPDDR5X-8533x128bit", None, 136.528),
        ("LPDDR5X-8000 256-bit", None, 256),
        ("LPDDR4-3200x32bit", None, 12.8),
        ("GDDR6X-21000 192-bit", None, 504),
    ],
)
def test_words_are_channels_times_transfers(
    text: str, n_channels: int | None, gb_per_s: float
) -> None:
    memory = parse_memory(text)

    assert memory.n_channels == n_channels
    assert memory.bandwidth_bytes_per_s == pytest.approx(gb_per_s * 1e9, rel=1e-9)
    assert memory.bus_bits / 8 * memory.speed_mts * 1e6 == memory.bandwidth_bytes_per_s


def test_the_source_is_the_formula_with_the_numbers() -> None:
    assert parse_memory("DDR5-5600x2").source == (
        "computed for DDR5-5600: 2 x 8 bytes x 5600 MT/s = 89.6 GB/s"
    )
    assert "128 bits / 8 x 8533 MT/s" in parse_memory("LPDDR5X-8533x128bit").source


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("DDR4-3200", "how many channels"),
        ("LPDDR5X-7500x2", "width of the whole bus"),
        ("LPDDR5X-7500", "width of the whole bus"),
        ("DDR4-320x2", "DDR4 runs at 1600 to 5600 MT/s"),
        ("DDR5-56000x2", "DDR5 runs at"),
        ("DDR5-5600x0", "1 to 32 are possible"),
        ("DDR5-5600x64", "1 to 32 are possible"),
        ("DDR5-5600x7bit", "does not exist"),
        ("2xDDR5-5600x2", "twice"),
        ("5600x2", "is not memory"),
        ("DDR5", "is not memory"),
        ("", "is not memory"),
        ("DDR5-5600x2; rm -rf ~", "is not memory"),
        ("DDR5-" + "5" * 10_000, "is not memory"),
    ],
)
def test_what_is_missing_is_said(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as problem:
        parse_memory(text)
    assert len(str(problem.value)) < 250


@given(st.text(max_size=120))
def test_any_text_is_memory_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 < parse_memory(text).bandwidth_bytes_per_s < 1e14
