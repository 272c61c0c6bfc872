"""Each kind of finding is said with its evidence, and is silent without it."""

from __future__ import annotations

import pytest
from tests.unit.results.finding_cases import CASES
from tests.unit.results.made import MACHINE, attempt, run_of

from llamasweep.results.checks import (
    KINDS,
    Finding,
    Kind,
    by_attempt,
    by_kind,
    check_run,
    explanations,
)
from llamasweep.results.findings import Evidence, make_finding, merged
from llamasweep.results.records import RunData


def of_kind(run: RunData, kind: Kind) -> list[Finding]:
    return [finding for finding in check_run(run) if finding.kind == kind]


def test_every_kind_has_a_case() -> None:
    assert list(CASES) == list(KINDS)


@pytest.mark.parametrize("kind", list(CASES))
def test_a_kind_is_said_with_its_evidence(kind: Kind) -> None:
    case = CASES[kind]
    found = of_kind(case.fires, kind)[0]
    shown = {item.name: item.value for item in found.evidence}
    assert {name: shown.get(name) for name in case.evidence} == pytest.approx(case.evidence)
    assert found.attempt_ids == case.ids
    assert found.cause
    assert found.next_step


@pytest.mark.parametrize("kind", list(CASES))
def test_a_kind_is_silent_without_its_evidence(kind: Kind) -> None:
    assert of_kind(CASES[kind].silent, kind) == []


@pytest.mark.parametrize("kind", list(CASES))
def test_evidence_has_units_that_people_read(kind: Kind) -> None:
    for item in of_kind(CASES[kind].fires, kind)[0].evidence:
        is_text = isinstance(item.value, str)
        assert is_text or item.unit is not None or item.name.startswith("n_")
        assert item.text.split()[-1]
    assert of_kind(CASES[kind].fires, kind)[0].text.count(".") >= 2


def test_a_healthy_row_has_no_findings() -> None:
    assert check_run(run_of([attempt()], machine=MACHINE)) == ()


def test_rows_without_a_rate_have_no_findings() -> None:
    rows = [
        attempt(0, status="failed", median_tps=None, build_number=2000),
        attempt(1, median_tps=None),
        attempt(2, status="skipped", median_tps=1.0),
        attempt(3, median_tps=float("nan")),
    ]
    assert check_run(run_of(rows, machine={**MACHINE, "power_source": "battery"})) == ()


def test_a_run_of_nothing_has_no_findings() -> None:
    assert check_run(run_of([])) == ()


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, True, float("nan"), [None, 3, "gpu"]])
def test_machine_facts_of_any_type_are_read_with_care(value: object) -> None:
    names = ("n_cores_physical", "n_cores_logical", "ram_bytes", "gpus", "calibration", "governor", "cpu_features",
             "cpu_quota", "ram_speed_mts", "ram_channels", "power_source", "last_level_cache_bytes")  # fmt: skip
    machine = dict.fromkeys(names, value)
    run = run_of([attempt()], machine=machine, builds=[value], models=[value])
    assert {finding.kind for finding in check_run(run)} <= {"slow_governor"}


def test_an_alarm_without_a_cause_says_unexplained() -> None:
    (alarm,) = check_run(run_of([attempt(median_tps=6.0)]))
    assert (alarm.kind, alarm.severity) == ("slow_decode", "alarm")
    assert alarm.cause.startswith("Unexplained")


def test_an_alarm_names_the_causes_that_other_findings_give() -> None:
    run = run_of(
        [attempt(median_tps=6.0, model_quant="IQ3_S", build_number=2000)],
        machine={"power_source": "battery"},
    )
    found = check_run(run)
    assert found[0].cause == ("Likely: bound by unpacking the weights; an old build; on battery.")
    assert [f.kind for f in explanations(found, "a0")] == [
        "dequantisation_bound",
        "old_build",
        "on_battery",
    ]
    assert found[0].next_step == explanations(found, "a0")[0].next_step


def test_the_gravest_findings_come_first() -> None:
    run = run_of(
        [attempt(0), attempt(1, median_tps=6.0, model_quant="IQ3_S")],
        machine={"power_source": "battery"},
    )
    severities = [finding.severity for finding in check_run(run)]
    assert severities == sorted(severities, key=["alarm", "warning", "note"].index)
    assert severities[0] == "alarm"


def test_equal_findings_about_several_rows_are_one() -> None:
    def one(attempt_id: str) -> Finding:
        return make_finding("on_battery", {"power_source": "battery"}, [attempt_id])

    other = make_finding("on_battery", {"power_source": "ups"}, ["a2"])
    found = merged([one("a1"), other, one("a0"), one("a1")])
    assert [f.attempt_ids for f in found] == [("a1", "a0"), ("a2",)]
    assert by_attempt(found)["a0"] == (found[0],)
    assert by_kind(found) == {"on_battery": found}


def test_nothing_is_said_without_evidence_or_rows() -> None:
    for nothing in (None, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="evidence"):
            make_finding("on_battery", {"power_source": nothing}, ["a0"])
    with pytest.raises(ValueError, match="evidence"):
        make_finding("on_battery", {"power_source": "battery"}, [])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("share_of_the_ceiling_fraction", 0.433, "share of the ceiling 43.3 %"),
        ("median_tps", 8.123, "median 8.12 t/s"),
        ("ram_bytes", 2**33, "ram 8.00 GiB"),
        ("measured_bytes_per_s", 38e9, "measured 38.0 GB/s"),
        ("over_the_ceiling_per_token_ms", 17.06, "over the ceiling per token 17.1 ms"),
        ("n_threads", 8, "threads 8"),
        ("cpu_temperature_peak_c", 99.4, "cpu temperature peak 99 °C"),
        ("backend", "CPU", "backend CPU"),
        ("assumption", "x" * 999, "assumption " + "x" * 200),
    ],
)
def test_evidence_is_written_with_its_unit(name: str, value: float | str, text: str) -> None:
    assert Evidence(name=name, value=value).text == text
