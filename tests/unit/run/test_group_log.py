from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.unit.run.logs import LOG_ID, START_NS, Script, cell, description, row, write_log

from llamasweep.engines.base import EngineEvent
from llamasweep.results.records import Reading
from llamasweep.run import group_log
from llamasweep.run.group_log import GroupLog, log_ids, read_group_log, tidy
from llamasweep.run.process import Ending, Line

READINGS = (
    Reading(time_ns=START_NS, source="proc", device="process", metric="rss_bytes", value=5.0),
    Reading(time_ns=START_NS + 1, source="thermal", device="cpu", metric="temperature_c", value=41),
)


def _stdout(text: bytes, *, is_cut: bool = False) -> Line:
    return Line(stream="stdout", data=text, time_ns=START_NS, is_cut=is_cut)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    described = description([cell(8, 0)])
    script = Script().err("a word").bench(1, 1, "starting", "prompt run 1/1").out(row(8, 0, [5]))
    record = write_log(tmp_path, described, script, end={}, readings=READINGS)
    assert record.description == described
    assert record.stdout_lines == (row(8, 0, [5]),)
    assert record.stderr_lines[0] == "a word"
    assert record.readings == READINGS
    assert record.ending == Ending(exit_code=0, exit_signal=None)
    assert record.end["reason"] == "ended"


@pytest.mark.parametrize(
    "event",
    [
        EngineEvent(kind="step", cell_index=0, step="starting", count=4),
        EngineEvent(kind="step", cell_index=0, step="depth", repetition_index=0, is_cached=True),
        EngineEvent(kind="step", cell_index=3, step="generation", repetition_index=2),
        EngineEvent(kind="garbage", text="?"),
    ],
)
def test_an_event_survives_even_if_its_numbers_are_zero(tmp_path: Path, event: EngineEvent) -> None:
    with GroupLog(tmp_path, LOG_ID, description([])) as log:
        log.event(event, 7)
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert [(t.time_ns, t.event) for t in record.events] == [(7, event)]


def test_a_row_is_not_written_twice(tmp_path: Path) -> None:
    with GroupLog(tmp_path, LOG_ID, description([])) as log:
        log.event(EngineEvent(kind="row", cell_index=0, row={"n_prompt": 8}), 7)
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert record.events[0].event == EngineEvent(kind="row", cell_index=0)


def test_a_row_that_is_safe_can_be_read_while_the_log_is_open(tmp_path: Path) -> None:
    with GroupLog(tmp_path, LOG_ID, description([cell(8, 0)])) as log:
        log.keep(_stdout(row(8, 0, [5])))
        log.row_is_safe(READINGS)
        record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert record.stdout_lines == (row(8, 0, [5]),)
    assert record.readings == READINGS
    assert record.ending is None
    assert record.end == {}


def test_a_line_without_its_end_is_no_line(tmp_path: Path) -> None:
    script = Script().out(row(8, 0, [5])).out(b'{"n_prompt": 8, "samp', is_cut=True)
    record = write_log(tmp_path, description([cell(8, 0)]), script, end=None)
    assert record.stdout_lines == (row(8, 0, [5]),)


def test_a_line_that_was_too_long_does_not_swallow_the_next(tmp_path: Path) -> None:
    script = Script().out(b"x" * 50, is_cut=True).out(row(8, 0, [5]))
    record = write_log(tmp_path, description([cell(8, 0)]), script, end={})
    assert record.stdout_lines == (b"x" * 50, row(8, 0, [5]))


@pytest.mark.parametrize(
    "damage", [b'{"kind": "st', b"\x00\x00\x00\n", b"12\n", b'{"kind": "x"}\n', b'{"time_ns": 1}\n']
)
def test_times_end_at_the_first_damaged_line(tmp_path: Path, damage: bytes) -> None:
    with GroupLog(tmp_path, LOG_ID, description([])) as log:
        log.event(EngineEvent(kind="step", step="starting"), 7)
    with (tmp_path / f"{LOG_ID}.times.jsonl").open("ab") as file:
        file.write(damage)
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert [t.time_ns for t in record.events] == [7]
    assert record.ending is None


@pytest.mark.parametrize(
    "damage", [b"[1, 2", b"[1, 2]\n", b"\x00\n", b"3\n", b'["a", "b", "c", "d", "e"]\n']
)
def test_readings_end_at_the_first_damaged_line(tmp_path: Path, damage: bytes) -> None:
    with GroupLog(tmp_path, LOG_ID, description([])) as log:
        log.readings(READINGS)
    with (tmp_path / f"{LOG_ID}.telemetry.jsonl").open("ab") as file:
        file.write(damage)
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert record.readings == READINGS


@pytest.mark.parametrize("content", [b'{"common": {', b"", b"\x00\x00", b"[]", b"3"])
def test_a_description_that_is_not_whole_makes_no_record(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{LOG_ID}.group.json").write_bytes(content)
    assert read_group_log(tmp_path, LOG_ID) is None


def test_a_description_alone_makes_an_empty_record(tmp_path: Path) -> None:
    (tmp_path / f"{LOG_ID}.group.json").write_text(json.dumps(description([])))
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert (record.stdout_lines, record.stderr_lines, record.events, record.readings) == ((),) * 4


def test_tidying_packs_stderr_and_drops_readings(tmp_path: Path) -> None:
    write_log(tmp_path, description([]), Script().err("one", "two"), end={}, readings=READINGS)
    tidy(tmp_path, LOG_ID)
    names = {p.name.removeprefix(LOG_ID) for p in tmp_path.iterdir()}
    assert names == {".group.json", ".jsonl", ".stderr.gz", ".times.jsonl"}
    assert gzip.decompress((tmp_path / f"{LOG_ID}.stderr.gz").read_bytes()) == b"one\ntwo\n"
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert record.stderr_lines == ("one", "two")
    tidy(tmp_path, LOG_ID)  # a second time changes nothing
    assert {p.name.removeprefix(LOG_ID) for p in tmp_path.iterdir()} == names


def test_a_packed_stderr_cut_by_a_power_failure_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    write_log(tmp_path, description([]), Script().err("one", "two"), end={})
    tidy(tmp_path, LOG_ID)
    packed = tmp_path / f"{LOG_ID}.stderr.gz"
    packed.write_bytes(packed.read_bytes()[:5])
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert record.stderr_lines == ()


def test_bytes_that_are_no_text_are_kept_and_read_with_replacements(tmp_path: Path) -> None:
    with GroupLog(tmp_path, LOG_ID, description([])) as log:
        log.keep(Line(stream="stderr", data=b"caf\xe9\r", time_ns=0))
        log.keep(_stdout(b"\xff\x00"))
    record = read_group_log(tmp_path, LOG_ID)
    assert record is not None
    assert record.stderr_lines == ("caf\ufffd",)
    assert record.stdout_lines == (b"\xff\x00",)


def test_a_flood_is_kept_only_up_to_the_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_log, "MAX_STREAM_BYTES", 20)
    with GroupLog(tmp_path, LOG_ID, description([])) as log:
        for _ in range(100):
            log.keep(_stdout(b"123456789"))
    assert (tmp_path / f"{LOG_ID}.jsonl").stat().st_size == 20


def test_logs_are_listed_in_the_order_of_starting(tmp_path: Path) -> None:
    for name in ("00002-b", "00010-a", "00001-c"):
        (tmp_path / f"{name}.group.json").touch()
    (tmp_path / "00003-d.jsonl").touch()
    assert log_ids(tmp_path) == ["00001-c", "00002-b", "00010-a"]
