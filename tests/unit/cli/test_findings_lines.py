"""Findings on a terminal: one line a kind, alarms and warnings only."""

from __future__ import annotations

from tests.unit.report.factory import measured, run_of

from llamasweep.cli.findings_lines import MAX_STREAM_LINES, findings_lines, stream_lines
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


def test_several_streams_are_told_against_one_for_a_few_questions() -> None:
    parts = [
        measured(10 * n_gen + n, [20.0 * (1 + n / 10)] * 3, n_gen=n_gen, test_label=f"tg{n_gen}",
                 requested={"concurrency": n})
        for n_gen in range(1, MAX_STREAM_LINES + 3)
        for n in (1, 2, 4)
    ]  # fmt: skip
    *lines, more = stream_lines(run_of(parts))
    assert len(lines) == MAX_STREAM_LINES
    assert all("4 streams: 1.27 times the tokens a second of one" in line for line in lines)
    assert more == "2 more of several streams: llamasweep results show --json"
    assert list(stream_lines(run_of([measured(1, [20.0])]))) == []
