"""What counts as not quiet, watched on a machine that stands under another root."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.machine.trees import FakeNvml, write_tree

from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.gpus import NvmlLibrary
from llamasweep.machine.quiet import QuietReport, QuietWatch, check

FACTS = MachineFacts(os="Linux", n_cores_logical=4)
NO_NVML = NvmlLibrary(reason="not found")


def process_stat(ticks: int) -> str:
    return f"9 (a ) name) S {' '.join('0' for _ in range(10))} {ticks} 0 0 0 20 0 1 0"


def watch(
    root: Path,
    before: dict[str, str],
    after: dict[str, str],
    *,
    facts: MachineFacts = FACTS,
    nvml: NvmlLibrary = NO_NVML,
    own_pids: frozenset[int] = frozenset(),
) -> QuietReport:
    """The report when the files change from `before` to `after` while it waits."""
    write_tree(root, before)

    def wait(_: float) -> None:
        write_tree(root, after)

    return check(facts, seconds=1.0, root=root, nvml=nvml, wait=wait, own_pids=own_pids)


# user nice system idle iowait irq softirq steal: 400 ticks pass on four CPUs in a second
QUIET = {"proc/stat": "cpu  1000 0 500 9000 0 0 0 0 0 0"}
AFTER_QUIET = {"proc/stat": "cpu  1004 0 501 9395 0 0 0 0 0 0"}


def test_an_idle_machine_is_quiet(tmp_path: Path) -> None:
    report = watch(tmp_path, QUIET, AFTER_QUIET)

    assert report.is_quiet
    assert report.findings == ()
    assert report.cpu_use_other_cores == pytest.approx(0.05)


def test_other_programs_are_seen(tmp_path: Path) -> None:
    report = watch(tmp_path, QUIET, {"proc/stat": "cpu  1150 0 500 9250 0 0 0 0 0 0"})

    assert report.flags == ("busy",)
    assert report.findings == ("other programs use 1.5 CPU cores",)


def test_our_own_processes_do_not_count(tmp_path: Path) -> None:
    before = QUIET | {"proc/77/stat": process_stat(10), f"proc/{os.getpid()}/stat": process_stat(5)}
    after = {
        "proc/stat": "cpu  1150 0 500 9250 0 0 0 0 0 0",
        "proc/77/stat": process_stat(150),
        f"proc/{os.getpid()}/stat": process_stat(10),
    }

    report = watch(tmp_path, before, after, own_pids=frozenset({77}))

    assert report.is_quiet
    assert report.cpu_use_other_cores == pytest.approx(0.05)


def test_work_done_while_watching_shortens_the_wait(tmp_path: Path) -> None:
    write_tree(tmp_path, QUIET)
    waits: list[float] = []
    watched = QuietWatch.begin(seconds=1000.0, root=tmp_path, wait=waits.append)
    write_tree(tmp_path, AFTER_QUIET)

    assert watched.finish(FACTS, nvml=NO_NVML).is_quiet
    assert len(waits) == 1
    assert 0 < waits[0] < 1000.0

    QuietWatch.begin(seconds=0.0, root=tmp_path, wait=waits.append).finish(FACTS, nvml=NO_NVML)
    assert len(waits) == 1


def test_tasks_that_wait_for_us_are_no_sign_of_others(tmp_path: Path) -> None:
    waiting = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}"
    us = f"proc/{os.getpid()}/stat"
    before = QUIET | {us: process_stat(0), "proc/pressure/cpu": waiting.format(0)}
    after = {
        "proc/stat": "cpu  1200 0 500 9200 0 0 0 0 0 0",
        us: process_stat(200),
        "proc/pressure/cpu": waiting.format(900_000),
    }

    report = watch(tmp_path, before, after)

    assert report.is_quiet
    assert report.cpu_pressure_fraction is None
    assert "ourselves" in dict(report.reasons)["cpu_pressure_fraction"]


def test_pressure_steal_and_swap_are_seen(tmp_path: Path) -> None:
    before = QUIET | {
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000",
        "proc/vmstat": "pswpin 10\npswpout 20",
    }
    after = {
        "proc/stat": "cpu  1000 0 500 9360 0 0 0 40 0 0",
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1600000",
        "proc/vmstat": "pswpin 10\npswpout 27",
    }

    report = watch(tmp_path, before, after)

    assert report.flags == ("cpu_pressure", "stolen_cpu", "swapping")
    assert report.cpu_steal_fraction == pytest.approx(0.1)
    assert report.cpu_pressure_fraction == pytest.approx(0.6, rel=0.01)
    assert report.n_swapped_pages == 7


def test_what_cannot_be_seen_is_none_with_a_reason(tmp_path: Path) -> None:
    report = watch(tmp_path, {}, {})

    assert report.cpu_use_other_cores is None
    assert report.cpu_pressure_fraction is None
    assert report.n_swapped_pages is None
    assert dict(report.reasons) == {
        "cpu_pressure_fraction": "this kernel keeps no /proc/pressure/cpu",
        "cpu_use_other_cores": "no CPU times in /proc/stat",
    }


@pytest.mark.parametrize(
    ("facts", "flags"),
    [
        ({"power_source": "battery"}, ("on_battery",)),
        ({"governor": "powersave", "frequency_driver": "acpi-cpufreq"}, ("slow_governor",)),
        ({"governor": "schedutil", "frequency_driver": "acpi-cpufreq"}, ()),
        (
            {
                "governor": "powersave",
                "frequency_driver": "intel_pstate",
                "energy_preference": "balance_performance",
            },
            (),
        ),
        (
            {
                "governor": "powersave",
                "frequency_driver": "amd-pstate-epp",
                "energy_preference": "power",
            },
            ("slow_governor",),
        ),
    ],
)
def test_power_settings(facts: dict[str, str], flags: tuple[str, ...], tmp_path: Path) -> None:
    settings = MachineFacts(os="Linux", n_cores_logical=4, **facts)  # type: ignore[arg-type]

    assert watch(tmp_path, QUIET, AFTER_QUIET, facts=settings).flags == flags


def test_a_hot_zone_and_throttling_are_seen(tmp_path: Path) -> None:
    zone = "sys/class/thermal/thermal_zone0"
    throttle = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    before = QUIET | {
        f"{zone}/temp": "96000",
        f"{zone}/type": "x86_pkg_temp",
        f"{zone}/trip_point_0_type": "passive",
        f"{zone}/trip_point_0_temp": "95000",
        throttle: "3",
    }

    report = watch(tmp_path, before, AFTER_QUIET | {throttle: "5"})

    assert report.flags == ("throttled", "hot")
    assert report.findings[1] == "thermal zone x86_pkg_temp is at 96 °C, its limit is 95 °C"


def test_each_finding_has_its_own_flag(tmp_path: Path) -> None:
    hot = {
        f"sys/class/thermal/thermal_zone{n}/{name}": text
        for n in (0, 1)
        for name, text in (
            ("temp", "96000"),
            ("trip_point_0_type", "hot"),
            ("trip_point_0_temp", "95000"),
        )
    }
    library = NvmlLibrary(module=FakeNvml({"pids": [88]}))

    report = watch(tmp_path, QUIET | hot, AFTER_QUIET, nvml=library)

    assert report.flags == ("hot", "hot", "gpu_busy")
    assert report.findings[2] == "1 other process(es) compute on GPU 0"


def test_other_processes_on_a_gpu_are_seen(tmp_path: Path) -> None:
    library = NvmlLibrary(module=FakeNvml({"pids": [77, 88]}, {"pids": [77]}, {"name": "no list"}))

    report = watch(tmp_path, QUIET, AFTER_QUIET, nvml=library, own_pids=frozenset({77}))

    assert report.findings == ("1 other process(es) compute on GPU 0",)


def test_a_process_that_ended_meanwhile_does_no_harm(tmp_path: Path) -> None:
    write_tree(tmp_path, QUIET | {"proc/77/stat": process_stat(500)})
    wait: Callable[[float], None] = lambda _: (tmp_path / "proc/77/stat").unlink()  # noqa: E731

    report = check(
        FACTS, root=tmp_path, nvml=NO_NVML, wait=wait, own_pids=frozenset({77}), seconds=1.0
    )

    assert report.cpu_use_other_cores is None  # no tick passed at all
