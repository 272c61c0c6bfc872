"""Findings on a terminal: one line a kind, alarms and warnings only."""

from __future__ import annotations

from tests.unit.report.factory import measured, run_of

from llamasweep.cli.findings_lines import findings_lines
from llamasweep.results.records import TelemetryFigures


def test_a_quiet_run_has_nothing_to_say() -> None:
    quiet = TelemetryFigures(cpu_use_other_fraction=0.01)
    assert list(findings_lines(run_of([measured(1, [20.0, 20.1, 19.9], telemetry=quiet)]))) == []


def test_rows_with_one_cause_are_one_line_with_its_numbers() -> None:
    busy = TelemetryFigures(cpu_use_other_fraction=0.6)
    parts = [
        measured(i, [20.0, 20.1, 19.9], telemetry=busy, flags=("busy_neighbour",)) for i in (1, 2)
    ]
    (line,) = [text for text in findings_lines(run_of(parts)) if "others used" in text]
    assert "(2 rows)" in line
    assert "60" in line
    assert "\n" not in line
