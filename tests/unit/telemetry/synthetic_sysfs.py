"""Synthetic /sys trees, built from the kernel's documentation (sysfs-class-powercap, amdgpu, i915 and xe ABI pages)."""

from __future__ import annotations

from pathlib import Path


def write_tree(root: Path, files: dict[str, str]) -> None:
    """path below root -> content."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def amd_card(index: int = 0) -> dict[str, str]:
    device = f"sys/class/drm/card{index}/device"
    return {
        f"sys/class/drm/card{index}-DP-1/status": "connected\n",
        f"{device}/vendor": "0x1002\n",
        f"{device}/gpu_busy_percent": "93\n",
        f"{device}/mem_info_vram_used": f"{5 * 2**30}\n",
        f"{device}/mem_info_vram_total": f"{16 * 2**30}\n",
        f"{device}/mem_info_gtt_used": "1048576\n",
        f"{device}/pp_dpm_sclk": "0: 500Mhz\n1: 1410Mhz\n2: 2390Mhz *\n",
        f"{device}/pp_dpm_mclk": "0: 96Mhz\n1: 1124Mhz *\n",
        f"{device}/hwmon/hwmon3/name": "amdgpu\n",
        f"{device}/hwmon/hwmon3/power1_average": "187000000\n",
        f"{device}/hwmon/hwmon3/temp1_input": "61000\n",
        f"{device}/hwmon/hwmon3/temp1_label": "edge\n",
        f"{device}/hwmon/hwmon3/temp2_input": "78000\n",
        f"{device}/hwmon/hwmon3/temp2_label": "junction\n",
    }


def i915_card(index: int = 1) -> dict[str, str]:
    card = f"sys/class/drm/card{index}"
    return {
        f"{card}/device/vendor": "0x8086\n",
        f"{card}/gt_act_freq_mhz": "2050\n",
        f"{card}/gt/gt0/throttle_reason_status": "1\n",
        f"{card}/device/hwmon/hwmon4/name": "i915\n",
        f"{card}/device/hwmon/hwmon4/energy1_input": "123456789\n",
    }


def xe_card(index: int = 0) -> dict[str, str]:
    device = f"sys/class/drm/card{index}/device"
    return {
        f"{device}/vendor": "0x8086\n",
        f"{device}/tile0/gt0/freq0/act_freq": "2400\n",
        f"{device}/tile0/gt0/freq0/throttle/status": "0\n",
        f"{device}/hwmon/hwmon5/name": "xe\n",
        f"{device}/hwmon/hwmon5/energy1_input": "9000000\n",
        f"{device}/hwmon/hwmon5/energy1_label": "card\n",
        f"{device}/hwmon/hwmon5/energy2_input": "5000000\n",
        f"{device}/hwmon/hwmon5/energy2_label": "pkg\n",
        f"{device}/hwmon/hwmon5/temp2_input": "55000\n",
        f"{device}/hwmon/hwmon5/temp2_label": "pkg\n",
    }


def rapl_zone(
    zone: str, name: str, energy_uj: int, range_uj: int = 262_143_328_850
) -> dict[str, str]:
    folder = f"sys/class/powercap/{zone}"
    return {
        f"{folder}/name": f"{name}\n",
        f"{folder}/energy_uj": f"{energy_uj}\n",
        f"{folder}/max_energy_range_uj": f"{range_uj}\n",
    }


def proc_files() -> dict[str, str]:
    """A machine of 16 GiB with 4 GiB available, 1 GiB of swap used."""
    return {
        "proc/stat": "cpu  100 20 30 4000 50 6 7 8 90 1\ncpu0 100 20 30 4000 50 6 7 8 90 1\nintr 1 2 3\n",
        "proc/meminfo": (
            "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    4194304 kB\n"
            "SwapTotal:       2097152 kB\nSwapFree:        1048576 kB\n"
        ),
        "proc/loadavg": "0.10 0.20 0.30 1/234 4242\n",
    }


def process(  # noqa: PLR0913  (a stat line has many fields)
    pid: int,
    parent: int,
    *,
    name: str = "llama-bench",
    state: str = "R",
    n_major_faults: int = 3,
    utime: int = 200,
    stime: int = 50,
    start: int = 777,
    rss_pages: int = 1000,
    read_bytes: int | None = 4096,
    pss_kb: int | None = None,
) -> dict[str, str]:
    """/proc/PID of one process, by proc(5)."""
    stat = (
        f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 4194304 99 0 {n_major_faults} 0 {utime} {stime} 0 0 "
        f"20 0 1 0 {start} 3133440 {rss_pages} 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
    )
    files = {f"proc/{pid}/stat": stat}
    if read_bytes is not None:
        files[f"proc/{pid}/io"] = (
            f"rchar: 6976\nwchar: 0\nread_bytes: {read_bytes}\nwrite_bytes: 0\n"
        )
    if pss_kb is not None:
        files[f"proc/{pid}/smaps_rollup"] = (
            f"5629d2514000-7ffc8cdc7000 ---p 00000000 00:00 0    [rollup]\nRss: 9 kB\nPss: {pss_kb} kB\n"
        )
    return files
