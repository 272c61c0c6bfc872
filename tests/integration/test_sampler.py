"""The sampler beside a real process that holds known memory and burns known CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from llamasweep.results.records import Reading
from llamasweep.results.summary import fold
from llamasweep.telemetry.sampler import Sampler
from llamasweep.telemetry.sources import open_sources

MIB = 1 << 20
BLOCK_BYTES = 192 * MIB
INTERVAL_S = 0.05
BURN_CPU_S = 0.6

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HOLDER = f"""
import sys, time
block = bytearray({BLOCK_BYTES})
for i in range(0, len(block), 4096):
    block[i] = 1
print("holding", flush=True)
sys.stdin.readline()
end_s = time.process_time() + {BURN_CPU_S}
while time.process_time() < end_s:
    pass
print(time.process_time(), flush=True)
sys.stdin.readline()
"""
PARENT = f"""
import subprocess, sys
sys.exit(subprocess.call([sys.executable, "-c", {HOLDER!r}]))
"""


@contextmanager
def child(code: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def say(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def sampled(code: str) -> tuple[list[Reading], int, int, float]:
    """Readings of a process that holds its block, then burns; start and end of the burning; CPU seconds it had used."""
    sampler = Sampler(open_sources().sources, INTERVAL_S)
    with child(code) as process:
        sampler.start(process.pid)
        assert hear(process) == "holding"
        sampler.read_soon()
        start_ns = time.time_ns()
        say(process)
        cpu_s = float(hear(process))
        end_ns = time.time_ns()
        sampler.stop()
        readings = sampler.drain()
    return readings, start_ns, end_ns, cpu_s


@pytest.mark.parametrize("code", [HOLDER, PARENT], ids=["one process", "a child of the root"])
def test_known_memory_and_known_cpu_time_are_found(code: str) -> None:
    readings, start_ns, end_ns, cpu_s = sampled(code)
    n_cores = os.cpu_count() or 1
    figures, reasons = fold(
        readings,
        start_ns=start_ns,
        end_ns=end_ns,
        n_tokens=None,
        n_cores=n_cores,
        interval_s=INTERVAL_S,
        uses_gpu=False,
    )
    assert figures.ram_peak_process_bytes is not None, reasons
    assert BLOCK_BYTES < figures.ram_peak_process_bytes < BLOCK_BYTES + 96 * MIB
    assert figures.ram_peak_system_bytes is not None
    assert figures.ram_peak_system_bytes > BLOCK_BYTES
    last_cpu_s = max(r.value for r in readings if r.metric == "cpu_time_s")
    assert cpu_s - 0.05 < last_cpu_s < 2 * cpu_s  # a root above it has its own start
    assert figures.cpu_use_fraction is not None
    used_s = figures.cpu_use_fraction * n_cores * (end_ns - start_ns) / 1e9
    assert BURN_CPU_S / 4 < used_s <= cpu_s
    assert figures.cpu_use_other_fraction is not None
    assert figures.n_major_faults is not None


def test_a_process_that_dies_ends_its_readings_and_nothing_else() -> None:
    sampler = Sampler(open_sources().sources, INTERVAL_S)
    with child(HOLDER) as process:
        assert hear(process) == "holding"
        sampler.start(process.pid)
        process.kill()
        process.wait()
    cost = sampler.stop()
    assert cost.dropped == {}
    readings = sampler.drain()
    last_ns = max(r.time_ns for r in readings if r.metric == "ram_used_bytes")
    devices_of_last = {r.device for r in readings if r.time_ns >= last_ns}
    assert "system" in devices_of_last
    assert "process" not in devices_of_last


def test_the_next_process_starts_from_its_own_counters() -> None:
    sampler = Sampler(open_sources().sources, INTERVAL_S)
    with child(HOLDER) as first:
        sampler.start(first.pid)
        assert hear(first) == "holding"
        say(first)
        hear(first)
        sampler.stop()
    sampler.drain()
    with child("import sys; print('up', flush=True); sys.stdin.readline()") as second:
        assert hear(second) == "up"
        sampler.start(second.pid)
        sampler.stop()
    cpu_s = [r.value for r in sampler.drain() if r.metric == "cpu_time_s"]
    assert cpu_s
    assert max(cpu_s) < BURN_CPU_S
