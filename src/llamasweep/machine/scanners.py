"""Ways to read every byte of a stretch of memory with what every machine has: libc and NumPy.

`memchr` looks for a byte that is not there: one stream per thread. `memcmp` compares two halves: two
streams. A vector times a matrix of NumPy's BLAS reads more rows beside each other, as the weights of a
model are read. More streams keep more of a core's prefetchers busy, and none is the fastest everywhere.
Where the C library's are slow (byte loops), NumPy's maximum reads.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from llamasweep.machine.matrix_peak import blas_name

VECTOR_MATRIX = "vector times matrix"

_N_COLUMNS = 1024
_FP32_BYTES = 4
_TRIAL_BYTES = 256 * 1024
_TRIAL_CALLS = 8
_TRIALS = 12
_FAST_IN_CACHE_BYTES_PER_S = 20e9
"""A scan below this within the cache computes more than it reads, and something else is tried."""

ABSENT_BYTE = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Scanner:
    """One way to read every byte. scan(address, n_bytes) raises ValueError if it stopped early.

    n_bytes: of whole 4 KiB pages. while_reading: what must hold meanwhile, such as a BLAS that starts no threads of its own.
    """

    name: str
    scan: Callable[[int, int], None]
    while_reading: Callable[[], AbstractContextManager[object]] = nullcontext


def choose_scanners() -> tuple[Scanner, ...]:
    """What reads well here: with one stream per thread, with two, and with many. Empty where nothing can read."""
    one, two = choose_scanner(), load_memcmp()
    if two is not None and _rate_in_cache(two) < _FAST_IN_CACHE_BYTES_PER_S:
        two = None
    # A BLAS has vectors; so little memory as the cache holds would tell the price of the call instead.
    return tuple(scanner for scanner in (one, two, load_vector_matrix()) if scanner is not None)


def load_named(name: str) -> Scanner | None:
    """The way of reading that a calibration found the fastest; None where it is not here (any more)."""
    load = {
        "memchr": load_memchr,
        "memcmp": load_memcmp,
        "numpy max": load_numpy,
        VECTOR_MATRIX: load_vector_matrix,
    }.get(name)
    return None if load is None else load()


def choose_scanner(
    memchr: Scanner | None = None, other: Callable[[], Scanner | None] | None = None
) -> Scanner | None:
    """One stream: memchr, or NumPy's maximum where memchr is missing or slow and that is faster; None: neither.

    memchr and other: stand-ins.
    """
    first = memchr or load_memchr()
    first_rate = 0.0 if first is None else _rate_in_cache(first)
    if first_rate >= _FAST_IN_CACHE_BYTES_PER_S:
        return first
    second = (other or load_numpy)()
    if second is None or _rate_in_cache(second) <= first_rate:
        return first
    return second


def load_memchr() -> Scanner | None:
    """libc's memchr, None where it cannot be called."""
    function = _c_function("memchr", (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t))
    if function is None:
        return None

    def scan(address: int, n_bytes: int) -> None:
        if function(address, ABSENT_BYTE, n_bytes):
            raise ValueError("memchr found a byte that is not there")

    return Scanner(name="memchr", scan=scan)


def load_memcmp() -> Scanner | None:
    """libc's memcmp over two halves, None where it cannot be called."""
    function = _c_function("memcmp", (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t))
    if function is None:
        return None

    def scan(address: int, n_bytes: int) -> None:
        half = n_bytes // 2
        if function(address, address + half, half):
            raise ValueError("memcmp found a byte that is not there")

    return Scanner(name="memcmp", scan=scan)


def _c_function(name: str, argument_types: tuple[Any, ...]) -> Callable[..., int | None] | None:
    try:
        library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        function: Any = getattr(library, name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p if name == "memchr" else ctypes.c_int
    function.argtypes = argument_types
    return function  # type: ignore[no-any-return]


def load_numpy() -> Scanner | None:
    """NumPy's maximum over bytes, None without NumPy."""
    try:
        import numpy as np  # noqa: PLC0415  (heavy, and only slow C libraries need it)
    except ImportError:
        return None

    def scan(address: int, n_bytes: int) -> None:
        memory = memoryview((ctypes.c_uint8 * n_bytes).from_address(address))
        if np.frombuffer(memory, dtype=np.uint8).max() == ABSENT_BYTE:
            raise ValueError("NumPy found a byte that is not there")

    return Scanner(name="numpy max", scan=scan)


def load_vector_matrix() -> Scanner | None:
    """NumPy's product of a vector and an FP32 matrix, as decode reads weights; None where its BLAS cannot be held to one thread.

    A column of vector times matrix is added up for 1,024 columns at once, so that rows are read beside each other.
    """
    try:
        import numpy as np  # noqa: PLC0415  (heavy, and only measuring needs it)
        import threadpoolctl  # noqa: PLC0415  (only this way of reading needs it)
    except ImportError:
        return None
    if not _holds_to_one_thread(threadpoolctl.threadpool_info(), blas_name()):
        return None

    def scan(address: int, n_bytes: int) -> None:
        n_rows = n_bytes // (_N_COLUMNS * _FP32_BYTES)
        memory = memoryview((ctypes.c_float * (n_rows * _N_COLUMNS)).from_address(address))
        matrix = np.frombuffer(memory, dtype=np.float32).reshape(n_rows, _N_COLUMNS)
        if (np.ones(n_rows, dtype=np.float32) @ matrix).any():
            raise ValueError("NumPy found a byte that is not there")

    def one_thread() -> AbstractContextManager[object]:
        limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, "blas")
        return limits

    return Scanner(name=VECTOR_MATRIX, scan=scan, while_reading=one_thread)


def _holds_to_one_thread(pools: list[dict[str, Any]], numpy_blas: str | None) -> bool:
    """Whether a limit that one thread sets holds for the calls of all others.

    Not where OpenMP keeps the number for each thread apart (OpenBLAS built with it, BLIS), nor for
    Apple's Accelerate, whose threads nothing limits: another library's OpenBLAS may be loaded beside it.
    """
    libraries = [pool for pool in pools if pool.get("user_api") == "blas"]
    is_accelerate = numpy_blas is not None and "accelerate" in numpy_blas.lower()
    return bool(libraries) and not is_accelerate and all(map(_limits_all_threads, libraries))


def _limits_all_threads(library: dict[str, Any]) -> bool:
    if library.get("internal_api") == "mkl":
        return True
    layer = library.get("threading_layer")
    return library.get("internal_api") == "openblas" and layer in ("pthreads", "disabled")


def _rate_in_cache(scanner: Scanner) -> float:
    """Bytes per second over memory that stays in the cache; the best of some short trials."""
    memory = ctypes.create_string_buffer(_TRIAL_BYTES)
    address = ctypes.addressof(memory)
    with scanner.while_reading():
        best_ns = min(_timed_ns(scanner, address) for _ in range(_TRIALS))
    return _TRIAL_CALLS * _TRIAL_BYTES / (best_ns / 1e9)


def _timed_ns(scanner: Scanner, address: int) -> int:
    start_ns = time.perf_counter_ns()
    for _ in range(_TRIAL_CALLS):
        scanner.scan(address, _TRIAL_BYTES)
    return max(1, time.perf_counter_ns() - start_ns)
