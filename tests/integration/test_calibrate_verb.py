"""The verb `calibrate` from end to end, with small trials and made-up figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.machine.calibrations import FINGERPRINT, calibration

from llamasweep.cli import app
from llamasweep.machine import bandwidth, disk_reads
from llamasweep.machine import calibrate as calibrating
from llamasweep.machine.calibration import Calibration, load_calibration
from llamasweep.machine.facts import read_facts
from llamasweep.machine.spec_bandwidth import SpecFigure
from llamasweep.run.lock import SweepLock

MIB = 2**20


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["calibrate", *map(str, words)])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Real measurements over so little that they take no time; gives the folder of the disk trial."""
    monkeypatch.setattr(calibrating, "buffer_for", lambda *_, **__: 4 * MIB)
    monkeypatch.setattr(bandwidth, "QUICK_ROUND_S", 0.0)
    effort = calibrating.Effort(n_passes=1, n_rounds=2, round_s=0.001, matrix_s=0.0)
    monkeypatch.setattr(calibrating, "QUICK", effort)
    monkeypatch.setattr(disk_reads, "QUICK_SIZE_BYTES", 8 * MIB)
    monkeypatch.setattr(disk_reads, "MIN_FILE_BYTES", 4 * MIB)
    return tmp_path / "disk"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what the next calibration finds."""

    def setting(found: Calibration) -> None:
        monkeypatch.setattr(calibrating, "calibrate", lambda *_, **__: found)

    return setting


def test_a_calibration_is_measured_kept_and_shown_again(small: Path) -> None:
    done = call("--quick", "--json", "--disk", small)

    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["fingerprint"] == read_facts().fingerprint
    assert found["is_quick"] is True
    assert found["ram"]["best_bytes_per_s"] > 0
    assert {"n_threads", "pages", "best_bytes_per_s", "median_bytes_per_s"} <= set(
        found["ram"]["points"][0]
    )
    assert found["matrix"]["best_flop_per_s"] > 0
    assert found["spec_ram"]["source"] or found["spec_ram"]["reason"]
    assert (found["disk"] is None) == ("disk" in found["reasons"])
    assert not small.exists() or list(small.iterdir()) == []
    assert Path(found["path"]).is_file()
    assert load_calibration(found["fingerprint"]) is not None
    again = json.loads(call("--show", "--json").stdout)
    assert again == found


def test_progress_goes_to_stderr_and_the_result_to_stdout(small: Path) -> None:
    done = call("--quick", "--disk", small)

    assert done.stderr.splitlines()[:2] == ["asking for the specification …", "reading RAM …"]
    assert "…" not in done.stdout.replace("threads …", "")
    assert "\x1b" not in done.output


def test_the_result_fits_on_one_screen(made: Any) -> None:
    made(calibration())

    lines = call().stdout.splitlines()

    assert len(lines) <= 24
    text = "\n".join(lines)
    assert "RAM       40.0 GB/s read, the best of 12 rounds (median 38.0 GB/s), 4 threads" in lines
    assert "the knee: 2 threads reach 95 % of it" in text
    assert "specified 51.2 GB/s; 78% of it was measured" in text
    assert "a card: specification not known: nobody tells" in text
    assert "Disk      3.00 GB/s in large blocks, 60.0 MB/s page by page (65 µs each)" in lines
    assert "CPU       400 GFLOPS FP32 matrix product, NumPy with openblas" in lines
    table = [line.split() for line in lines if line.startswith("          ") and "GB/s" in line]
    assert table[:3] == [
        ["1", "22.0", "GB/s"],
        ["2", "39.0", "GB/s"],
        ["4", "40.0", "GB/s", "36.0", "GB/s"],
    ]


def test_what_was_not_measured_is_told_with_its_reason(made: Any) -> None:
    made(
        calibration(
            ram=None,
            disk=None,
            matrix=None,
            spec_ram=SpecFigure(of="RAM", bytes_per_s=None, reason="a virtual machine"),
            reasons=(("ram", "no RAM is free"), ("disk", "no room"), ("matrix", "no NumPy")),
            warnings=("the machine was busy",),
        )
    )

    text = call().stdout

    assert "RAM       not measured: no RAM is free" in text
    assert "specification not known: a virtual machine" in text
    assert "Disk      not measured: no room" in text
    assert "CPU       not measured: no NumPy" in text
    assert "!  the machine was busy" in text


def test_names_from_outside_are_shown_escaped(made: Any) -> None:
    card = SpecFigure(of="\x1b[2Jcard", bytes_per_s=1e9, source="\x1b]0;x")
    made(calibration(spec_gpus=(card,)))

    assert "\x1b" not in call().stdout


def test_nothing_is_shown_where_nothing_was_measured() -> None:
    done = call("--show")

    assert "not calibrated" in str(done.exception)


def test_a_running_sweep_keeps_calibrations_out(small: Path) -> None:
    with SweepLock("a sweep"):
        done = call("--quick", "--disk", small)

    assert "another sweep is measuring" in str(done.exception)
    assert load_calibration(read_facts().fingerprint) is None


def test_a_cache_that_cannot_be_written_is_said(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llamasweep.machine import calibration as record

    made(replace(calibration(), fingerprint=FINGERPRINT))

    def full(_: Calibration) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "store_calibration", full)

    assert "could not be kept" in str(call().exception)
