"""What a ceiling rests on, as data: which bandwidth, which peak, which rule. Pure.

Every result of this room carries a tuple of these, so that a figure that turns out to be wrong can
be traced to the assumption that broke.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from llamasweep.units import format_bytes_per_s, format_flop_per_s

Basis = Literal["spec", "measured", "given"]
"""spec: a maker's figure. measured: on this machine. given: by the user, who knows why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumption:
    """One thing taken to be true.

    topic: a short word to group by ("bandwidth", "peak", "routing", "weights", "kv_cache",
    "context", "attention", "placement", "architecture",
    "memory", "machine"). text: a sentence for people.
    """

    topic: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Bandwidth:
    """How fast a device's memory is read. bytes_per_s: above 0."""

    bytes_per_s: float
    basis: Basis = "given"

    def __post_init__(self) -> None:
        _refuse_unless_positive(self.bytes_per_s, "bandwidth")

    @property
    def assumption(self) -> Assumption:
        """Which bandwidth it is."""
        return Assumption(
            topic="bandwidth",
            text=f"memory is read at {format_bytes_per_s(self.bytes_per_s)} ({self.basis})",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """How fast a device calculates. flop_per_s: above 0, without sparsity.

    is_reference: True where kernels may use faster units than this figure counts, so that it is a
    line to compare with and no bound (quantised matrices run on int8 units on NVIDIA from 7.5 on).
    """

    flop_per_s: float
    basis: Basis = "given"
    is_reference: bool = False

    def __post_init__(self) -> None:
        _refuse_unless_positive(self.flop_per_s, "peak")

    @property
    def assumption(self) -> Assumption:
        """Which peak it is, and whether it binds."""
        kind = "a reference, faster units exist" if self.is_reference else "taken as a bound"
        return Assumption(
            topic="peak",
            text=f"compute runs at {format_flop_per_s(self.flop_per_s)} ({self.basis}; {kind})",
        )


def _refuse_unless_positive(value: float, what: str) -> None:
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"a {what} of {value} is not above 0")


def ridge_flop_per_byte(peak: Peak, bandwidth: Bandwidth) -> float:
    """Work per byte at which compute takes over from memory.

    Formula: peak / bandwidth (the roofline's ridge point, Williams et al. 2009).
    """
    return peak.flop_per_s / bandwidth.bytes_per_s


def architecture_assumption(name: str, *, is_checked: bool) -> Assumption:
    """Whether the rules of this architecture were compared with llama.cpp's own figures."""
    ground = (
        "compared with llama.cpp b11434's own figures"
        if is_checked
        else "taken from the source of llama.cpp b11434, not compared with its figures"
    )
    return Assumption(topic="architecture", text=f"the rules of {name} are {ground}")
