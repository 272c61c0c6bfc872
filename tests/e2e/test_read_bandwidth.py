"""The measured RAM bandwidth against a C loop of vector loads, burst by burst in turns.

Needs a quiet machine: what another program takes, it takes from one burst and not from the next.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llamasweep.machine.bandwidth import buffer_for
from llamasweep.machine.facts import read_facts
from llamasweep.machine.readers import Readers, choose_scanner

pytestmark = pytest.mark.long

SOURCE = Path(__file__).with_name("read_loop.c")
N_ROUNDS = 10
BURSTS = 3
BURST_S = 0.15
LIMIT = 0.05
QUIET_ABOVE = 0.85
"""Where the C loop's slowest round falls below this share of its fastest, the comparison means nothing."""


class ReadLoop:
    """The compiled loop, which holds its memory and reads it when told."""

    def __init__(self, process: subprocess.Popen[str], n_bytes: int) -> None:
        self._process = process
        self._n_passes = 1
        self._n_passes = max(1, round(BURST_S * self.burst() / n_bytes))

    def burst(self) -> float:
        """Bytes per second."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._n_passes}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The loop, compiled for this processor."""
    compiler = next((c for c in map(shutil.which, ("cc", "gcc", "clang")) if c), None)
    if compiler is None:
        pytest.skip("no C compiler: install gcc or clang")
    target = tmp_path_factory.mktemp("read_loop") / "read_loop"
    argv = [compiler, "-O3", "-march=native", "-pthread", str(SOURCE), "-o", str(target)]
    subprocess.run(argv, check=True, timeout=120)
    return target


@contextmanager
def read_loop(program: Path, n_threads: int, n_bytes: int) -> Iterator[ReadLoop]:
    with subprocess.Popen(
        [str(program), str(n_threads), str(n_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield ReadLoop(process, n_bytes)
        finally:
            process.kill()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_reading_is_within_five_percent_of_a_c_loop(program: Path, n_threads: int) -> None:
    facts = read_facts()
    if n_threads > (facts.n_cpus_allowed or 1):
        pytest.skip(f"needs {n_threads} CPUs")
    n_bytes = buffer_for(facts, is_quick=True, on_reason=pytest.skip)
    scanner = choose_scanner()
    assert n_bytes is not None
    assert scanner is not None
    ratios, c_rates = [], []
    with (
        read_loop(program, n_threads, n_bytes) as loop,
        Readers(scanner, n_threads=n_threads, buffer_bytes=n_bytes) as readers,
    ):
        readers.measure(n_rounds=1, round_s=BURST_S, limit_s=10)
        for _ in range(N_ROUNDS):
            pairs = [(readers.round(), loop.burst()) for _ in range(BURSTS)]
            ours, theirs = (max(rates) for rates in zip(*pairs, strict=True))
            ratios.append(ours / theirs)
            c_rates.append(theirs)
    ratio = statistics.median(ratios)
    shown = f"{scanner.name} / C: " + ", ".join(f"{one:.3f}" for one in ratios)
    if abs(ratio - 1) > LIMIT and min(c_rates) < QUIET_ABOVE * max(c_rates):
        pytest.skip(
            f"the machine is not quiet: the C loop itself read {min(c_rates) / 1e9:.1f} to "
            f"{max(c_rates) / 1e9:.1f} GB/s; {shown}"
        )
    assert ratio == pytest.approx(1, abs=LIMIT), shown
