"""Numbers as people read them: three significant digits, integers above 100, a unit, a thin space in thousands.

Four digits stand together, as people write 2048 and 4096; from five on they are grouped.

Knows nothing of records. A missing value is never formatted here: the callers say "not measured" with the reason.
"""

from __future__ import annotations

import math

from llamasweep import units

THIN = "\u202f"
"""Narrow no-break space: between thousands and before a unit."""


def number(value: float) -> str:
    """Three significant digits; integers from 100 on."""
    if not math.isfinite(value):
        return str(value)
    return _grouped(f"{value:.{decimals(value)}f}")


def decimals(value: float) -> int:
    """How many decimals three significant digits need: 0 from 100 on, at most 8."""
    if value == 0:
        return 0
    rounded = abs(float(f"{abs(value):.3g}"))
    return min(8, max(0, 2 - math.floor(math.log10(rounded))))


def spread(std: float, value: float) -> str:
    """A spread with as many decimals as its value, or one significant digit where that would read as 0."""
    places = decimals(value)
    text = f"{std:.{places}f}"
    if std > 0 and float(text) == 0:
        return f"{std:.1g}"
    return _grouped(text)


def rate(tps: float) -> str:
    """Tokens per second with its unit."""
    return f"{number(tps)}{THIN}t/s"


def count(value: int) -> str:
    """An integer, grouped from five digits on."""
    return _grouped(str(value))


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """`1 cell`, `3 cells`."""
    return f"{count(n)} {noun if n == 1 else (plural or noun + 's')}"


def percent(fraction: float) -> str:
    """Without decimals; below half a percent it says so instead of 0."""
    if 0 < fraction < 0.005:
        return f"under 1{THIN}%"
    return f"{_grouped(f'{fraction * 100:.0f}')}{THIN}%"


def size(n_bytes: float) -> str:
    """Memory in powers of two: B, KiB, MiB, GiB, TiB."""
    return units.format_bytes(round(n_bytes)).replace(" ", THIN)


def bandwidth(bytes_per_s: float) -> str:
    """As makers state it: GB/s, powers of ten."""
    return units.format_bytes_per_s(bytes_per_s).replace(" ", THIN)


def compute(flop_per_s: float) -> str:
    """As makers state it: TFLOPS, powers of ten."""
    return units.format_flop_per_s(flop_per_s).replace(" ", THIN)


def energy(joules: float) -> str:
    """Joules, or millijoules below a tenth."""
    if 0 < joules < 0.1:
        return f"{number(joules * 1e3)}{THIN}mJ"
    return f"{number(joules)}{THIN}J"


def duration(seconds: float) -> str:
    """Two parts at most: seconds, minutes and seconds, hours and minutes."""
    return units.format_seconds(seconds).replace(" ", THIN)


def times(ratio: float) -> str:
    """A ratio as a factor: `1.73 times`."""
    return f"{number(ratio)} times"


def share_of_ceiling(fraction: float, *, is_reference: bool) -> str:
    """`81 % of the exact ceiling`; of a reference, which may be exceeded, `1.51 times the reference peak`."""
    if is_reference:
        return f"{times(fraction)} the reference peak"
    return f"{percent(fraction)} of the exact ceiling"


def span(low: str, high: str) -> str:
    """`62 to 77 %`, or one value where both read the same; a shared unit is said once."""
    if low == high:
        return low
    head, _, unit = low.rpartition(THIN)
    if head and high.endswith(THIN + unit):
        return f"{head} to {high}"
    return f"{low} to {high}"


def _grouped(text: str) -> str:
    sign = "−" if text.startswith("-") else ""
    whole, dot, fraction = text.lstrip("-").partition(".")
    if len(whole) > 4:
        first = len(whole) % 3 or 3
        parts = [whole[:first]] + [whole[i : i + 3] for i in range(first, len(whole), 3)]
        whole = THIN.join(parts)
    return sign + whole + dot + fraction
