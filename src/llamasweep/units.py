"""Bytes, durations and rates: their types, how people write them, how they are shown.

The only place that converts. Memory is binary (GiB, 2^30), bandwidth and compute are decimal
(GB/s, TFLOPS, 10^9 and 10^12); bits (b) and bytes (B) are kept apart. Parsers raise ValueError with
a sentence for people.
"""

from __future__ import annotations

import math
import re
from typing import NewType

from llamasweep.errors import quoted

Bytes = NewType("Bytes", int)
Seconds = NewType("Seconds", float)
BytesPerSecond = NewType("BytesPerSecond", float)
FlopPerSecond = NewType("FlopPerSecond", float)

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PREFIXES = {**_DECIMAL, **_BINARY}
_FLOP_PREFIXES = {**_DECIMAL, "P": 10**15}

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*(Ki|Mi|Gi|Ti|k|K|M|G|T)?(B|b|bytes?|bits?)?")
_RATE = re.compile(r"(.+?)\s*(?:/\s*s|ps)")
_FLOPS = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*(k|M|G|T|P)?(?:FLOPS|FLOP/s|OPS)")
_DURATION_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ms|s|m|min|h|d)(?![a-z])")
_DURATION_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_ORDER = ("d", "h", "m", "s", "ms")
_LONGEST_S = 366 * 86400.0


def parse_bytes(text: str | int) -> Bytes:
    """Bytes from "8 GiB", "512 MB", "1024 B" or a plain int of bytes.

    "Gb" is bits and is divided by 8. A bare "8G" is refused: 2^30 to some, 10^9 to others.
    """
    if isinstance(text, int):
        if isinstance(text, bool) or text < 0:
            raise ValueError(f"{text!r} is not a size in bytes")
        return Bytes(text)
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{quoted(text)} is not a size; write it like '8 GiB' or '512 MB'")
    number, prefix, unit = match.groups()
    if unit is None:
        if prefix:
            raise ValueError(
                f"{quoted(text)} is ambiguous: write {number} {prefix[0]}iB (2^n) or "
                f"{number} {prefix[0]}B (10^n)"
            )
        unit = "B"
    bits = unit in {"b", "bit", "bits"}
    return Bytes(round(float(number) * _PREFIXES[prefix or ""] / (8 if bits else 1)))


def parse_bytes_per_s(text: str | int | float) -> BytesPerSecond:
    """Bytes per second, above 0, from "51.2 GB/s" or "400 Gb/s" (bits).

    A plain number is refused: people mean GB/s by it, and 51 bytes a second would make nonsense of every ceiling.
    """
    match = _RATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(
            f"{quoted(text)} is not a bandwidth; write it with its unit, like '51.2 GB/s'"
        )
    try:
        value = float(parse_bytes(match.group(1)))
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a bandwidth; write it like '51.2 GB/s'") from None
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{quoted(text)} is not a bandwidth above 0")
    return BytesPerSecond(value)


def parse_flop_per_s(text: str | int | float) -> FlopPerSecond:
    """Calculations per second, above 0, from "58.3 TFLOPS" or "300 GFLOP/s". A plain number is refused, as for bandwidths."""
    match = _FLOPS.fullmatch(text.strip()) if isinstance(text, str) else None
    value = 0.0 if match is None else float(match[1]) * _FLOP_PREFIXES[match[2] or ""]
    if value <= 0:
        raise ValueError(
            f"{quoted(text)} is not a compute rate above 0; write it with its unit, like '58.3 TFLOPS'"
        )
    return FlopPerSecond(value)


def parse_seconds(text: str | int | float) -> Seconds:
    """Seconds from "90s", "10m", "1h30m", "250ms", "2d" or a plain number; at most 366 days.

    Parts stand from the largest to the smallest, each at most once.
    """
    if isinstance(text, int | float):
        return _checked_seconds(text, float(text))
    rest = text.strip().lower() if isinstance(text, str) else ""
    if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", rest):
        return _checked_seconds(text, float(rest))
    total, position, rank = 0.0, 0, -1
    while position < len(rest):
        match = _DURATION_PART.match(rest, position) or _glued(rest, position)
        if match is None:
            raise _not_a_duration(text)
        unit = "m" if match.group(2) == "min" else match.group(2)
        if _DURATION_ORDER.index(unit) <= rank:
            raise _not_a_duration(text)
        rank = _DURATION_ORDER.index(unit)
        total += float(match.group(1)) * _DURATION_S[unit]
        position = match.end()
        while position < len(rest) and rest[position] == " ":
            position += 1
    if rank < 0:
        raise _not_a_duration(text)
    return _checked_seconds(text, total)


def _glued(text: str, position: int) -> re.Match[str] | None:
    """A part followed at once by the next, as in 1h30m (a digit may follow, a letter may not)."""
    return re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ms|s|m|min|h|d)(?=\d)").match(text, position)


def _checked_seconds(text: object, value: float) -> Seconds:
    if isinstance(text, bool) or not math.isfinite(value) or not 0 <= value <= _LONGEST_S:
        raise ValueError(f"{quoted(text)} is not a duration between 0 and 366 days")
    return Seconds(value)


def _not_a_duration(text: object) -> ValueError:
    return ValueError(f"{quoted(text)} is not a duration; write it like '90s', '10m' or '1h30m'")


def format_bytes(n_bytes: int) -> str:
    """Memory as people read it, binary: 999 B, 4.58 GiB."""
    return _with_prefix(n_bytes, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def format_decimal_bytes(n_bytes: float) -> str:
    """Bytes beside a bandwidth, decimal like it, so that one can be divided by the other: 4.58 GB."""
    return _with_prefix(n_bytes, 1000, ("B", "kB", "MB", "GB", "TB"))


def format_flop(value: float) -> str:
    """Work, a count and no rate: 8.04 GFLOP."""
    return _with_prefix(value, 1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"))


def format_bytes_per_s(value: float) -> str:
    """Bandwidth as makers state it, decimal: 51.2 GB/s."""
    return _with_prefix(value, 1000, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))


def format_gb_per_s(value: float) -> str:
    """Bandwidth in one unit whatever its size, for formulas: 8.25 GB/s, 1,008 GB/s."""
    in_gb = value / 1e9
    return f"{in_gb:,.0f} GB/s" if in_gb >= 1000 else f"{in_gb:.3g} GB/s"


def format_flop_per_s(value: float) -> str:
    """Compute as makers state it, decimal: 82.6 TFLOPS."""
    return _with_prefix(value, 1000, ("FLOPS", "kFLOPS", "MFLOPS", "GFLOPS", "TFLOPS"))


def _with_prefix(value: float, base: int, units: tuple[str, ...]) -> str:
    step, shown = 0, float(value)
    while step < len(units) - 1 and abs(shown) >= base * 0.9995:
        shown /= base
        step += 1
    digits = 0 if step == 0 else max(0, 2 - max(0, math.floor(math.log10(abs(shown)))))
    return f"{shown:.{digits}f} {units[step]}"


def format_seconds(value: float) -> str:
    """A duration with two parts at most: 250 ms, 12.3 s, 4 min 05 s, 3 h 20 min, 2 d 3 h."""
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    total = round(value)
    if total < 3600:
        return f"{total // 60} min {total % 60:02d} s"
    minutes = round(value / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(value / 3600)
    return f"{hours // 24} d {hours % 24} h"


def counted(n: int, noun: str) -> str:
    """A number with its noun: `1 cell`, `3 cells`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def format_tps(value: float) -> str:
    """Tokens per second with three digits that mean something: 8.12, 42.3, 1183."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f} t/s"
