"""What telemetry costs: CPU time of the sampler as a share of one core, and how late its readings come. Aim: below 1 %.

It reads every source of this machine at the default interval beside a child process that holds memory and keeps one
core busy per logical core, as an engine does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from dataclasses import fields

from benchmarks.bare import emit

from llamasweep.sweep.spec import SweepSpec
from llamasweep.telemetry.sampler import Sampler
from llamasweep.telemetry.sources import open_sources

CHILD = """
import os, threading
block = bytearray(int(os.environ["MIB"]) << 20)
for i in range(0, len(block), 4096):
    block[i] = 1
for _ in range(int(os.environ["CHILDREN"])):
    if os.fork() == 0:
        while os.getppid() != 1:
            sum(range(100_000))
        os._exit(0)
print("ready", flush=True)
threading.Event().wait()
"""


def default_interval_s() -> float:
    """What a sweep that says nothing gets."""
    (default,) = (f.default for f in fields(SweepSpec) if f.name == "telemetry_interval_s")
    assert isinstance(default, float)
    return default


def main() -> None:
    """Sample for a while and print what it cost."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60, help="how long to sample")
    options.add_argument("--interval", type=float, default=default_interval_s(), help="seconds")
    options.add_argument("--mib", type=int, default=512, help="memory that the child holds")
    chosen = options.parse_args()
    n_cores = os.cpu_count() or 1
    opened = open_sources()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdout=subprocess.PIPE,
        env={**os.environ, "MIB": str(chosen.mib), "CHILDREN": str(n_cores)},
    )
    sampler = Sampler(opened.sources, chosen.interval)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        sampler.start(child.pid)
        threading.Event().wait(chosen.seconds)
        cost = sampler.stop()
    finally:
        child.kill()
        child.wait()
        opened.close()
    emit(
        "sampler_cost",
        {
            "cpu_share_of_one_core": cost.cpu_fraction,
            "cpu_share_aim_below": 0.01,
            "interval_s": cost.interval_s,
            "wall_s": cost.wall_s,
            "n_ticks": cost.n_ticks,
            "n_skipped": cost.n_skipped,
            "cpu_ms_per_tick": cost.cpu_s / cost.n_ticks * 1e3,
            "lateness_median_s": cost.lateness_median_s,
            "lateness_p95_s": cost.lateness_p95_s,
            "lateness_max_s": cost.lateness_max_s,
            "n_readings": len(sampler.drain()),
            "sources": [source.name for source in opened.sources],
            "n_processes": 1 + n_cores,
        },
    )


if __name__ == "__main__":
    main()
