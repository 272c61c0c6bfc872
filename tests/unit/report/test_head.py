from __future__ import annotations

from typing import Any

import pytest
from tests.unit.report.factory import HOSTILE, measured, run_of

from llamasweep.report.figures import THIN
from llamasweep.report.head import MachineLine, head
from llamasweep.report.rows import rows_of

MACHINE: dict[str, Any] = {
    "os": "Linux",
    "os_name": "Debian GNU/Linux 12",
    "kernel": "6.1.0",
    "cpu_name": "AMD Ryzen 5 5600G",
    "n_cores_physical": 6,
    "n_cores_logical": 12,
    "n_cores_performance": 6,
    "n_cpus_allowed": 12,
    "cpu_features": ["avx", "avx2"],
    "last_level_cache_bytes": 16 << 20,
    "ram_bytes": 32 << 30,
    "ram_type": "DDR4",
    "ram_speed_mts": 3200,
    "ram_channels": 2,
    "ram_bus_bits": 128,
    "governor": "performance",
    "power_source": "mains",
    "gpus": [],
    "calibration": {"ram": {"best_bytes_per_s": 41.8e9}},
}


def lines(**changes: Any) -> dict[str, MachineLine]:
    run = run_of([measured(1, [10.0, 10.1])], machine={**MACHINE, **changes})
    return {line.part: line for line in head(run, rows_of([run])).machine}


def test_the_machine_is_told_in_five_lines() -> None:
    told = {part: line.known for part, line in lines().items()}
    assert told == {
        "CPU": f"AMD Ryzen 5 5600G, 6 cores, 12 threads, AVX2, 16.0{THIN}MiB of last-level cache",
        "Memory": f"32.0{THIN}GiB, DDR4-3200, 2 channels, 41.8{THIN}GB/s calibrated, 51.2{THIN}GB/s by its specification",
        "GPU": "none found",
        "System": "Debian GNU/Linux 12, kernel 6.1.0",
        "Power": "on mains, governor performance",
    }
    assert all(line.unknown == "" for line in lines().values())


def test_what_the_system_does_not_tell_is_said_to_be_unknown() -> None:
    told = lines(ram_speed_mts=None, ram_channels=None, ram_type=None, power_source=None)
    assert told["Memory"].unknown == "speed and channels"
    assert (told["Power"].known, told["Power"].unknown) == ("governor performance", "source")
    assert lines(power_source=None, governor=None)["Power"].known == ""


def test_cores_that_differ_or_are_not_free_are_told() -> None:
    told = lines(
        n_cores_performance=4, n_cpus_allowed=8, cpu_quota=2.5, hypervisor="kvm", n_numa_nodes=2
    )
    assert (
        "6 cores, 4 of them performance cores, 12 threads, the run could use 8" in told["CPU"].known
    )
    assert "limited to 2.50 by its control group" in told["CPU"].known
    assert told["System"].known.endswith("a virtual machine (kvm), 2 NUMA nodes")


def test_gpus_stand_with_memory_driver_and_limit() -> None:
    gpu = {
        "vendor": "nvidia",
        "name": "RTX 4070",
        "memory_bytes": 12 << 30,
        "driver": "580.1",
        "power_limit_w": 200.0,
    }
    told = lines(gpus=[gpu, {"vendor": "amd", "name": None}])
    assert told["GPU"].known == (
        f"RTX 4070 (12.0{THIN}GiB, driver 580.1, limit 200{THIN}W); unnamed amd (driver not known)"
    )


def test_a_bandwidth_other_than_the_calibrated_one_is_told_too() -> None:
    text = lines(calibration={"ram": {"best_bytes_per_s": 39.0e9}})["Memory"].known
    assert f"39.0{THIN}GB/s calibrated, 41.8{THIN}GB/s taken for the ceilings" in text


def test_a_run_that_recorded_no_machine_tells_none() -> None:
    run = run_of([measured(1, [10.0])], machine={})
    assert head(run, rows_of([run])).machine == ()


def test_hostile_facts_stay_harmless() -> None:
    hostile = dict.fromkeys(MACHINE, HOSTILE)
    run = run_of(
        [measured(1, [10.0])], machine={**hostile, "gpus": [{"name": HOSTILE, "driver": HOSTILE}]}
    )
    text = str(head(run, rows_of([run])))
    assert "\u202e" not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("finished_at", "rounds", "left"),
    [
        (None, "auto", ", at most 76 of 80 measurements not done yet"),
        (None, 20, ", 76 of 80 measurements not done yet"),
        ("2026-11-29T14:02:41+00:00", "auto", ""),
        ("2026-11-29T14:02:41+00:00", 20, ""),
    ],
)
def test_what_is_left_counts_each_round_and_nothing_of_a_run_at_its_end(
    finished_at: str | None, rounds: int | str, left: str
) -> None:
    parts = [
        measured(1 + build, [10.0, 10.1], cell_id="c", build_hash=f"b{build}", round_index=turn)
        for turn in range(2)
        for build in range(2)
    ]
    run = run_of(
        parts,
        n_cells_planned=80,
        finished_at=finished_at,
        sweep_resolved={"version": 1, "rounds": rounds},
    )
    outcome = head(run, rows_of([run])).outcome
    assert outcome.partition(" measured")[2] == left
