"""The verb `doctor`: what it finds and what each missing thing would need."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.machine.noise_made import FINGERPRINT, noise_record

from llamasweep.cli import doctor
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.noise_record import store_noise
from llamasweep.machine.quiet import QuietReport

QUIET = QuietReport(findings=(), flags=())


@pytest.fixture(scope="module")
def runner() -> CliRunner:
    return CliRunner()


def found(**changes: Any) -> dict[str, Any]:
    """A machine on which nothing is missing, with changes."""
    return {
        "engine_problem": None,
        "build_tools": {"compiler": "/usr/bin/c++", "cmake": "/usr/bin/cmake", "ninja": "/n"},
        "gpu_backend": {"backend": "cpu", "reason": "no GPU", "advice": None},
        "noise": {"problem": None},
        "awake": {"is_kept": True, "how": "systemd-inhibit", "reason": None},
        **changes,
    }


WHOLE = MachineFacts(os="Linux", ram_channels=2, ram_speed_mts=5600)


def needs(changes: dict[str, Any], facts: MachineFacts = WHOLE, report: QuietReport = QUIET) -> str:
    return "\n".join(
        f"{missing} -> {what}" for missing, what in doctor._needs(found(**changes), facts, report)
    )


def test_nothing_missing_needs_nothing() -> None:
    assert needs({}) == ""


def test_a_missing_engine_says_how_to_get_one() -> None:
    told = needs({"engine_problem": "there is no llama-bench on this machine"})

    assert "llamasweep builds install VERSION" in told
    assert "compiler" not in told


def test_a_missing_compiler_matters_only_without_an_engine() -> None:
    tools = {"compiler": None, "cmake": None, "ninja": None}

    assert needs({"build_tools": tools}) == ""
    told = needs({"build_tools": tools, "engine_problem": "no llama-bench"})
    assert "install g++ or clang" in told
    assert "fetches them from PyPI" in told


def test_a_gpu_without_its_toolkit_or_driver_is_named() -> None:
    advice = {"backend": "cpu", "reason": "no nvcc", "advice": "install the CUDA toolkit"}
    facts = MachineFacts(
        os="Linux",
        ram_channels=2,
        ram_speed_mts=5600,
        reasons=(("gpu_nvidia", "1 NVIDIA device(s) on the PCI bus, but NVML does not answer"),),
    )

    told = needs({"gpu_backend": advice}, facts)

    assert "install the CUDA toolkit" in told
    assert "install NVIDIA's driver" in told


def test_every_finding_of_the_quiet_check_has_advice() -> None:
    report = QuietReport(
        findings=("the machine runs on battery", "other programs use 3.0 CPU cores"),
        flags=("on_battery", "busy"),
    )

    told = needs({}, report=report)

    assert "the machine runs on battery -> plug the machine in" in told
    assert "close other programs" in told


def test_unknown_memory_speed_and_sleep_are_told() -> None:
    awake = {"is_kept": False, "how": None, "reason": "no bus"}

    told = needs({"awake": awake}, MachineFacts(os="Linux"))

    assert "doctor --bandwidth" in told
    assert "keeping the machine awake (no bus)" in told


def test_a_machine_whose_own_scatter_is_not_known_is_told_how_to_measure_it() -> None:
    told = needs({"noise": doctor._noise("0" * 16)})
    assert told.startswith("this machine's own scatter")
    assert "`llamasweep noise SWEEP`" in told


def test_an_old_measure_of_scatter_is_told_and_a_new_one_is_not() -> None:
    now = datetime.now(tz=UTC)
    for days, problem in ((1, None), (100, "100 days old")):
        store_noise(noise_record(measured_at=(now - timedelta(days=days)).isoformat()))
        told = doctor._noise(FINGERPRINT)["problem"]
        assert told is None if problem is None else problem in told


def test_doctor_runs_here_and_its_json_is_whole(runner: CliRunner) -> None:
    result = runner.invoke(doctor.command, ["--json"], catch_exceptions=False)

    about = json.loads(result.output)
    assert result.exit_code == 0
    assert about["engines"] == []
    assert about["engine_problem"]
    assert about["machine"]["fingerprint"]
    assert about["thread_words"]["physical"] >= 1
    assert isinstance(about["sensors_absent"], dict)


def test_doctor_in_words_is_plain_without_a_terminal(runner: CliRunner) -> None:
    result = runner.invoke(doctor.command, [], catch_exceptions=False)

    assert result.exit_code == 0
    assert "\x1b" not in result.output
    for title in ("Engines", "Machine", "GPUs", "Sensors", "Just now", "What would need what"):
        assert f"{title}\n" in result.output


def test_doctor_shows_a_measured_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    from llamasweep.machine import bandwidth

    told = {"best_bytes_per_s": None, "reason": "too little memory"}
    monkeypatch.setattr(
        bandwidth, "buffer_for", lambda *_, on_reason, **__: on_reason("too little RAM is free")
    )
    monkeypatch.setattr(doctor, "_engines", lambda: ([], None))

    about = doctor.examine(has_bandwidth=True)

    assert about["ram_bandwidth"]["best_bytes_per_s"] is None
    assert about["ram_bandwidth"]["reason"] == "too little RAM is free"
    lines = doctor._machine_lines(about | {"ram_bandwidth": told})
    assert ("-", "RAM bandwidth: too little memory") in lines
