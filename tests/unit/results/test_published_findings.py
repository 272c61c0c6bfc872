"""What the findings say of published rates: a cause or "unexplained" for each alarm, and nothing grave of the others."""

from __future__ import annotations

from collections import Counter

from tests.unit.results.published import causes, findings, shallow_rows

ALARMS = {row.attempt_id: row for row in shallow_rows() if row.is_alarm}

EXPECTED = {
    "old_build": 24,
    "dequantisation_bound, slower_build": 9,
    "dequantisation_bound": 9,
    "unexplained": 7,
    "slower_build": 2,
    "slower_build, old_build": 1,
}


def test_each_alarm_has_a_cause_or_is_unexplained() -> None:
    assert Counter(causes(row) for row in ALARMS.values()) == EXPECTED


def test_the_alarm_is_said_of_exactly_these_rows() -> None:
    said = [i for f in findings() if f.kind == "slow_decode" for i in f.attempt_ids]
    assert sorted(said) == sorted(ALARMS)


def test_i_quants_on_a_cpu_are_bound_by_unpacking() -> None:
    rows = [
        row for row in ALARMS.values() if row["quant"].startswith("IQ") and row["backend"] == "CPU"
    ]
    assert len(rows) == 13
    assert {causes(row).split(", ")[0] for row in rows} == {"dequantisation_bound"}


def test_rows_without_build_or_neighbours_stay_unexplained() -> None:
    devices = {row["device"] for row in ALARMS.values() if causes(row) == "unexplained"}
    assert devices == {
        "Apple M1 Ultra (48-core GPU)",
        "Apple M1 Ultra (64-core GPU)",
        "Tesla M40 24GB",
        "EPYC 9274F",
        "Arc 140V (Lunar Lake)",
        "Arc A310",
        "Intel Core i5-4278U (DDR3L-1600)",
    }


def test_all_other_rows_stay_quiet() -> None:
    """Two rates pass a ceiling that counts the whole file, embedding included; of the rest, notes at most."""
    loud = {
        (attempt_id, finding.kind)
        for finding in findings()
        if finding.severity != "note"
        for attempt_id in finding.attempt_ids
        if attempt_id not in ALARMS
    }
    quants = {row["quant"] for row in shallow_rows() if (row.attempt_id, "above_ceiling") in loud}
    assert {kind for _, kind in loud} == {"above_ceiling"}
    assert len(loud) == 2
    assert quants == {"BF16", "Q6_K"}
