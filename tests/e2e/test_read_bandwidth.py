"""The measured RAM bandwidth against C loops of vector loads, burst by burst in turns.

The way that `calibrate` takes, which is its fastest, is held against the fastest of the loops, whatever their streams.

Needs a quiet machine: what another program takes, it takes from one burst and not from the next.
"""

from __future__ import annotations

import logging
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from llamasweep.machine.bandwidth import buffer_for
from llamasweep.machine.facts import read_facts
from llamasweep.machine.readers import Readers
from llamasweep.machine.scanners import choose_scanners

pytestmark = pytest.mark.long

SOURCE = Path(__file__).with_name("read_loop.c")
N_ROUNDS = 10
BURSTS = 3
BURST_S = 0.15
LIMIT = 0.05
C_STREAMS = (1, 2, 4, 8)
QUIET_ABOVE = 0.85
"""Where the C loop's slowest round falls below this share of its fastest, the comparison means nothing."""


class ReadLoop:
    """The compiled loop, which holds its memory and reads it when told."""

    def __init__(self, process: subprocess.Popen[str], n_bytes: int) -> None:
        self._process = process
        self._n_passes = 1
        self._n_passes = max(1, round(BURST_S * self.burst(1) / n_bytes))

    def burst(self, n_streams: int) -> float:
        """Bytes per second."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._n_passes} {n_streams}\n")
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
def test_the_fastest_way_of_reading_is_within_five_percent_of_the_fastest_c_loop(
    program: Path, n_threads: int
) -> None:
    facts = read_facts()
    if n_threads > (facts.n_cpus_allowed or 1):
        pytest.skip(f"needs {n_threads} CPUs")
    n_bytes = buffer_for(facts, is_quick=True, on_reason=pytest.skip)
    scanners = choose_scanners()
    assert n_bytes is not None
    assert scanners
    ours: list[list[float]] = [[] for _ in scanners]
    theirs: dict[int, list[float]] = {n: [] for n in C_STREAMS}
    with (
        read_loop(program, n_threads, n_bytes) as loop,
        Readers(scanners, n_threads=n_threads, buffer_bytes=n_bytes) as readers,
    ):
        readers.measure(n_rounds=1, round_s=BURST_S, limit_s=10)
        for _ in range(N_ROUNDS):
            rounds = [
                (
                    [readers.round(number) for number in range(len(scanners))],
                    [loop.burst(n) for n in C_STREAMS],
                )
                for _ in range(BURSTS)
            ]
            of_us, of_c = (zip(*rates, strict=True) for rates in zip(*rounds, strict=True))
            for kept, rates in zip(ours, of_us, strict=True):
                kept.append(max(rates))
            for kept, rates in zip(theirs.values(), of_c, strict=True):
                kept.append(max(rates))
    fastest = [max(of_round) for of_round in zip(*theirs.values(), strict=True)]
    found = {
        scanner.name: _ratio(rates, fastest) for scanner, rates in zip(scanners, ours, strict=True)
    }
    shown = ", ".join(f"{name} / fastest C {ratio:.3f}" for name, ratio in found.items())
    logging.getLogger(__name__).info("%d threads: %s", n_threads, shown)
    is_quiet = min(fastest) >= QUIET_ABOVE * max(fastest)
    if not is_quiet and abs(max(found.values()) - 1) > LIMIT:
        pytest.skip(
            f"the machine is not quiet: the C loops themselves read {min(fastest) / 1e9:.1f} to "
            f"{max(fastest) / 1e9:.1f} GB/s; {shown}"
        )
    assert max(found.values()) == pytest.approx(1.0, abs=LIMIT), shown


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over the rounds of ours / theirs of the same round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
