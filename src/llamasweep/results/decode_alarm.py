"""When a slow generation is worth an alarm: a share alone cries wolf where the active set is small or the cache is deep.

Checked against published rates (docs/findings.md): healthy machines are within about 10 ms a token of the ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass

SHARE_BELOW = 0.70
EXCESS_ABOVE_MS = 10.0
DEPTH_MOST = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeShortfall:
    """What a generation rate lacks. fraction: rate / ceiling. excess_ms: 1000 / rate - 1000 / ceiling, per token."""

    fraction: float
    excess_ms: float


def decode_shortfall(measured_tps: float, ceiling_tps: float) -> DecodeShortfall:
    """How far a rate is from its ceiling. Raises ValueError unless both are above 0."""
    if not (measured_tps > 0 and ceiling_tps > 0):
        raise ValueError(f"a rate of {measured_tps} and a ceiling of {ceiling_tps} are not above 0")
    return DecodeShortfall(
        fraction=measured_tps / ceiling_tps, excess_ms=1000 / measured_tps - 1000 / ceiling_tps
    )


def is_decode_alarm(measured_tps: float, ceiling_tps: float, n_depth: int) -> bool:
    """Share below 0.70 and excess above 10 ms a token and a depth of at most 512.

    All three, because each alone is met by healthy machines: mixtures of experts on wide memory have low shares with an
    excess of 2.5 to 8.6 ms, and dense models fall to 66 % at a depth of 32,768.
    """
    lack = decode_shortfall(measured_tps, ceiling_tps)
    return (
        n_depth <= DEPTH_MOST and lack.fraction < SHARE_BELOW and lack.excess_ms > EXCESS_ABOVE_MS
    )
