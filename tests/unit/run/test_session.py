from __future__ import annotations

import dataclasses
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.logs import COMMON, LOG_ID, SECOND_NS, Script, cell, description, row, write_log
from tests.unit.store.records import STARTED, attempt, run_info, samples_of

from llamasweep.errors import StoreError
from llamasweep.run.group_log import GroupLog
from llamasweep.run.session import Session, open_session
from llamasweep.store.parquet import RunStore

IDENTITY = {"run_id", "sweep_name", "started_at", "finished_at", "groups", "notes"}


def first_info(**changes: Any) -> dict[str, Any]:
    info = dataclasses.asdict(run_info())
    kept = {k: v for k, v in info.items() if k not in IDENTITY}
    kept["machine"] = {"fingerprint": "m1"}
    kept["builds"] = [{"label": "b11434", "content_hash": "b1"}]
    kept["models"] = [{"label": "tiny", "content_hash": "a1"}]
    return kept | changes


def opened(root: Path, *, fresh: bool = False, **changes: Any) -> tuple[Session, list[str]]:
    return open_session(root, sweep_name="quick", fresh=fresh, first_info=first_info(**changes))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return opened(tmp_path)[0]


KEY = ("c1", "f" * 32, 0)


# -- new and resumed


def test_the_first_session_of_a_sweep_makes_a_run(tmp_path: Path) -> None:
    session, notes = opened(tmp_path / "deep" / "results")
    assert not session.is_resumed
    assert notes == []
    assert session.store.run_dir.name == session.info.run_id
    assert session.store.read_info() == session.info
    assert session.info.finished_at is None


