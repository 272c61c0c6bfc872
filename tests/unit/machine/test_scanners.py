"""Ways of reading notice what they should not find, and the ones that compute more than they read give way."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest
import threadpoolctl

from llamasweep.machine import scanners
from llamasweep.machine.scanners import (
    Scanner,
    choose_scanner,
    choose_scanners,
    load_memchr,
    load_memcmp,
    load_named,
    load_numpy,
    load_vector_matrix,
)


def slow(_: int, __: int) -> None:
    """A byte loop, in effect."""
    sum(range(20_000))


def fast(name: str = "memchr") -> Scanner:
    """Takes no time at all."""
    return Scanner(name=name, scan=lambda _, __: None)


@pytest.mark.parametrize("load", [load_memchr, load_memcmp, load_numpy, load_vector_matrix])
def test_scanners_read_zeros_and_notice_the_byte_they_look_for(load: object) -> None:
    assert callable(load)
    scanner = load()
    if scanner is None and load is load_vector_matrix:
        pytest.skip("this NumPy's BLAS cannot be held to one thread")
    assert isinstance(scanner, Scanner)
    memory = ctypes.create_string_buffer(4096)
    address = ctypes.addressof(memory)

    scanner.scan(address, 4096)
    memory[4095] = bytes([scanners.ABSENT_BYTE])
    scanner.scan(address, 4095)
    with pytest.raises(ValueError, match="not there"):
        scanner.scan(address, 4096)


def test_a_fast_memchr_is_taken_without_importing_anything() -> None:
    first = fast()

    assert choose_scanner(first, other=lambda: pytest.fail("asked")) is first


def test_a_slow_memchr_gives_way_to_a_faster_scan() -> None:
    byte_loop, vectors = Scanner(name="memchr", scan=slow), fast("vectors")

    assert choose_scanner(byte_loop, other=lambda: vectors) is vectors
    assert choose_scanner(byte_loop, other=lambda: None) is byte_loop


def test_a_way_that_computes_more_than_it_reads_is_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two, many = fast(), fast("memcmp"), fast(scanners.VECTOR_MATRIX)
    monkeypatch.setattr(scanners, "load_memchr", lambda: one)
    monkeypatch.setattr(scanners, "load_memcmp", lambda: replace(two, scan=slow))
    monkeypatch.setattr(scanners, "load_vector_matrix", lambda: None)
    assert choose_scanners() == (one,)

    monkeypatch.setattr(scanners, "load_memcmp", lambda: two)
    monkeypatch.setattr(scanners, "load_vector_matrix", lambda: many)
    assert choose_scanners() == (one, two, many)


def test_without_a_c_library_numpy_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanners, "load_memchr", lambda: None)
    vectors = fast("vectors")

    assert choose_scanner(other=lambda: vectors) is vectors
    assert choose_scanner(other=lambda: None) is None


def test_a_blas_that_starts_threads_of_its_own_is_not_read_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("threadpoolctl.threadpool_info", list)

    assert load_vector_matrix() is None


PTHREADS = {"user_api": "blas", "internal_api": "openblas", "threading_layer": "pthreads"}


@pytest.mark.parametrize(
    ("pools", "numpy_blas", "is_held"),
    [
        ([PTHREADS], "scipy-openblas 0.3.31", True),
        ([PTHREADS], None, True),
        ([PTHREADS | {"threading_layer": "disabled"}], "openblas", True),
        ([{"user_api": "blas", "internal_api": "mkl", "threading_layer": "intel"}], "mkl", True),
        ([PTHREADS | {"threading_layer": "openmp"}], "openblas", False),
        ([PTHREADS, PTHREADS | {"threading_layer": "openmp"}], "openblas", False),
        ([PTHREADS], "accelerate", False),
        (
            [{"user_api": "blas", "internal_api": "blis", "threading_layer": "openmp"}],
            "blis",
            False,
        ),
        ([{"user_api": "blas", "internal_api": "flexiblas"}], "flexiblas", False),
        ([{"user_api": "openmp", "internal_api": "openmp"}], "blas", False),
    ],
)
def test_a_blas_is_read_with_only_where_one_limit_holds_for_all_threads(
    pools: list[dict[str, str]],
    numpy_blas: str | None,
    is_held: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: pools)
    monkeypatch.setattr(scanners, "blas_name", lambda: numpy_blas)

    assert (load_vector_matrix() is not None) is is_held


def test_the_blas_has_one_thread_while_it_reads_and_all_again_after() -> None:
    scanner = load_vector_matrix()
    if scanner is None:
        pytest.skip("this NumPy's BLAS cannot be held to one thread")

    def n_threads() -> set[int]:
        pools = threadpoolctl.threadpool_info()
        return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    before = n_threads()
    with scanner.while_reading():
        assert n_threads() == {1}
    assert n_threads() == before


def test_the_way_that_a_calibration_took_is_found_by_its_name() -> None:
    for scanner in choose_scanners():
        again = load_named(scanner.name)
        assert again is not None
        assert again.name == scanner.name
    assert load_named("of a later version") is None


def test_the_price_of_a_call_does_not_rule_out_a_vector_times_a_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = replace(fast(scanners.VECTOR_MATRIX), scan=slow)
    monkeypatch.setattr(scanners, "load_vector_matrix", lambda: many)

    assert choose_scanners()[-1] is many
