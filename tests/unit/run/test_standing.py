from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.logs import COMMON, LOG_ID, Script, cell, description, row, write_log
from tests.unit.store.records import attempt, run_info

from llamasweep.errors import StoreError
from llamasweep.run import standing as room
from llamasweep.run.lock import SweepLock
from llamasweep.run.standing import read_standing
from llamasweep.store.parquet import RunStore


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore.create(tmp_path, run_info(n_cells_planned=5))


def log_group(store: RunStore, script: Script, end: dict[str, Any] | None = None) -> None:
    cells = [cell(8, 0, 1), cell(0, 4, 2)]
    write_log(store.logs_dir, description(cells, common=COMMON), script, end=end)


def test_a_new_run_has_nothing_done(store: RunStore) -> None:
    found = read_standing(store.run_dir)
    assert (found["n_done"], found["n_cells_planned"], found["counts"]) == (0, 5, {})
    assert (found["is_running"], found["current"], found["finished_at"]) == (False, None, None)
    assert found["last_sign_at"] is not None


def test_a_table_that_cannot_be_read_is_told(store: RunStore) -> None:
    store.write_group("g1", [attempt("g1")])
    assert read_standing(store.run_dir)["problems"] == []
    part = max((store.run_dir / "cells.parquet").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:50])
    (problem,) = read_standing(store.run_dir)["problems"]
    assert part.name in problem


@pytest.mark.parametrize(("rounds", "is_open_ended"), [("auto", True), (8, False)])
def test_rounds_as_many_as_it_takes_are_planned_for_at_most(
    tmp_path: Path, rounds: int | str, is_open_ended: bool
) -> None:
    made = run_info(n_cells_planned=5, sweep_resolved={"version": 1, "rounds": rounds})
    found = read_standing(RunStore.create(tmp_path, made).run_dir)
    assert found["is_open_ended"] is is_open_ended


def test_rows_in_parquet_and_rows_that_are_only_logged_are_done(store: RunStore) -> None:
    store.write_group("00000-x", [attempt("00000-x"), attempt("00000-x", 1, status="failed")])
    log_group(store, Script().bench(1, 2, "starting").out(row(8, 0, [5])).out(b"{garbage"))
    found = read_standing(store.run_dir)
    assert found["n_done"] == 3
    assert found["counts"] == {"ok": 1, "failed": 1}


@pytest.mark.parametrize("is_in_order", [True, False])
def test_a_question_that_was_tried_again_is_done_once(store: RunStore, is_in_order: bool) -> None:
    tries = [
        attempt("g1", cell_id="c", status="failed"),
        attempt("g2", cell_id="c", status="ok", attempt_index=1),
    ]
    for one in tries if is_in_order else reversed(tries):
        store.write_group(one.group_id, [one])
    found = read_standing(store.run_dir)
    assert (found["n_done"], found["counts"]) == (1, {"ok": 1})


def test_what_no_build_can_do_is_counted_but_not_done(store: RunStore) -> None:
    store.write_group("g1", [attempt("g1", status="unsupported"), attempt("g1", 1)])
    found = read_standing(store.run_dir)
    assert (found["n_done"], found["counts"]) == (1, {"unsupported": 1, "ok": 1})


def test_the_group_that_is_measured_is_named_with_its_step(store: RunStore) -> None:
    script = Script().bench(1, 2, "starting").out(row(8, 0, [5]))
    log_group(store, script.bench(2, 2, "starting", "generation run 1/3"))
    assert read_standing(store.run_dir)["current"] == "tiny on b11434, cell 2 of 2: generation"


def test_a_group_whose_row_just_came_is_named(store: RunStore) -> None:
    log_group(store, Script().bench(1, 2, "starting").out(row(8, 0, [5])))
    assert read_standing(store.run_dir)["current"] == "tiny on b11434, cell 1 of 2: row"


def test_a_group_that_has_said_nothing_yet_is_named(store: RunStore) -> None:
    log_group(store, Script())
    assert read_standing(store.run_dir)["current"] == "tiny on b11434"


def test_a_group_that_is_in_parquet_is_not_the_current_one(store: RunStore) -> None:
    log_group(store, Script().out(row(8, 0, [5])), end={})
    store.write_group(LOG_ID, [attempt(LOG_ID)])
    found = read_standing(store.run_dir)
    assert (found["current"], found["n_done"]) == (None, 1)


def test_a_log_that_is_being_written_is_not_there_yet(store: RunStore) -> None:
    (store.logs_dir / "00001-x.group.json").write_text('{"common": ')
    assert read_standing(store.run_dir)["current"] is None


def test_the_run_that_holds_the_lock_is_running(store: RunStore) -> None:
    with SweepLock("quick") as lock:
        assert not read_standing(store.run_dir)["is_running"]
        lock.name_run(run_info().run_id)
        assert read_standing(store.run_dir)["is_running"]
    assert not read_standing(store.run_dir)["is_running"]


def test_the_last_sign_is_the_newest_file(store: RunStore) -> None:
    for path in store.run_dir.rglob("*"):
        os.utime(path, (0, 0))
    os.utime(store.run_dir / "run.json", (60.75, 60.75))
    assert read_standing(store.run_dir)["last_sign_at"] == "1970-01-01T00:01:00+00:00"


def test_a_file_that_goes_away_meanwhile_is_passed_over(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner renames and compresses while somebody looks."""
    real = Path.rglob

    def with_a_ghost(folder: Path, pattern: str) -> list[Path]:
        return [*real(folder, pattern), folder / "gone"]

    monkeypatch.setattr(Path, "rglob", with_a_ghost)
    assert room._last_sign(store.run_dir) is not None
    monkeypatch.setattr(Path, "rglob", lambda folder, _pattern: [folder / "gone"])
    assert room._last_sign(store.run_dir) is None


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        read_standing(tmp_path)
