"""The table as llama-bench prints it: read back, it holds the same numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.unit.report.factory import (
    HOSTILE,
    Part,
    failed_parts,
    hostile_run,
    measured,
    run_of,
    sweep_parts,
)

from llamasweep.report.llama_markdown import MarkdownTable, markdown_table
from llamasweep.report.rows import rows_of


def _table(*parts: Part) -> MarkdownTable:
    return markdown_table(rows_of([run_of(parts)]), "0.1.0")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_the_head_is_llama_benchs() -> None:
    part = measured(1, [10.0], model_type="llama 1B Q4_0", model_n_params=1_100_000_000)
    table = _table(part)
    expected = (
        (
            "model".ljust(30),
            "      size",
            "    params",
            "backend".ljust(10),
            "threads",
            "test",
            "t/s",
        ),
        ("-" * 30, "---------:", "---------:", "-" * 10, "------:", "-" * 14 + ":", "-" * 19 + ":"),
        (
            "llama 1B Q4_0".ljust(30),
            "  1.77 GiB",
            "    1.10 B",
            "CPU       ",
            "      2",
            "tg32",
            "10.00",
        ),
    )
    for line, (*cells, test, rate) in zip((*table.head, *table.lines), expected, strict=True):
        assert line == f"| {' | '.join(cells)} | {test.rjust(15)} | {rate.rjust(20)} |"


def test_it_reads_back_to_the_figures_of_the_rows() -> None:
    rows = rows_of([run_of(sweep_parts())])
    table = markdown_table(rows, "0.1.0")
    names = _cells(table.head[0])
    assert len(table.lines) == len(rows)
    for row, line in zip(rows, table.lines, strict=True):
        cells = dict(zip(names, _cells(line), strict=True))
        median, std = cells["t/s"].split(" ± ")
        assert row.rates is not None
        assert float(median) == pytest.approx(row.rates.median, abs=0.005)
        assert float(std) == pytest.approx(row.rates.std, abs=0.005)
        assert cells["threads"] == str(row.settings["n_threads"])
        depth = row.attempt.n_depth
        assert cells["test"] == row.test + (f" @ d{depth}" if depth else "")


def test_small_rates_keep_three_digits() -> None:
    (line,) = _table(measured(1, [0.00123])).lines
    assert _cells(line)[-1] == "0.00123"


def test_what_varies_has_a_column_under_llama_benchs_name() -> None:
    parts = [
        measured(n, [10.0], requested={"n_gpu_layers": layers, "flash_attn": fa})
        for n, (layers, fa) in enumerate(((99, "on"), (10, "off")))
    ]
    names = _cells(_table(*parts).head[0])
    assert {"fa", "ngl"} == set(names) - {"model", "size", "params", "backend", "test", "t/s"}


def test_two_builds_have_a_column_and_stand_below() -> None:
    a = measured(1, [10.0], build_commit="abc1234", build_number=11434)
    b = measured(2, [10.0], build_commit="def5678", build_number=10488, build_hash="c")
    table = _table(a, b)
    assert [_cells(line)[-3] for line in table.lines] == ["abc1234 (11434)", "def5678 (10488)"]
    assert table.foot.startswith("build: abc1234 (11434), def5678 (10488); t/s: median ±")


def test_a_setting_left_to_the_engine_is_told_as_it_was_applied() -> None:
    row, samples = measured(1, [10.0], requested={"n_threads": None})
    (line,) = _table((replace(row, applied={"n_threads": 8}), samples)).lines
    assert _cells(line)[4] == "8"


def test_only_measured_rows_are_lines() -> None:
    assert _table(*failed_parts()).lines == ()
    assert len(_table(*failed_parts(), measured(1, [1.0])).lines) == 1


def test_hostile_names_break_no_line_and_no_column() -> None:
    rows = rows_of([hostile_run()])
    table = markdown_table(rows, HOSTILE)
    assert all(len(_cells(line)) == len(_cells(table.head[0])) for line in table.lines)
    assert "<" not in table.text
    assert len(table.text.split("\n")) == 2 + len(table.lines) + 2
