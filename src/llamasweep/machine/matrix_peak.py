"""The CPU's rate of multiplying matrices with NumPy's BLAS: a reference, not a ceiling of llama.cpp.

llama.cpp multiplies quantised weights with integer dot products of its own, which no FP32 rate
bounds. The figure tells whether a machine computes as fast as others of its kind.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

MATRIX_SIZE = 2048
MIN_CALLS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixPeak:
    """FP32 matrix products per second of wall time.

    best_flop_per_s and median_flop_per_s: 2 n^3 per product, over all calls. blas: the library as NumPy
    names it, None where it does not; it chooses its threads itself.
    """

    best_flop_per_s: float
    median_flop_per_s: float
    matrix_size: int
    n_calls: int
    blas: str | None = None
    method: str = "NumPy float32 matrix product (reference; llama.cpp uses other kernels)"


def measure_matrix_peak(seconds: float = 2.0, *, matrix_size: int = MATRIX_SIZE) -> MatrixPeak:
    """Multiply two square matrices again and again for `seconds`, at least three times."""
    import numpy as np  # noqa: PLC0415  (heavy, and only measuring needs it)

    generator = np.random.default_rng(0)
    left, right = (generator.random((matrix_size, matrix_size), dtype=np.float32) for _ in range(2))
    result = np.empty_like(left)
    np.matmul(left, right, out=result)  # starts the library's threads
    n_flop = 2.0 * matrix_size**3
    rates: list[float] = []
    start_ns = time.monotonic_ns()
    while len(rates) < MIN_CALLS or time.monotonic_ns() - start_ns < seconds * 1e9:
        before_ns = time.perf_counter_ns()
        np.matmul(left, right, out=result)
        rates.append(n_flop / (max(1, time.perf_counter_ns() - before_ns) / 1e9))
    return MatrixPeak(
        best_flop_per_s=max(rates),
        median_flop_per_s=statistics.median(rates),
        matrix_size=matrix_size,
        n_calls=len(rates),
        blas=blas_name(),
    )


def blas_name() -> str | None:
    """Name and version of the BLAS that NumPy was built with, None where it does not tell."""
    import numpy as np  # noqa: PLC0415  (heavy, and only measuring needs it)

    try:
        configuration = np.show_config(mode="dicts")
        blas = configuration["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas.get('version', '')}".strip()
    except (KeyError, TypeError, AttributeError):
        return None