def test_the_same_sweep_takes_up_its_newest_run(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    first.update(finished_at="2026-11-29T15:00:00+00:00")
    second, notes = opened(tmp_path)
    assert second.is_resumed
    assert second.info.run_id == first.info.run_id
    assert second.info.finished_at is None
    assert notes == []


def test_a_fresh_session_or_another_sweep_makes_a_run_of_its_own(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    other, _ = open_session(tmp_path, sweep_name="other", fresh=False, first_info=first_info())
    fresh, _ = opened(tmp_path, fresh=True)
    assert len({first.info.run_id, other.info.run_id, fresh.info.run_id}) == 3
    assert not other.is_resumed
    assert not fresh.is_resumed


def test_a_damaged_run_is_not_taken_up(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    (first.store.run_dir / "run.json").write_text("{")
    second, _ = opened(tmp_path)
    assert not second.is_resumed


def test_a_damaged_run_that_is_passed_over_is_named(tmp_path: Path) -> None:
    readable, _ = opened(tmp_path)
    (tmp_path / "20991231T235959Z-quick-0a1b2c").mkdir()
    (tmp_path / "20991231T235959Z-quick-0a1b2c" / "run.json").write_text('{"schema_version": 99}')
    (tmp_path / "20991231T235959Z-other-0a1b2c").mkdir()
    (tmp_path / "20991231T235959Z-other-0a1b2c" / "run.json").write_text("{")

    session, notes = opened(tmp_path)

    assert session.info.run_id == readable.info.run_id
    assert len(notes) == 1
    assert "20991231T235959Z-quick-0a1b2c is not continued" in notes[0]
    assert "schema version 99" in notes[0]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write results"):
        opened(tmp_path / "file" / "results")


# -- what has changed


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sweep_resolved": {"tests": ["pp64"]}}, "sweep file has changed"),
        ({"builds": [{"label": "b11434", "content_hash": "b2"}]}, "build 'b11434' is another"),
        ({"models": [{"label": "tiny", "content_hash": "a2"}]}, "model 'tiny' is another"),
        ({"machine": {"fingerprint": "m2"}}, "machine differs"),
    ],
)
def test_what_has_changed_is_noticed(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    opened(tmp_path)
    session, notes = opened(tmp_path, **changes)
    assert len(notes) == 1
    assert word in notes[0]
    (key,) = changes
    assert getattr(session.info, key) == changes[key]  # from now on the new one


def test_a_changed_time_limit_is_no_change_of_the_sweep(tmp_path: Path) -> None:
    opened(tmp_path, sweep_resolved={"tests": ["pp512"], "max_time_s": 60, "file": "a.yaml"})
    _, notes = opened(tmp_path, sweep_resolved={"tests": ["pp512"], "max_time_s": 90})
    assert notes == []


def test_a_new_model_or_build_is_no_change(tmp_path: Path) -> None:
    opened(tmp_path)
    more = [{"label": "tiny", "content_hash": "a1"}, {"label": "big", "content_hash": "a9"}]
    assert opened(tmp_path, models=more)[1] == []


# -- what is done


def test_a_row_makes_its_question_done(session: Session) -> None:
    assert not session.is_done(KEY, retry_failed=False)
    assert session.n_tries(KEY) == 0
    session.learn([attempt(cell_id="c1")])
    assert session.is_done(KEY, retry_failed=False)
    assert session.is_done(KEY, retry_failed=True)
    assert session.n_tries(KEY) == 1


def test_build_and_round_are_part_of_the_question(session: Session) -> None:
    session.learn([attempt(cell_id="c1")])
    assert not session.is_done(("c1", "e" * 32, 0), retry_failed=False)
    assert not session.is_done(("c1", "f" * 32, 1), retry_failed=False)


@pytest.mark.parametrize("status", ["failed", "timeout", "out_of_memory"])
def test_a_failed_question_is_done_unless_it_is_to_be_tried_again(
    session: Session, status: Any
) -> None:
    session.learn([attempt(cell_id="c1", status=status)])
    assert session.is_done(KEY, retry_failed=False)
    assert not session.is_done(KEY, retry_failed=True)


@pytest.mark.parametrize("status", ["unsupported", "skipped", "ok"])
def test_what_did_not_fail_is_not_tried_again(session: Session, status: Any) -> None:
    session.learn([attempt(cell_id="c1", status=status)])
    assert session.is_done(KEY, retry_failed=True)


def test_the_last_try_counts_in_whatever_order_rows_are_read(session: Session) -> None:
    failed = attempt(cell_id="c1", status="failed", attempt_index=0)
    good = attempt(cell_id="c1", status="ok", attempt_index=1)
    for rows in ([failed, good], [good, failed]):
        session.done.clear()
        session.learn(rows)
        assert session.done[KEY] == ("ok", 2)


def test_the_longest_time_of_a_question_is_remembered(session: Session) -> None:
    def took(seconds: float, **changes: Any) -> Any:
        return attempt(cell_id="c1", finished_at=STARTED + timedelta(seconds=seconds), **changes)

    session.learn([took(5), took(9, round_index=1), took(7, round_index=2)])
    session.learn([took(99, status="failed"), attempt(cell_id="c2"), took(1, started_at=None)])
    assert session.longest_s == {"c1": 9.0}


# -- rows and logs


def write_group_log(session: Session, script: Script, end: dict[str, Any] | None) -> None:
    common = COMMON | {"run_id": session.info.run_id}
    what = description([cell(8, 0, 1), cell(0, 4, 2)], common=common)
    write_log(session.store.logs_dir, what, script, end=end)


def test_rows_that_a_killed_runner_had_only_logged_are_completed(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    script = Script().bench(1, 2, "starting", "prompt run 1/1").out(row(8, 0, [SECOND_NS]))
    write_group_log(first, script, end=None)
    session, notes = opened(tmp_path)
    assert notes == [f"1 rows of {LOG_ID} were completed from its log after a kill"]
    (found,) = session.store.attempts()
    assert (found.status, found.cell_id) == ("ok", f"{1:016x}")
    assert [s.duration_ns for s in session.store.samples()] == [SECOND_NS]
    assert session.is_done((f"{1:016x}", "b" * 32, 0), retry_failed=False)
    assert not session.is_done((f"{2:016x}", "b" * 32, 0), retry_failed=False)
    assert not (session.store.logs_dir / f"{LOG_ID}.stderr").exists()  # tidied up
    assert opened(tmp_path)[1] == []  # once


def test_a_log_without_a_finished_row_is_left_alone(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    write_group_log(first, Script().bench(1, 2, "starting"), end=None)
    session, notes = opened(tmp_path)
    assert notes == []
    assert session.store.attempts() == []


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"common": {}, "cells": [{}], "start_ns": 1}']
)
def test_a_log_that_cannot_be_understood_costs_its_own_cells_only(
    tmp_path: Path, content: str
) -> None:
    first, _ = opened(tmp_path)
    write_group_log(first, Script().out(row(8, 0, [5])), end={})
    (first.store.logs_dir / "00000-damaged.group.json").write_text(content)
    (first.store.logs_dir / "00000-damaged.jsonl").write_bytes(row(8, 0, [5]) + b"\n")
    session, notes = opened(tmp_path)
    assert len(session.store.attempts()) == 2
    assert notes[-1].startswith(f"2 rows of {LOG_ID}")
    assert len(notes) == (1 if content in {"{", "[]"} else 2)


def test_a_group_killed_after_its_rows_were_written_is_tidied_up(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    write_group_log(first, Script().out(row(8, 0, [5])), end={})
    first.store.write_group(LOG_ID, [attempt(LOG_ID)])
    session, notes = opened(tmp_path)
    assert notes == []
    assert not (session.store.logs_dir / f"{LOG_ID}.stderr").exists()
    assert (session.store.logs_dir / f"{LOG_ID}.stderr.gz").exists()


def test_log_names_sort_in_order_and_are_never_used_again(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    names = [first.next_log_id("b"), first.next_log_id("a")]
    assert names == ["00001-b", "00002-a"]
    for name in names:
        GroupLog(first.store.logs_dir, name, {}).__exit__()
    assert opened(tmp_path)[0].next_log_id("c") == "00003-c"


def test_log_names_are_not_used_again_where_logs_were_deleted(tmp_path: Path) -> None:
    """A row with a known attempt_id would count as written already."""
    first, _ = opened(tmp_path)
    first.store.write_group("00007-g", [attempt("00007-g")])
    first.store.write_group("none-x", [attempt("none-x")])
    first.store.compact()
    assert opened(tmp_path)[0].next_log_id("g") == "00008-g"


# -- run.json


def test_a_note_is_kept_once(session: Session) -> None:
    session.note("hot")
    session.note("hot")
    assert RunStore.open(session.store.run_dir).read_info().notes == ["hot"]


def test_groups_are_written_with_the_next_update(session: Session) -> None:
    session.add_group({"group_id": "g"})
    assert session.store.read_info().groups == []
    session.update()
    assert session.store.read_info().groups == [{"group_id": "g"}]


def test_a_commit_writes_rows_and_samples(session: Session) -> None:
    from llamasweep.run.assemble import Assembled
    from llamasweep.run.group_log import read_group_log

    write_group_log(session, Script(), end={})
    record = read_group_log(session.store.logs_dir, LOG_ID)
    assert record is not None
    rows = (attempt(LOG_ID),)
    samples = tuple(samples_of(rows[0]))
    found = Assembled(attempts=rows, samples=samples, failure=None, n_cells=1, next_index=1)
    session.commit(record, found)
    assert session.store.attempts() == list(rows)
    assert session.store.samples() == list(samples)


def test_a_session_keeps_what_run_json_said_before(tmp_path: Path) -> None:
    first, _ = opened(tmp_path)
    first.note("hot")
    first.info = replace(first.info, seed=99)
    first.update()
    second, _ = opened(tmp_path)
    assert second.info.notes == ["hot"]
    assert second.info.seed == 99
