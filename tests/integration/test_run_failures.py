"""One bad cell never stops a sweep: it is a row with its true reason, good cells are measured, nothing is left running."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.fakes.models import write_model, write_truncated
from tests.integration.running import Desk, engines_alive, order_events

from llamasweep.results.records import Attempt


def _by_model(rows: list[Attempt]) -> dict[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = {}
    for row in rows:
        found.setdefault(row.model_label, []).append(row)
    return found


def test_a_sweep_of_every_misery_measures_what_is_good(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    models = tmp_path / "models"
    write_model(models / "good.gguf")
    write_truncated(models / "cut.gguf")
    write_model(models / "alien.gguf", arch="llamazilla")
    write_model(
        models / "hang.gguf",
        {"faults": [{"when": {"n_gen": 8}, "do": "hang", "ignore_sigterm": True}]},
    )
    write_model(
        models / "crash.gguf",
        {"faults": [{"when": {"n_gen": 8}, "do": "signal", "signal": "SIGSEGV"}]},
    )
    write_model(
        models / "babble.gguf",
        {
            "faults": [
                {"when": {"n_gen": 8}, "do": "garbage", "moment": "row", "text": "<<< no json >>>"}
            ]
        },
    )
    write_model(
        models / "deep.gguf",
        {"faults": [{"when": {"n_depth": 64}, "do": "out_of_memory", "moment": "context"}]},
    )
    names = ("good", "missing", "cut", "alien", "hang", "crash", "babble", "deep")
    sweep = desk.write_sweep(
        "version: 1\nmodels:\n"
        + "".join(f"  - path: {models}/{name}.gguf\n" for name in names)
        + f"builds: [{program}]\ntests: [pp16, tg8]\n"
        "matrix: {depth: [0, 64], type_v: [f16, q8_0], flash_attn: [off]}\n"
        "repetitions: 2\ntimeout: 3s\nbandwidth: 10 GB/s\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 1, ended.stderr
    rows = desk.rows()
    assert len(rows) == len({r.attempt_id for r in rows}) == 8 * 8
    unsupported = [r for r in rows if r.status == "unsupported"]
    assert len(unsupported) == 6 * 4
    assert all("flash attention" in (r.error_message or "") for r in unsupported)
    tried = _by_model([r for r in rows if r.status != "unsupported"])
    assert [r.status for r in tried["good"]] == ["ok"] * 4
    assert all("no such file" in (r.error_message or "") for r in tried["missing"])
    assert all(
        "beyond" in (r.error_message or "") or "file" in (r.error_message or "")
        for r in tried["cut"]
    )
    assert {r.error_kind for r in tried["alien"]} == {"unknown_architecture"}
    assert all("llamazilla" in (r.error_message or "") for r in tried["alien"])
    assert {r.status for r in tried["hang"] if r.test_kind == "tg"} == {"timeout"}
    assert {r.exit_signal for r in tried["crash"] if r.test_kind == "tg"} == {"SIGSEGV"}
    assert {r.error_kind for r in tried["babble"] if r.test_kind == "tg"} == {"garbage_output"}
    assert {r.status for r in tried["deep"] if r.n_depth == 64} == {"out_of_memory"}
    for name in ("hang", "crash", "babble"):
        assert [r.status for r in tried[name] if r.test_kind == "pp"] == ["ok"] * 2
    assert [r.status for r in tried["deep"] if r.n_depth == 0] == ["ok"] * 2
    assert engines_alive([str(program)]) == []
    assert all(r.log_path and (desk.results().info) for r in rows if r.status == "ok")


def test_unsupported_cells_alone_are_no_failure_unless_strict(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program = fake_build()
    model = write_model(tmp_path / "m.gguf")
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{path: {model}}}]\nbuilds: [{program}]\ntests: [pp16]\n"
        "matrix: {n_gpu_layers: [0, 10]}\nrepetitions: 1\nbandwidth: 10 GB/s\n"
    )

    ended = desk.run(sweep)
    strict = desk.run(sweep, "--strict")

    assert ended.code == 0
    assert "unsupported" in ended.stdout
    assert strict.code == 1


def test_a_model_that_does_not_load_is_not_loaded_for_every_cell(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    model = write_model(tmp_path / "alien.gguf", arch="llamazilla")
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{path: {model}}}]\nbuilds: [{program}]\ntests: [pp16, tg8]\n"
        "matrix: {depth: [0, 32, 64], threads: [1, 2]}\nrepetitions: 1\nbandwidth: 10 GB/s\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 1
    starts = [e for e in order_events(log) if e["event"] == "start" and "-m" in e["argv"]]
    assert len(starts) == 1
    assert {r.error_kind for r in desk.rows()} == {"unknown_architecture"}
    assert len(desk.rows()) == 12


def test_what_an_engine_leaves_behind_is_ended(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    model = write_model(
        tmp_path / "m.gguf",
        {"faults": [{"cell": 0, "do": "grandchild", "own_session": True, "keeps_pipes": True}]},
    )
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{path: {model}}}]\nbuilds: [{program}]\ntests: [pp16]\n"
        "repetitions: 1\nbandwidth: 10 GB/s\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    (child,) = [e["child"] for e in order_events(log) if e["event"] == "grandchild"]
    assert not engines_alive([str(child)]) or not _is_alive(child)
    assert desk.results().info.groups[0]["processes_left_behind"] >= 1


def _is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("retry", [False, True])
def test_failed_cells_are_tried_again_only_when_asked(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path], retry: bool
) -> None:
    program = fake_build()
    once = tmp_path / "failed-once"
    model = write_model(
        tmp_path / "m.gguf", {"faults": [{"when": {"n_gen": 8}, "do": "exit", "once": str(once)}]}
    )
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{path: {model}}}]\nbuilds: [{program}]\ntests: [pp16, tg8]\n"
        "repetitions: 1\nbandwidth: 10 GB/s\n"
    )

    first = desk.run(sweep)
    second = desk.run(sweep, *(["--retry-failed"] if retry else []))

    assert (first.code, second.code) == (1, 0 if retry else 1)
    tries = [(r.attempt_index, r.status) for r in desk.rows() if r.test_kind == "tg"]
    assert tries == ([(0, "failed"), (1, "ok")] if retry else [(0, "failed")])


def test_a_model_that_kills_its_engine_while_it_loads_is_given_up_after_a_few_times(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    fault = {"do": "signal", "signal": "SIGABRT", "moment": "load"}
    model = write_model(tmp_path / "m.gguf", {"faults": [fault]})
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{path: {model}}}]\nbuilds: [{program}]\ntests: [pp16, tg8]\n"
        "matrix: {threads: [1, 2, 3, 4]}\nrepetitions: 1\nbandwidth: 10 GB/s\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 1
    assert "cells are left" not in ended.stdout
    starts = [e for e in order_events(log) if e["event"] == "start" and "-m" in e["argv"]]
    assert len(starts) == 3
    assert len(desk.rows()) == 8
    assert {r.status for r in desk.rows()} == {"failed"}


@pytest.mark.parametrize("what", ["build", "model"])
def test_a_file_replaced_in_the_middle_of_a_run_is_not_measured_under_the_old_name(
    what: str, desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program, model = fake_build(), write_model(tmp_path / "m.gguf")
    engine, marker = tmp_path / "outer" / "llama-bench", tmp_path / "replaced"
    engine.parent.mkdir()
    engine.write_text(
        f"""#!{sys.executable} -SE
import os, sys
if "-m" in sys.argv and not os.path.exists({str(marker)!r}):
    for path in ({str(marker)!r}, {str(engine if what == "build" else model)!r}):
        with open(path, "a") as file:
            file.write("\\n")
os.execv({str(program)!r}, [{str(program)!r}, *sys.argv[1:]])
"""
    )
    engine.chmod(0o755)
    sweep = desk.write_sweep(
        f"bandwidth: 10 GB/s\nmodels: [{{path: {model}}}]\nbuilds: [{engine}]\n"
        "tests: [tg8]\nmatrix: {depth: [0, 32]}\nrepetitions: 1\n"
    )

    ended = desk.run(sweep)

    rows = {row.n_depth: row for row in desk.rows()}
    assert ended.code == 1
    assert rows[0].status == "ok"
    assert (rows[32].status, rows[32].error_kind) == ("failed", "file_changed")
    assert f"the {what} " in (rows[32].error_message or "")

    assert desk.run(sweep).code == 1  # the rows of the old file stay as they are
    assert sorted(row.n_depth for row in desk.rows() if row.status == "ok") == [0, 0, 32]
