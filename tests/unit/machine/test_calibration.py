"""A calibration is kept whole, found again, and weighed against what a run sees at its start."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.machine.calibrations import FINGERPRINT, MEASURED_AT, bandwidth, calibration

from llamasweep.machine.bandwidth import Bandwidth
from llamasweep.machine.calibration import (
    Calibration,
    RunBandwidth,
    bandwidth_for_run,
    calibration_path,
    load_calibration,
    store_calibration,
)
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.memory_curve import MemoryCurve

FACTS = MachineFacts(os="Linux", n_cores_allowed=4, n_cpus_allowed=4, n_cores_logical=4)
THEN = datetime.fromisoformat(MEASURED_AT)


def test_what_is_stored_is_loaded_again() -> None:
    path = store_calibration(calibration(reasons=(("disk", "no room"),)))

    assert path == calibration_path(FINGERPRINT)
    assert load_calibration(FINGERPRINT) == calibration(reasons=(("disk", "no room"),))
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_parts_that_were_not_measured_stay_absent() -> None:
    store_calibration(calibration(ram=None, disk=None, matrix=None))

    found = load_calibration(FINGERPRINT)

    assert found is not None
    assert (found.ram, found.disk, found.matrix) == (None, None, None)
    assert (found.knee_threads, found.ram_fraction_of_spec) == (None, None)


def test_the_newest_takes_the_place_of_the_one_before() -> None:
    store_calibration(calibration())
    store_calibration(calibration(is_quick=True))

    found = load_calibration(FINGERPRINT)

    assert found is not None
    assert found.is_quick


def test_a_failed_write_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    path = store_calibration(calibration())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store_calibration(calibration(is_quick=True))

    assert load_calibration(FINGERPRINT) == calibration()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_json_tells_what_follows_from_the_points() -> None:
    plain = calibration().to_dict()

    assert plain == json.loads(json.dumps(plain))
    assert plain["ram"]["best_bytes_per_s"] == 40e9
    assert plain["ram"]["n_threads"] == 4
    assert plain["ram"]["knee_threads"] == 2
    assert plain["ram"]["fraction_of_spec"] == pytest.approx(0.78125)
    assert plain["spec_gpus"][0]["bytes_per_s"] is None
    assert plain["spec_gpus"][0]["reason"] == "nobody tells"


def test_without_a_specification_there_is_no_fraction_of_it() -> None:
    spec = replace(calibration().spec_ram, bytes_per_s=None)

    assert calibration(spec_ram=spec).ram_fraction_of_spec is None


def test_another_machine_has_no_calibration() -> None:
    store_calibration(calibration())

    assert load_calibration("fedcba9876543210") is None


@pytest.mark.parametrize("fingerprint", ["", "../../etc/passwd", "ABCDEF0123456789", "0" * 100])
def test_what_is_no_fingerprint_names_no_file(fingerprint: str) -> None:
    assert load_calibration(fingerprint) is None
    with pytest.raises(ValueError, match="no fingerprint"):
        calibration_path(fingerprint)


def _without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda plain: plain.pop(key)


def _with(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(plain: dict[str, Any]) -> None:
        at: Any = plain
        for key in keys[:-1]:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _without("fingerprint"),
        _without("reasons"),
        _with("fingerprint", value="ffffffffffffffff"),
        _with("format", value=2),
        _with("measured_at", value="yesterday"),
        _with("measured_at", value=0),
        _with("ram", "points", value=[]),
        _with("ram", "points", value="x"),
        _with("ram", "points", "0", "best_bytes_per_s", value="fast"),
        _with("ram", "points", "0", "best_bytes_per_s", value=True),
        _with("ram", "points", "0", "pages", value="gigantic"),
        _with("spec_ram", value=[1, 2]),
        _with("reasons", value=[1]),
        _with("reasons", value={"disk": 3}),
    ],
)
def test_a_file_that_does_not_fit_is_no_calibration(
    change: Callable[[dict[str, Any]], None],
) -> None:
    path = store_calibration(calibration())
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))

    assert load_calibration(FINGERPRINT) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"reasons": {}}', "NaN"])
def test_a_broken_file_is_no_calibration(text: str) -> None:
    path = store_calibration(calibration())
    path.write_text(text)

    assert load_calibration(FINGERPRINT) is None


def test_keys_of_a_newer_version_are_passed_over() -> None:
    path = store_calibration(calibration())
    path.write_text(json.dumps({**json.loads(path.read_text()), "new": 1}))

    assert load_calibration(FINGERPRINT) == calibration()


def test_age_counts_from_the_measurement_and_never_below_zero() -> None:
    assert calibration().age_s(THEN + timedelta(days=3)) == 3 * 86400
    assert calibration().age_s(THEN - timedelta(days=3)) == 0
    assert calibration().age_s() > 0


class Start:
    """What the start of a run finds: a stored calibration, and memory that answers with a figure."""

    def __init__(self, stored: Calibration | None, now_gb_per_s: float | None) -> None:
        self.stored = stored
        self.now_gb_per_s = now_gb_per_s
        self.asked_threads: int | None = None
        self.asked_method: str | None = None

    def measure(
        self,
        _: MachineFacts,
        *,
        n_threads: int | None,
        method: str | None,
        on_reason: Callable[[str], None],
    ) -> Bandwidth | None:
        self.asked_threads, self.asked_method = n_threads, method
        if self.now_gb_per_s is None:
            on_reason("no RAM is free")
            return None
        return bandwidth(self.now_gb_per_s, n_threads=n_threads or 4)

    def run(self, *, days: float = 3, facts: MachineFacts = FACTS) -> RunBandwidth:
        return bandwidth_for_run(
            facts,
            measure=self.measure,
            load=lambda _: self.stored,
            now=THEN + timedelta(days=days),
        )


def test_a_quiet_start_confirms_the_calibration_and_says_its_age() -> None:
    start = Start(calibration(), 39)

    found = start.run()

    assert found == RunBandwidth(
        40e9, "calibrated 3 days ago, 4 threads; 39.0 GB/s at the start (98%)", ()
    )
    assert (start.asked_threads, start.asked_method) == (4, "memchr")


def test_a_neighbour_at_the_start_is_a_warning_and_no_lower_ceiling() -> None:
    found = Start(calibration(), 20).run()

    assert found.bytes_per_s == 40e9
    (warning,) = found.warnings
    assert "20.0 GB/s, 50% of the 40.0 GB/s calibrated 3 days ago" in warning
    assert "something else uses it" in warning


def test_a_faster_start_outdoes_the_calibration() -> None:
    found = Start(calibration(), 50).run()

    assert found.bytes_per_s == 50e9
    assert found.source == "measured at the start, 4 threads; 40.0 GB/s calibrated 3 days ago"
    assert "calibrate again" in found.warnings[0]


def test_an_old_calibration_says_so() -> None:
    (warning,) = Start(calibration(), 40).run(days=45).warnings

    assert warning.startswith("the calibration of this machine is 45 days old")


@pytest.mark.parametrize(
    ("days", "age"), [(1, "1 day ago"), (0.5, "12 h 00 min ago"), (0.0, "just now")]
)
def test_ages_are_told_in_the_unit_that_fits(days: float, age: str) -> None:
    assert age in (Start(calibration(), 40).run(days=days).source or "")


def test_without_a_second_look_the_calibration_stands() -> None:
    found = Start(calibration(), None).run()

    assert found.bytes_per_s == 40e9
    assert found.warnings == (
        "the memory bandwidth was not measured again at the start: no RAM is free",
    )


def test_a_machine_that_was_never_calibrated_is_measured_at_the_start() -> None:
    start = Start(None, 30)

    found = start.run()

    assert (found.bytes_per_s, found.warnings) == (30e9, ())
    assert "never calibrated" in (found.source or "")
    assert start.asked_threads is None


def test_a_noisy_start_without_calibration_is_uncertain() -> None:
    def noisy(*_: object, **__: object) -> Bandwidth:
        return bandwidth(30, median=10)

    found = bandwidth_for_run(FACTS, measure=noisy, load=lambda _: None)

    assert "varied" in found.warnings[0]


def test_nothing_known_is_none_with_the_reason() -> None:
    assert Start(None, None).run() == RunBandwidth(
        None, None, ("memory bandwidth is not measured: no RAM is free",)
    )


def test_fewer_allowed_cores_compare_with_as_many_threads() -> None:
    narrow = replace(FACTS, n_cores_allowed=1, n_cpus_allowed=1)
    start = Start(calibration(), 21)

    found = start.run(facts=narrow)

    assert start.asked_threads == 1
    assert found.bytes_per_s == 22e9
    assert found.warnings == ()


def test_a_calibration_without_ram_is_none_for_a_run() -> None:
    found = Start(calibration(ram=None), 30).run()

    assert "never calibrated" in (found.source or "")
    assert found.bytes_per_s == 30e9


def test_no_shared_point_is_like_no_calibration() -> None:
    only_wide = MemoryCurve(points=(bandwidth(40, n_threads=16),))

    assert Start(calibration(ram=only_wide), 30).run().bytes_per_s == 30e9


def test_the_clock_is_utc() -> None:
    path: Path = store_calibration(calibration(measured_at=datetime.now(tz=UTC).isoformat()))
    found = load_calibration(FINGERPRINT)

    assert found is not None
    assert path.exists()
    assert found.age_s() < 3600


def test_a_best_far_above_its_median_is_told_with_the_source() -> None:
    noisy = bandwidth(40, median=20)

    found = bandwidth_for_run(FACTS, measure=lambda *_, **__: noisy, load=lambda _: None)

    assert found.source is not None
    assert "the best of rounds whose median is 20.0 GB/s" in found.source
