"""What the benchmarks judge with: medians, intervals of ratios, one object on stdout."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from benchmarks.bare import emit, median_tps, paired_ratio, rows, student_quantile, write_sweep
from benchmarks.run_all import measure

from llamasweep.sweep import schema


@pytest.mark.parametrize(
    ("n_degrees", "table"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)],
)
def test_student_quantile_is_that_of_the_tables(n_degrees: int, table: float) -> None:
    assert student_quantile(n_degrees) == pytest.approx(table, rel=0.002)


def test_interval_of_a_ratio_worked_by_hand() -> None:
    # mean 0.01, standard deviation 0.01, n = 3: half-width 4.303 * 0.01 / sqrt(3) = 0.02484
    found = paired_ratio([0.0, 0.01, 0.02])
    assert found.ratio == pytest.approx(math.exp(0.01))
    assert found.half_width_fraction == pytest.approx(math.expm1(0.02484), rel=1e-3)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1 < found.high


def test_two_pairs_have_no_interval() -> None:
    found = paired_ratio([0.0, 0.1])
    assert (found.low, found.high, found.half_width_fraction) == (None, None, None)


def test_the_first_repetition_is_left_out_of_the_median() -> None:
    row = {"n_prompt": 0, "n_gen": 10, "samples_ns": [10**10, 10**9, 2 * 10**9, 10**9]}
    assert median_tps(row) == 10.0


def test_only_result_lines_are_rows() -> None:
    assert rows('usage: llama-bench\n{"n_gen": 1}\n\n') == [{"n_gen": 1}]


def test_a_written_sweep_is_a_valid_sweep(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, {"models": [{"path": "/m.gguf"}], "matrix": {"depth": [0, 8]}})
    spec = schema.parse(path.read_text(encoding="utf-8"), str(path), _no_base)
    assert len(spec.models) == 1


def _no_base(*_: object) -> tuple[str, str]:
    raise AssertionError("it extends nothing")


def test_one_object_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    emit("x", {"ratio": 1.0})
    assert json.loads(capsys.readouterr().out) == {"benchmark": "x", "ratio": 1.0}


def test_a_benchmark_that_fails_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    found = measure("no_such_benchmark", 1)
    assert found == {"benchmark": "no_such_benchmark", "failed_with": 1, "last_lines": []}
    assert "no_such_benchmark" in capfd.readouterr().err
