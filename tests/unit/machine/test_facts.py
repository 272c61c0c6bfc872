"""Facts of machines that stand under another root."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.machine.trees import FakeNvml, laptop_files, write_tree

from llamasweep.machine.facts import MachineFacts, read_facts
from llamasweep.machine.gpus import Gpu, NvmlLibrary, open_nvml
from llamasweep.machine.linux import parse_cpu_list
from llamasweep.machine.words import thread_words

NO_NVML = NvmlLibrary(reason="NVML does not answer: not found")


@pytest.fixture
def laptop(tmp_path: Path) -> MachineFacts:
    write_tree(tmp_path, laptop_files())
    return read_facts(tmp_path, os="Linux", nvml=NO_NVML)


def test_a_laptop_is_read_whole(laptop: MachineFacts) -> None:
    assert laptop.cpu_name == "Intel(R) Core(TM) i7-13700H"
    assert laptop.system_name == "LENOVO 21HD"
    assert laptop.os_name == "Debian GNU/Linux 12 (bookworm)"
    assert laptop.kernel == "6.12.1-amd64"
    assert (laptop.n_cores_physical, laptop.n_cores_logical) == (4, 6)
    assert laptop.n_cores_performance == 2
    assert laptop.cpu_max_mhz == 5000
    assert laptop.last_level_cache_bytes == 24 * 2**20
    assert laptop.cpu_features == ("avx2", "avx_vnni", "f16c", "fma", "sse4_2")
    assert laptop.ram_bytes == 32594788 * 1024
    assert laptop.hypervisor == ""
    assert laptop.governor == "powersave"
    assert laptop.frequency_driver == "intel_pstate"
    assert laptop.power_source == "mains"
    assert laptop.n_numa_nodes == 1


def test_memory_modules_come_from_udev_without_root(laptop: MachineFacts) -> None:
    assert (laptop.ram_type, laptop.ram_speed_mts, laptop.ram_channels) == ("DDR5", 5200, 2)
    # 2 channels * 8 bytes * 5200 MT/s
    assert laptop.spec_ram_bandwidth_bytes_per_s == 83.2e9


def test_no_host_name_and_no_serial_number_is_kept(laptop: MachineFacts) -> None:
    assert "secret" not in json.dumps(laptop.to_dict()).lower()


def test_facts_are_plain_json(laptop: MachineFacts) -> None:
    plain = laptop.to_dict()

    assert json.loads(json.dumps(plain)) == plain
    assert plain["fingerprint"] == laptop.fingerprint
    assert plain["reasons"]["gpu_nvidia"] == "NVML does not answer: not found"


def test_everything_absent_is_none_with_a_reason(tmp_path: Path) -> None:
    facts = read_facts(tmp_path, os="Linux", nvml=NO_NVML)

    plain = facts.to_dict()
    may_be_absent = {"cpu_quota", "fingerprint"}
    for name, value in plain.items():
        if value is None and name not in may_be_absent:
            assert plain["reasons"][name], name
    assert facts.ram_bytes is None
    assert facts.n_cores_physical is None
    assert "virtual machines" in plain["reasons"]["ram_channels"]
    assert facts.spec_ram_bandwidth_bytes_per_s is None


def test_fingerprint_ignores_what_changes_from_day_to_day(laptop: MachineFacts) -> None:
    other_day = replace(
        laptop,
        kernel="6.13",
        governor="performance",
        power_source="battery",
        n_cpus_allowed=1,
        ram_bytes=(laptop.ram_bytes or 0) - 5_000_000,
    )

    assert other_day.fingerprint == laptop.fingerprint
    assert len(laptop.fingerprint) == 16


@pytest.mark.parametrize(
    "change",
    [
        {"cpu_name": "other"},
        {"ram_speed_mts": 4800},
        {"ram_bytes": 64 * 2**30},
        {"hypervisor": "KVM"},
        {"gpus": (Gpu(vendor="nvidia", name="RTX 4070", index=0),)},
    ],
)
def test_fingerprint_follows_the_hardware(laptop: MachineFacts, change: dict[str, object]) -> None:
    changed = replace(laptop, **change)  # type: ignore[arg-type]

    assert changed.fingerprint != laptop.fingerprint


@pytest.mark.parametrize(
    ("vendor", "product", "name"),
    [
        ("QEMU", "Standard PC (Q35)", "KVM or QEMU"),
        ("VMware, Inc.", "VMware7,1", "VMware"),
        ("Microsoft Corporation", "Virtual Machine", "Hyper-V"),
        ("Amazon EC2", "c7i.large", "Amazon EC2"),
    ],
)
def test_hypervisors_are_known_by_their_product_name(
    vendor: str, product: str, name: str, tmp_path: Path
) -> None:
    dmi = {"sys/class/dmi/id/sys_vendor": vendor, "sys/class/dmi/id/product_name": product}
    write_tree(tmp_path, dmi)

    assert read_facts(tmp_path, os="Linux", nvml=NO_NVML).hypervisor == name


def test_an_unnamed_hypervisor_is_seen_by_its_cpu_flag(tmp_path: Path) -> None:
    write_tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor avx2"})

    assert read_facts(tmp_path, os="Linux", nvml=NO_NVML).hypervisor == "unnamed"


def test_power_source_is_battery_when_the_plug_is_out(tmp_path: Path) -> None:
    files = laptop_files() | {
        "sys/class/power_supply/AC/online": "0",
        "sys/class/power_supply/BAT0/status": "Discharging",
    }
    write_tree(tmp_path, files)

    assert read_facts(tmp_path, os="Linux", nvml=NO_NVML).power_source == "battery"


def test_locators_without_channels_leave_them_unknown(tmp_path: Path) -> None:
    text = (
        "E:MEMORY_DEVICE_0_SIZE=8589934592\nE:MEMORY_DEVICE_0_LOCATOR=Onboard\n"
        "E:MEMORY_DEVICE_0_SPEED_MTS=3200"
    )
    write_tree(tmp_path, {"run/udev/data/+dmi:id": text})

    facts = read_facts(tmp_path, os="Linux", nvml=NO_NVML)

    assert facts.ram_channels is None
    assert facts.ram_speed_mts == 3200
    assert dict(facts.reasons)["ram_channels"] == "the modules' locators name no channels"


@pytest.mark.parametrize(
    ("locators", "channels"),
    [
        (("DIMM_A1", "DIMM_A2", "DIMM_B1", "DIMM_B2"), 2),
        (("P0 CHANNEL A", "P0 CHANNEL B", "P1 CHANNEL A", "P1 CHANNEL B"), 4),
        (("Node0_Channel0", "Node0_Channel1"), 2),
    ],
)
def test_channels_are_counted_by_name_not_by_module(
    locators: tuple[str, ...], channels: int, tmp_path: Path
) -> None:
    lines = [
        f"E:MEMORY_DEVICE_{i}_SIZE=8589934592\nE:MEMORY_DEVICE_{i}_LOCATOR={name}"
        for i, name in enumerate(locators)
    ]
    write_tree(tmp_path, {"run/udev/data/+dmi:id": "\n".join(lines)})

    assert read_facts(tmp_path, os="Linux", nvml=NO_NVML).ram_channels == channels


def test_big_and_little_arm_cores_are_told_apart_by_capacity(tmp_path: Path) -> None:
    cpus = "sys/devices/system/cpu"
    files = {f"{cpus}/online": "0-3", "proc/cpuinfo": "processor\t: 0\nFeatures\t: asimd i8mm"}
    for cpu, capacity in enumerate((400, 400, 900, 1024)):
        files[f"{cpus}/cpu{cpu}/topology/thread_siblings_list"] = str(cpu)
        files[f"{cpus}/cpu{cpu}/cpu_capacity"] = str(capacity)
    write_tree(tmp_path, files)

    facts = read_facts(tmp_path, os="Linux", nvml=NO_NVML)

    assert (facts.n_cores_physical, facts.n_cores_performance) == (4, 2)
    assert facts.cpu_features == ("asimd", "i8mm")


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", (0, 1, 2, 3, 8)), ("", ()), ("x,2", (2,)), ("5", (5,))]
)
def test_cpu_lists(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


# -- words


def test_words_of_a_hybrid_laptop(laptop: MachineFacts) -> None:
    assert thread_words(laptop) == {"physical": 4, "logical": 6, "performance": 2, "half": 2}


def test_words_never_pass_affinity_or_quota(tmp_path: Path) -> None:
    files = laptop_files() | {
        "proc/self/status": "Cpus_allowed_list:\t0-3",
        "sys/fs/cgroup/cpu.max": "150000 100000",
    }
    write_tree(tmp_path, files)

    facts = read_facts(tmp_path, os="Linux", nvml=NO_NVML)

    assert facts.cpu_quota == 1.5
    assert (facts.n_cores_allowed, facts.n_cpus_allowed) == (2, 4)
    assert thread_words(facts) == {"physical": 1, "logical": 1, "performance": 1, "half": 1}


def test_words_without_a_topology_fall_back_to_logical_cpus() -> None:
    facts = MachineFacts(os="Linux", n_cores_logical=8)

    assert thread_words(facts) == {"physical": 8, "logical": 8, "performance": 8, "half": 4}


# -- GPUs


def test_nvidia_devices_through_nvml(tmp_path: Path) -> None:
    library = FakeNvml(
        {"name": b"NVIDIA GeForce RTX 4070", "total": 12 * 2**30, "bits": 192, "mhz": 10501},
        {"name": "NVIDIA GB10", "limit_mw": 140_000},
        {"lost": True},
    )

    facts = read_facts(tmp_path, os="Linux", nvml=open_nvml(lambda: library))

    first, second = facts.gpus
    assert (first.name, first.memory_bytes) == ("NVIDIA GeForce RTX 4070", 12 * 2**30)
    assert first.driver == "570.10"
    # 10501 MHz * 2 * 192 bit / 8 = 504 GB/s, the data sheet's figure
    assert first.spec_bandwidth_bytes_per_s == pytest.approx(504e9, rel=1e-3)
    assert second.memory_bytes is None
    assert second.power_limit_w == 140
    assert "NOT_SUPPORTED" in dict(facts.reasons)["gpu_nvidia_1_memory_bytes"]
    assert "does not open it" in dict(facts.reasons)["gpu_nvidia_2"]


def test_a_plugged_in_gpu_without_its_driver_is_named(tmp_path: Path) -> None:
    device = "sys/bus/pci/devices/0000:01:00.0"
    write_tree(tmp_path, {f"{device}/vendor": "0x10de", f"{device}/class": "0x030000"})
    broken = open_nvml(lambda: FakeNvml(is_broken=True))

    facts = read_facts(tmp_path, os="Linux", nvml=broken)

    assert facts.gpus == ()
    assert dict(facts.reasons)["gpu_nvidia"] == (
        "1 NVIDIA device(s) on the PCI bus, but "
        "NVML does not answer: Driver/library version mismatch"
    )


def test_nvml_that_is_not_installed_is_a_reason() -> None:
    def load() -> None:
        raise ImportError("no pynvml")

    assert open_nvml(load).reason == "the Python package nvidia-ml-py is not installed"


def test_amd_and_intel_devices_through_sysfs(tmp_path: Path) -> None:
    drm = "sys/class/drm"
    write_tree(
        tmp_path,
        {
            f"{drm}/card0/device/vendor": "0x1002",
            f"{drm}/card0/device/device": "0x744c",
            f"{drm}/card0/device/mem_info_vram_total": str(24 * 2**30),
            f"{drm}/card0/device/mem_info_gtt_total": str(16 * 2**30),
            f"{drm}/card0-DP-1/device/vendor": "0x1002",
            f"{drm}/card1/device/vendor": "0x1002",
            f"{drm}/card1/device/product_name": "Radeon 780M",
            f"{drm}/card1/device/mem_info_vram_total": str(2**29),
            f"{drm}/card1/device/mem_info_gtt_total": str(16 * 2**30),
            f"{drm}/card2/device/vendor": "0x8086",
            f"{drm}/card2/device/device": "0x56a0",
            f"{drm}/card2/device/tile0/physical_vram_size_bytes": str(16 * 2**30),
            f"{drm}/card3/device/vendor": "0x8086",
            f"{drm}/card3/device/device": "0xa7a0",
        },
    )

    gpus = read_facts(tmp_path, os="Linux", nvml=NO_NVML).gpus

    assert [(g.name, g.index, g.shares_system_memory) for g in gpus] == [
        ("AMD GPU 0x744c", 0, False),
        ("Radeon 780M", 1, True),
        ("INTEL GPU 0x56a0", 0, False),
        ("INTEL GPU 0xa7a0", 1, True),
    ]
    assert gpus[3].memory_bytes is None


def test_this_machine_is_read_without_an_error() -> None:
    facts = read_facts()

    assert facts.n_cores_logical
    assert min(thread_words(facts).values()) >= 1
    assert facts.fingerprint == read_facts().fingerprint
