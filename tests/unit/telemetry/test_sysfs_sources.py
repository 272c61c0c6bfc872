"""AMD, Intel, RAPL, clock and temperature, from synthetic sysfs trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.telemetry import synthetic_sysfs as synthetic

from llamasweep.results.records import Reading
from llamasweep.telemetry.amd import active_clock_mhz, open_amd
from llamasweep.telemetry.cpu import MAX_CORES_READ, open_clock, open_thermal
from llamasweep.telemetry.intel import open_intel
from llamasweep.telemetry.rapl import UnwrappedCounter, open_rapl
from llamasweep.telemetry.sensors import SensorSource
from llamasweep.telemetry.sysfs import cards_of


def given(opened: tuple[SensorSource | None, str | None]) -> SensorSource:
    source, reason = opened
    assert source is not None, reason
    return source


def by_metric(readings: list[Reading], device: str = "gpu0") -> dict[str, float]:
    return {r.metric: r.value for r in readings if r.device == device}


# -- AMD
def test_an_amd_card_gives_memory_use_power_clocks_and_its_hottest_spot(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.amd_card())
    values = by_metric(given(open_amd(tmp_path)).read(None))
    assert values == {
        "vram_used_bytes": 5 * 2**30,
        "vram_total_bytes": 16 * 2**30,
        "gtt_used_bytes": 2**20,
        "use_fraction": 0.93,
        "power_w": 187.0,
        "sm_clock_mhz": 2390.0,
        "memory_clock_mhz": 1124.0,
        "temperature_c": 78.0,
    }


@pytest.mark.parametrize(
    ("file", "metric"),
    [
        ("gpu_busy_percent", "use_fraction"),
        ("mem_info_vram_used", "vram_used_bytes"),
        ("pp_dpm_sclk", "sm_clock_mhz"),
        ("pp_dpm_mclk", "memory_clock_mhz"),
        ("hwmon/hwmon3/power1_average", "power_w"),
    ],
)
def test_an_amd_file_that_is_missing_is_absent_with_a_reason(
    tmp_path: Path, file: str, metric: str
) -> None:
    synthetic.write_tree(tmp_path, synthetic.amd_card())
    (tmp_path / "sys/class/drm/card0/device" / file).unlink()
    source = given(open_amd(tmp_path))
    assert metric not in by_metric(source.read(None))
    assert "gives no file" in source.absent[f"amdgpu/gpu0/{metric}"]


def test_an_amd_card_that_goes_away_loses_its_sensors_and_raises_nothing(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.amd_card())
    source = given(open_amd(tmp_path))
    (tmp_path / "sys/class/drm/card0/device/gpu_busy_percent").unlink()
    assert "use_fraction" not in by_metric(source.read(None))
    assert "No such file" in source.absent["amdgpu/gpu0/use_fraction"]


def test_what_amd_does_not_tell_is_named(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.amd_card())
    absent = given(open_amd(tmp_path)).absent
    assert {"amdgpu/gpu0/vram_process_bytes", "amdgpu/gpu0/is_throttled"} <= absent.keys()


@pytest.mark.parametrize(
    ("table", "clock_mhz"),
    [("0: 500Mhz *\n1: 900Mhz\n", 500.0), ("S: 19Mhz *\n0: 500Mhz\n", 19.0), ("0: 500Mhz\n", None), ("", None)],
)  # fmt: skip
def test_the_starred_clock_is_the_active_one(table: str, clock_mhz: float | None) -> None:
    assert active_clock_mhz(table) == clock_mhz


# -- Intel
def test_an_i915_card_gives_energy_clock_and_throttling(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.i915_card())
    source = given(open_intel(tmp_path))
    values = by_metric(source.read(None))
    assert values == {"energy_j": 123.456789, "sm_clock_mhz": 2050.0, "is_throttled": 1.0}
    assert "gives no file" in source.absent["intel/gpu0/use_fraction"]
    assert "gives no file" in source.absent["intel/gpu0/temperature_c"]


def test_an_xe_card_gives_the_energy_of_the_card_not_of_the_chip_alone(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.xe_card())
    values = by_metric(given(open_intel(tmp_path)).read(None))
    assert values == {
        "energy_j": 9.0,
        "sm_clock_mhz": 2400.0,
        "is_throttled": 0.0,
        "temperature_c": 55.0,
    }


def test_cards_are_told_by_vendor_and_connectors_are_no_cards(tmp_path: Path) -> None:
    synthetic.write_tree(tmp_path, synthetic.amd_card(0) | synthetic.i915_card(1))
    assert [card.folder.name for card in cards_of(tmp_path, 0x1002)] == ["card0"]
    assert [card.folder.name for card in cards_of(tmp_path, 0x8086)] == ["card1"]


# -- RAPL
def test_rapl_sums_nothing_twice_and_starts_at_zero(tmp_path: Path) -> None:
    synthetic.write_tree(
        tmp_path,
        synthetic.rapl_zone("intel-rapl:0", "package-0", 5_000_000)
        | synthetic.rapl_zone("intel-rapl:0:0", "core", 3_000_000)
        | synthetic.rapl_zone("intel-rapl:1", "psys", 9_000_000),
    )
    source = given(open_rapl(tmp_path))
    energy = tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj"
    energy.write_text("7500000\n")
    readings = source.read(None)
    assert [(r.device, r.metric, r.value) for r in readings] == [("package-0", "energy_j", 2.5)]


def test_rapl_goes_on_rising_over_a_wrap(tmp_path: Path) -> None:
    synthetic.write_tree(
        tmp_path, synthetic.rapl_zone("intel-rapl:0", "package-0", 9_000_000, range_uj=10_000_000)
    )
    source = given(open_rapl(tmp_path))
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("500000\n")
    assert [r.value for r in source.read(None)] == [1.5]


def test_rapl_for_root_only_says_how_to_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write_tree(tmp_path, synthetic.rapl_zone("intel-rapl:0", "package-0", 5))

    def refuse(path: str) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("llamasweep.telemetry.rapl.read_number", refuse)
    source, reason = open_rapl(tmp_path)
    assert source is None
    assert reason is not None
    assert "only root" in reason
    assert "chmod" in reason


def test_a_counter_adds_the_steps_and_unwraps() -> None:
    counter = UnwrappedCounter(range_=100)
    assert [counter.add(raw) for raw in (90, 95, 3, 3, 50)] == [0, 5, 13, 13, 60]


# -- clock and temperature
def test_the_clock_is_the_mean_of_the_cores_and_of_many_only_some_are_read(tmp_path: Path) -> None:
    base = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
    synthetic.write_tree(tmp_path, {base.format(i): "3000000\n" for i in range(128)})
    source = given(open_clock(tmp_path))
    assert [r.value for r in source.read(None)] == [3000.0]
    for folder in (tmp_path / "sys/devices/system/cpu").iterdir():
        (folder / "cpufreq/scaling_cur_freq").write_text("1000000\n")
    assert [r.value for r in source.read(None)] == [1000.0]
    assert MAX_CORES_READ == 16


def test_the_hottest_package_counts_and_its_cores_do_not(tmp_path: Path) -> None:
    synthetic.write_tree(
        tmp_path,
        {
            "sys/class/hwmon/hwmon0/name": "nvme\n",
            "sys/class/hwmon/hwmon0/temp1_input": "99000\n",
            "sys/class/hwmon/hwmon1/name": "coretemp\n",
            "sys/class/hwmon/hwmon1/temp1_input": "71000\n",
            "sys/class/hwmon/hwmon1/temp1_label": "Package id 0\n",
            "sys/class/hwmon/hwmon1/temp2_input": "88000\n",
            "sys/class/hwmon/hwmon1/temp2_label": "Core 0\n",
        },
    )
    source = given(open_thermal(tmp_path))
    assert [(r.metric, r.value) for r in source.read(None)] == [("temperature_c", 71.0)]
    assert "no package throttling" in source.absent["thermal/cpu/is_throttled"]


def test_a_thermal_zone_serves_where_there_is_no_hwmon_chip(tmp_path: Path) -> None:
    zone = "sys/class/thermal/thermal_zone0"
    synthetic.write_tree(tmp_path, {f"{zone}/type": "cpu-thermal\n", f"{zone}/temp": "54321\n"})
    assert [r.value for r in given(open_thermal(tmp_path)).read(None)] == [54.321]


def test_cpu_throttling_is_a_rise_of_the_packages_counter(tmp_path: Path) -> None:
    count = "sys/devices/system/cpu/cpu{}/thermal_throttle/package_throttle_count"
    synthetic.write_tree(tmp_path, {count.format(0): "5\n", count.format(1): "5\n"})
    source = given(open_thermal(tmp_path))
    assert source.read(None) == []  # the first reading has nothing to compare with
    assert [r.value for r in source.read(None)] == [0.0]
    (tmp_path / count.format(0)).write_text("6\n")
    assert [(r.metric, r.value) for r in source.read(None)] == [("is_throttled", 1.0)]


def test_every_opener_gives_a_reason_for_an_empty_machine(tmp_path: Path) -> None:
    for open_source in (open_amd, open_intel, open_rapl, open_clock, open_thermal):
        source, reason = open_source(tmp_path)
        assert source is None
        assert reason
