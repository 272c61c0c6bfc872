"""Pull the plug at any moment: every cell is measured exactly once in the end, and the results can be read at every moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import psutil
import pytest
from tests.fakes.models import write_model
from tests.integration.running import Desk, engines_alive, order_events

from llamasweep import load_results

N_KILLS = 10
_LONGEST_WAIT_S = 60.0


def _sweep(desk: Desk, tmp_path: Path, program: Path) -> Path:
    for name in ("a", "b"):
        write_model(tmp_path / f"{name}.gguf", {"rep_s": 0.05, "name": name})
    return desk.write_sweep(
        f"version: 1\nmodels: [{{path: {tmp_path}/a.gguf}}, {{path: {tmp_path}/b.gguf}}]\n"
        f"builds: [{program}]\ntests: [pp16, pp32, tg8]\n"
        "matrix: {depth: [0, 64], threads: [1, 2]}\nrepetitions: 3\nbandwidth: 10 GB/s\n"
    )


def _wait_for_events(log: Path, n_events: int, process: object) -> None:
    """Until the engines have logged so many events, or the run is over: a moment of the sweep, not of the clock."""
    end_s = time.monotonic() + _LONGEST_WAIT_S
    while len(order_events(log)) < n_events and time.monotonic() < end_s:
        if process.poll() is not None:  # type: ignore[attr-defined]
            return
        time.sleep(0.005)


def _wait_until_gone(words: list[str]) -> list[psutil.Process]:
    """The kernel ends the engine together with its runner; give it a moment to do so."""
    end_s = time.monotonic() + 5.0
    while (left := engines_alive(words)) and time.monotonic() < end_s:
        time.sleep(0.01)
    return left


def test_killed_at_random_moments_and_resumed_every_cell_is_there_once(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    sweep = _sweep(desk, tmp_path, program)
    dice = random.Random(20261129)
    n_rows_before = 0
    for _ in range(N_KILLS):
        process = desk.start("run", "--plain", "--no-report", "--", str(sweep))
        _wait_for_events(log, len(order_events(log)) + dice.randint(1, 14), process)
        time.sleep(dice.random() * 0.2)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert _wait_until_gone([str(program)]) == []
        n_rows = _n_readable_rows(desk)
        assert n_rows >= n_rows_before
        n_rows_before = n_rows

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    rows = desk.rows()
    assert len(list((desk.folder / "results").iterdir())) == 1
    assert set(Counter(r.cell_id for r in rows).values()) == {1}
    assert len(rows) == 2 * 3 * 2 * 2
    assert {r.status for r in rows} == {"ok"}
    samples = Counter(s.attempt_id for s in desk.results().samples)
    assert set(samples.values()) == {3}
    assert set(samples) == {r.attempt_id for r in rows}


def _n_readable_rows(desk: Desk) -> int:
    """Rows by our reader and by pandas alone; both must work at every moment."""
    runs = (
        sorted((desk.folder / "results").glob("2*")) if (desk.folder / "results").exists() else []
    )
    if not runs:
        return 0
    frame = load_results(runs[-1])
    assert len(pd.read_parquet(runs[-1] / "cells.parquet")) == len(frame)
    return len(frame)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_engine_keeps_the_rows_and_says_how_to_go_on(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path], number: signal.Signals
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    sweep = _sweep(desk, tmp_path, program)
    process = desk.start("run", "--plain", "--no-report", "--", str(sweep))
    _wait_for_events(log, 9, process)

    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)

    assert process.returncode == 130, stderr
    assert "Continue with" in stdout
    assert engines_alive([str(program)]) == []
    n_kept = len(desk.rows())
    assert 0 < n_kept < 24
    assert desk.run(sweep).code == 0
    assert len(desk.rows()) == 24
    assert len({r.cell_id for r in desk.rows()}) == 24


def test_a_second_run_is_refused_while_one_measures(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    program = fake_build(order_log=log)
    model = write_model(tmp_path / "m.gguf", {"faults": [{"when": {"n_gen": 8}, "do": "hang"}]})
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{path: {model}}}]\nbuilds: [{program}]\ntests: [pp16, tg8]\n"
        "repetitions: 1\nbandwidth: 10 GB/s\n"
    )
    process = desk.start("run", "--plain", "--no-report", "--", str(sweep))
    _wait_for_events(log, 3, process)

    second = desk.run(sweep)
    status = desk.call("status")

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert second.code == 4
    assert str(process.pid) in second.stderr
    assert "measuring now" in status.stdout
