"""Peak compute rates from counts and clocks, and where a piece of work lies against them. Pure.

For devices whose maker states no rate. Figures with sparsity are not peaks here; halve them first.
"""

from __future__ import annotations

FLOP_PER_FMA = 2
"""A fused multiplication and addition counts as two operations."""


def matrix_units_flop_per_s(n_units: int, fma_per_unit: int, clock_hz: float) -> float:
    """Of tensor cores: units x FMA per unit and cycle x 2 x clock.

    An Ada core does 128 FMA a cycle summing in FP16, half of that summing in FP32 on GeForce.
    """
    return n_units * fma_per_unit * FLOP_PER_FMA * clock_hz


def cpu_flop_per_s(n_cores: int, flop_per_cycle: int, clock_hz: float) -> float:
    """Of a CPU in FP32: cores x FLOP per core and cycle x clock under load.

    Per core and cycle: SSE2 8, AVX 16, AVX2 with FMA 32, AVX-512 with two units 64. A reference:
    llama.cpp multiplies quantised weights in integer dot products.
    """
    return n_cores * flop_per_cycle * clock_hz


def times_below_ridge(flop_per_byte: float, ridge_flop_per_byte: float) -> float:
    """How many times the work per byte would have to grow before compute limits: ridge / work per byte."""
    return ridge_flop_per_byte / flop_per_byte
