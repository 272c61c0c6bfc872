"""Bandwidth of RAM from the words on its box: `DDR5-5600x2`, `LPDDR5X-8533x128bit`.

Plain arithmetic on the memory standards; knows no machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llamasweep.units import BytesPerSecond

_WORDS = re.compile(
    r"(?:(?P<before>\d{1,2})\s*x\s*)?"
    r"(?P<kind>(?:LP|G)?DDR[1-9]?[XL]?|MRDIMM|HBM[1-9]?E?)[\s_-]*"
    r"(?P<speed>\d{2,5})(?:\s*MT/?s)?\s*"
    r"(?:[,x*×@/-]?\s*(?P<bits>\d{1,5})[\s-]*bits?"
    r"|[,x*×/]?\s*(?P<after>\d{1,2})(?:[\s-]*(?:channels?|ch))?"
    r"|[,-]?\s*(?P<word>single|dual|triple|quad|hexa|octa)(?:[\s-]*channels?)?)?",
    re.IGNORECASE,
)
_COUNTS = {"single": 1, "dual": 2, "triple": 3, "quad": 4, "hexa": 6, "octa": 8}
_CHANNEL_BITS = 64
_MAX_CHANNELS = 32
_MAX_BUS_BITS = 16384

_SPEEDS_MTS = {
    "DDR": (200, 600),
    "DDR2": (400, 1300),
    "DDR3": (800, 3200),
    "DDR4": (1600, 5600),
    "DDR5": (3200, 12800),
    "MRDIMM": (6400, 17600),
}
"""Slowest of the standard to the fastest that is sold; outside it a digit is missing or too many."""

_ANY_SPEED_MTS = (100, 40000)


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryWords:
    """What the words say.

    speed_mts: transfers per second in millions, not the clock, which is half. n_channels: of 64
    bits each, None where the width was given instead. bandwidth_bytes_per_s: the peak of the
    standard. source: the formula with the numbers in it.
    """

    kind: str
    speed_mts: int
    n_channels: int | None
    bus_bits: int
    bandwidth_bytes_per_s: BytesPerSecond
    source: str


def parse_memory(text: str) -> MemoryWords:
    """Memory words as bandwidth: bus bits / 8 * MT/s * 10^6 (JEDEC data rates).

    `DDR5-5600x2` has two channels of 64 bits; a DDR5 module's two 32-bit halves are one such
    channel. LPDDR, GDDR and HBM are stated by the width of the whole bus (`LPDDR5X-8533x128bit`).
    Raises ValueError with a sentence that says what is missing.
    """
    match = _WORDS.fullmatch(text.strip()) if len(text) <= 100 else None
    if match is None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise ValueError(
            f"{shown!r} is not memory; write it like 'DDR5-5600x2' (channels) or "
            "'LPDDR5X-8533x128bit' (width of the bus)"
        )
    kind, speed = match["kind"].upper(), int(match["speed"])
    slowest, fastest = _SPEEDS_MTS.get(kind.removesuffix("L"), _ANY_SPEED_MTS)
    if not slowest <= speed <= fastest:
        raise ValueError(f"{kind} runs at {slowest} to {fastest} MT/s, not at {speed}")
    n_channels = _n_channels(match)
    bits = _bus_bits(kind, speed, match["bits"], n_channels)
    bandwidth = bits / 8 * speed * 1e6
    width = f"{bits} bits / 8" if n_channels is None else f"{n_channels} x 8 bytes"
    return MemoryWords(
        kind=kind,
        speed_mts=speed,
        n_channels=n_channels,
        bus_bits=bits,
        bandwidth_bytes_per_s=BytesPerSecond(bandwidth),
        source=f"computed for {kind}-{speed}: {width} x {speed} MT/s = {bandwidth / 1e9:.4g} GB/s",
    )


def _n_channels(match: re.Match[str]) -> int | None:
    """Channels as said in one of three ways, None if not at all."""
    if match["word"]:
        return _COUNTS[match["word"].casefold()]
    if match["before"] and (match["after"] or match["bits"]):
        raise ValueError(f"{match[0]!r} says the width twice")
    count = match["before"] or match["after"]
    return int(count) if count else None


def _bus_bits(kind: str, speed: int, bits: str | None, n_channels: int | None) -> int:
    if bits is not None:
        width = int(bits)
        if width % 8 or not 8 <= width <= _MAX_BUS_BITS:
            raise ValueError(f"a memory bus of {width} bits does not exist")
        return width
    if not (kind.startswith("DDR") or kind == "MRDIMM"):
        raise ValueError(
            f"{kind} has channels of several widths; give the width of the whole bus, such as "
            f"'{kind}-{speed}x128bit'"
        )
    if n_channels is None:
        raise ValueError(
            f"how many channels of {kind}-{speed}? '{kind}-{speed}x2' for two, which most desktops "
            "and laptops with two modules have"
        )
    if not 1 <= n_channels <= _MAX_CHANNELS:
        raise ValueError(f"{n_channels} memory channels: 1 to {_MAX_CHANNELS} are possible")
    return n_channels * _CHANNEL_BITS
