from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.logs import Script, cell, description, row, write_log

from llamasweep.run.failures import find_failure, missing_row
from llamasweep.run.group_log import GroupRecord

GENERIC = "llama_bench: error: failed to load model 'm.gguf'"
NO_FILE = "gguf_init_from_file: failed to open GGUF file 'm.gguf' (No such file or directory)"


def record(tmp_path: Path, script: Script, **end: Any) -> GroupRecord:
    return write_log(tmp_path, description([cell(8, 0)]), script, end=end)


def test_a_killed_runner_leaves_no_failure(tmp_path: Path) -> None:
    left = write_log(tmp_path, description([cell(8, 0)]), Script(), end=None)
    assert find_failure(left, 0, 1) is None


def test_a_stop_is_no_failure(tmp_path: Path) -> None:
    left = record(tmp_path, Script(), reason="stopped", exit_code=None, exit_signal="SIGTERM")
    assert find_failure(left, 0, 1) is None


def test_all_rows_and_a_bad_end_is_no_failure_of_a_cell(tmp_path: Path) -> None:
    left = record(tmp_path, Script(), exit_code=None, exit_signal="SIGSEGV")
    assert find_failure(left, 1, 1) is None


def test_a_timeout_keeps_its_sentence(tmp_path: Path) -> None:
    left = record(
        tmp_path, Script(), reason="timeout", message="no sign of life", exit_signal="SIGKILL"
    )
    failure = find_failure(left, 0, 1)
    assert failure is not None
    assert (failure.status, failure.kind, failure.message, failure.reach) == (
        "timeout",
        "hang",
        "no sign of life",
        "cell",
    )


def test_a_flood_is_garbage(tmp_path: Path) -> None:
    left = record(tmp_path, Script(), reason="garbage", message="over 10000 lines")
    failure = find_failure(left, 0, 1)
    assert failure is not None
    assert (failure.status, failure.kind) == ("failed", "garbage_output")


def test_the_engines_words_explain_a_bad_end(tmp_path: Path) -> None:
    failure = find_failure(record(tmp_path, Script().err(NO_FILE, GENERIC), exit_code=1), 0, 3)
    assert failure is not None
    assert (failure.kind, failure.reach) == ("model_missing", "load")
    assert failure.message == NO_FILE


def test_a_load_that_failed_after_rows_concerns_its_cell_alone(tmp_path: Path) -> None:
    """With fit_target the model is loaded anew for every test, each with its own needs."""
    failure = find_failure(record(tmp_path, Script().err(NO_FILE, GENERIC), exit_code=1), 1, 3)
    assert failure is not None
    assert failure.reach == "cell"


def test_the_kernels_kill_is_told(tmp_path: Path) -> None:
    left = record(tmp_path, Script(), exit_code=None, exit_signal="SIGKILL", was_oom_killed=True)
    failure = find_failure(left, 0, 1)
    assert failure is not None
    assert (failure.status, failure.kind) == ("out_of_memory", "oom_killed")


def test_a_good_end_with_too_few_rows_says_how_many(tmp_path: Path) -> None:
    failure = find_failure(record(tmp_path, Script().out(row(8, 0, [5]))), 1, 3)
    assert failure is not None
    assert (failure.status, failure.kind) == ("failed", "too_few_rows")
    assert failure.message == "the engine ended well but gave 1 of 3 results"


@pytest.mark.parametrize("garbage", [b"hello", b"{not json", b'{"n_prompt": 8}'])
def test_a_good_end_with_garbage_shows_it(tmp_path: Path, garbage: bytes) -> None:
    failure = find_failure(record(tmp_path, Script().out(garbage).out(b"")), 0, 1)
    assert failure is not None
    assert failure.kind == "garbage_output"
    assert garbage.decode() in failure.message


def test_garbage_is_shown_in_part(tmp_path: Path) -> None:
    failure = find_failure(record(tmp_path, Script().out(b"\xff" * 10_000)), 0, 1)
    assert failure is not None
    assert len(failure.message) < 500


def test_a_cell_that_was_passed_over_says_what_stood_in_its_place(tmp_path: Path) -> None:
    assert missing_row(record(tmp_path, Script().out(b"oops"))).kind == "garbage_output"
    other = record(tmp_path / "other", Script().out(row(8, 0, [5])))
    assert missing_row(other).kind == "row_missing"
