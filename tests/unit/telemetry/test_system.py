"""/proc readings from synthetic trees, and psutil's from the real machine."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from tests.unit.telemetry import synthetic_sysfs as synthetic

from llamasweep.results.records import Reading
from llamasweep.telemetry.process_tree import ProcessTree, read_stat
from llamasweep.telemetry.processes import PsutilSource
from llamasweep.telemetry.sources import open_sources
from llamasweep.telemetry.system import ProcSource

HZ, PAGE = 100, 4096


def source_over(root: Path) -> ProcSource:
    return ProcSource(tree=ProcessTree(root), page_bytes=PAGE, ticks_per_s=HZ)


def values(readings: list[Reading], device: str) -> dict[str, float]:
    return {r.metric: r.value for r in readings if r.device == device}


def test_machine_figures_come_from_meminfo_and_stat(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files())
    assert values(source_over(tmp_path).read(None), "system") == {
        "ram_used_bytes": 12 * 2**30,
        "swap_used_bytes": 2**30,
        "cpu_busy_s": (100 + 20 + 30 + 6 + 7 + 8) / HZ,
    }


def test_without_an_engine_there_is_no_process_reading(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files())
    assert values(source_over(tmp_path).read(None), "process") == {}
    assert values(source_over(tmp_path).read(99), "process") == {}


def test_the_tree_is_summed_and_strangers_are_not(tmp_path: Path) -> None:
    synthetic.write_tree(
        tmp_path,
        synthetic.proc_files()
        | synthetic.process(50, 1)
        | synthetic.process(51, 50, rss_pages=500, n_major_faults=4, utime=10, stime=0)
        | synthetic.process(52, 51, rss_pages=1, n_major_faults=0, utime=0, stime=0)
        | synthetic.process(60, 1, rss_pages=10**6),
    )
    found = values(source_over(tmp_path).read(50), "process")
    assert found["rss_bytes"] == 1501 * PAGE
    assert found["major_faults_count"] == 7
    assert found["cpu_time_s"] == pytest.approx(2.6)
    assert found["disk_read_bytes"] == 3 * 4096


def test_counters_do_not_fall_when_a_child_ends(tmp_path: Path) -> None:
    files = synthetic.proc_files() | synthetic.process(50, 1) | synthetic.process(51, 50)
    synthetic.write_tree(tmp_path, files)
    source = source_over(tmp_path)
    before = values(source.read(50), "process")
    for file in (tmp_path / "proc/51").iterdir():
        file.unlink()
    (tmp_path / "proc/51").rmdir()
    after = values(source.read(50), "process")
    assert after["rss_bytes"] == before["rss_bytes"] / 2
    for metric in ("major_faults_count", "cpu_time_s", "disk_read_bytes"):
        assert after[metric] == before[metric]


def test_a_new_engine_with_the_same_pid_starts_from_its_own_counters(tmp_path: Path) -> None:
    synthetic.write_tree(
        tmp_path, synthetic.proc_files() | synthetic.process(50, 1, n_major_faults=900)
    )
    source = source_over(tmp_path)
    source.read(50)
    synthetic.write_tree(tmp_path, synthetic.process(50, 1, n_major_faults=1, start=999))
    assert values(source.read(50), "process")["major_faults_count"] == 1


def test_a_zombie_still_tells_its_counters_but_has_no_memory(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files() | synthetic.process(50, 1, state="Z"))
    found = values(source_over(tmp_path).read(50), "process")
    assert "rss_bytes" not in found
    assert found["major_faults_count"] == 3


def test_disk_reads_that_cannot_be_read_are_absent_not_zero(tmp_path: Path) -> None:
    synthetic.write_tree(
        tmp_path, synthetic.proc_files() | synthetic.process(50, 1, read_bytes=None)
    )
    source = source_over(tmp_path)
    assert "disk_read_bytes" not in values(source.read(50), "process")
    assert "No such file" in source.absent["proc/process/disk_read_bytes"]


def test_missing_memory_figures_are_absent_and_the_rest_goes_on(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files() | {"proc/meminfo": "MemTotal: 1 kB\n"})
    source = source_over(tmp_path)
    assert set(values(source.read(None), "system")) == {"cpu_busy_s"}
    assert "MemAvailable" in source.absent["proc/system/ram_used_bytes"]


def test_pss_is_read_where_cheap(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files() | synthetic.process(50, 1, pss_kb=17))
    assert values(source_over(tmp_path).read(50), "process")["pss_bytes"] == 17 * 1024


def test_pss_of_a_large_engine_is_refused_with_its_price(tmp_path: Path) -> None:
    big = synthetic.process(50, 1, pss_kb=17, rss_pages=8 * 2**30 // PAGE)
    synthetic.write_tree(tmp_path, synthetic.proc_files() | big)
    source = source_over(tmp_path)
    assert "pss_bytes" not in values(source.read(50), "process")
    assert "8.0 GiB of pages would take about 96 ms" in source.absent["proc/process/pss_bytes"]


def test_a_command_name_with_brackets_and_blanks_is_parsed(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.process(50, 7, name="a) R 1 (b"))
    assert read_stat(str(tmp_path / "proc"), 50).parent_pid == 7


def test_a_stat_line_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, {"proc/50/stat": "50 (x) R 1 2 3\n"})
    with pytest.raises(ValueError, match="fields"):
        read_stat(str(tmp_path / "proc"), 50)


def test_a_child_whose_parent_died_stays_in_the_tree(tmp_path: Path) -> None:
    files = synthetic.process(50, 1) | synthetic.process(51, 50) | synthetic.process(52, 51)
    synthetic.write_tree(tmp_path, files)
    tree = ProcessTree(tmp_path)
    assert tree.refresh(50) == {50, 51, 52}
    for file in (tmp_path / "proc/51").iterdir():
        file.unlink()
    (tmp_path / "proc/51").rmdir()
    synthetic.write_tree(tmp_path, synthetic.process(52, 1))
    assert tree.refresh(50) == {50, 52}


def test_processes_are_listed_only_after_a_new_one_was_started(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files() | synthetic.process(50, 1))
    tree = ProcessTree(tmp_path)
    tree.refresh(50)
    synthetic.write_tree(tmp_path, synthetic.process(51, 50))
    assert tree.refresh(50) == {50}
    synthetic.write_tree(tmp_path, {"proc/loadavg": "0.10 0.20 0.30 1/234 4243\n"})
    assert tree.refresh(50) == {50, 51}


def test_psutil_reads_this_process() -> None:
    source = PsutilSource()
    found = values(source.read(os.getpid()), "process")
    assert found["rss_bytes"] == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    assert found["cpu_time_s"] > 0
    assert os.getpid() in source.members


def test_psutil_gives_no_process_reading_for_one_that_is_gone() -> None:
    found = PsutilSource().read(2**22 + 5)
    assert values(found, "process") == {}
    assert values(found, "system")["ram_used_bytes"] > 0


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_what_another_system_counts_differently_is_absent_with_a_reason(platform: str) -> None:
    absent = PsutilSource(platform=platform).absent
    assert "psutil/process/pss_bytes" in absent
    assert "psutil/process/disk_read_bytes" in absent
    assert ("psutil/process/major_faults_count" in absent) is (platform == "win32")


def test_open_sources_names_every_absent_source(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.proc_files())
    opened = open_sources(tmp_path, platform="linux")
    assert [source.name for source in opened.sources] == ["proc"]
    assert set(opened.absent) == {"nvml", "amdgpu", "intel", "rapl", "cpufreq", "thermal"}
    opened.close()


def test_open_sources_elsewhere_falls_back_to_psutil(tmp_path: Path) -> None:
    opened = open_sources(tmp_path, platform="darwin")
    assert [source.name for source in opened.sources] == ["psutil"]
    assert "root only" in opened.absent["apple"]
    assert opened.absent["rapl"] == "darwin has no sysfs"


def test_a_source_that_cannot_be_opened_for_an_odd_reason_is_absent(tmp_path: Path) -> None:
    files = synthetic.proc_files() | {"sys/class/drm/card0/device/vendor": "nonsense\n"}
    synthetic.write_tree(tmp_path, files)
    opened = open_sources(tmp_path, platform="linux")
    assert "ValueError" in opened.absent["amdgpu"]
