"""Sweeps with llama-batched-bench: streams counted together, cells that it leaves out, lines that it loses, and its failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.builds import write_batched_bench
from tests.fakes.models import write_model
from tests.integration.running import Desk, engines_alive

HEAD = "version: 1\nengine: llama-batched-bench\nbandwidth: 10 GB/s\ntelemetry: off\n"

Bench = Callable[..., Path]


@pytest.fixture
def sweep(desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]) -> Bench:
    """Writes a sweep over a model of no weights. more: further lines. fault: of the program."""
    program = fake_build()
    write_batched_bench(program.parent)
    model = write_model(tmp_path / "m.gguf")

    def write(more: str, fault: dict[str, Any] | None = None) -> Path:
        variables = json.dumps({"FAKE_BATCHED_BENCH": json.dumps(fault or {})})
        return desk.write_sweep(
            f"{HEAD}models: [{{path: {model}}}]\nbuilds: [{program}]\nenv: {variables}\n{more}"
        )

    return write


def test_all_streams_are_counted_together(desk: Desk, sweep: Bench) -> None:
    more = "tests: [pp64, tg8, pg16+4]\nrepetitions: 3\nmatrix: {concurrency: [1, 4]}\n"
    ended = desk.run(sweep(more))

    assert ended.code == 0, ended.stderr
    rows = {(r.test_label, r.requested["concurrency"]): r for r in desk.rows()}
    assert len(rows) == 6
    assert {r.status for r in rows.values()} == {"ok"}
    assert {r.n_samples for r in rows.values()} == {3}
    assert rows["pp64", 4].median_tps == pytest.approx(1000)
    assert rows["tg8", 1].median_tps == pytest.approx(500)
    assert rows["tg8", 4].median_tps == pytest.approx(2000)
    assert rows["pp16+tg4", 4].median_tps == pytest.approx(4 * 20 / (0.064 + 0.008))
    assert {n for (_, n) in rows} == {1, 4}
    assert all(r.applied["concurrency"] == n for (_, n), r in rows.items())
    samples = [s for s in desk.results().samples if s.cell_id == rows["pp64", 4].cell_id]
    assert [(s.n_tokens, s.duration_ns) for s in samples] == [(256, 256_000_000)] * 3


def test_a_generation_at_a_depth_is_timed_without_its_prompts(desk: Desk, sweep: Bench) -> None:
    ended = desk.run(sweep("tests: [pp64, tg8]\nmatrix: {concurrency: [2], depth: [0, 512]}\n"))

    assert ended.code == 0, ended.stderr
    rows = {(r.test_label, r.n_depth): r for r in desk.rows()}
    assert rows["tg8", 512].median_tps == pytest.approx(1000)
    assert rows["pp64", 512].status == "unsupported"
    assert "empty cache" in (rows["pp64", 512].error_message or "")


def test_a_cell_that_is_left_out_is_a_row_that_says_what_it_needs(desk: Desk, sweep: Bench) -> None:
    more = 'tests: [pp512, tg8]\nextra_args: ["-c", "256"]\nmatrix: {concurrency: [2]}\n'
    ended = desk.run(sweep(more))

    assert ended.code == 1
    rows = {r.test_label: r for r in desk.rows()}
    assert rows["tg8"].status == "ok"
    assert (rows["pp512"].status, rows["pp512"].error_kind) == ("failed", "cell_skipped")
    assert "left 2 x (pp512 + tg0) out without a word" in (rows["pp512"].error_message or "")
    assert "needs 1024 tokens of context, and there were 512" in (rows["pp512"].error_message or "")


def test_lines_that_the_program_loses_are_measured_again(
    desk: Desk, sweep: Bench, tmp_path: Path
) -> None:
    fault = {"at": [64, 0], "do": "lose_last", "once": str(tmp_path / "lost")}
    ended = desk.run(sweep("tests: [pp64]\nrepetitions: 2\n", fault))

    assert ended.code == 0, ended.stderr
    (row,) = desk.rows()
    assert (tmp_path / "lost").exists()
    assert (row.status, row.n_samples, row.differences) == ("ok", 2, ())


def test_a_crash_costs_one_cell(desk: Desk, sweep: Bench) -> None:
    more = "tests: [pp64, tg8, pg16+4]\nrepetitions: 1\n"
    ended = desk.run(sweep(more, {"at": [0, 8], "do": "abort"}))

    assert ended.code == 1
    rows = {r.test_label: r for r in desk.rows()}
    assert [rows[t].status for t in ("pp64", "tg8", "pp16+tg4")] == ["ok", "failed", "ok"]
    assert rows["tg8"].error_message == "llama-batched-bench ended with SIGABRT"


def test_a_hang_ends_with_the_program(desk: Desk, sweep: Bench) -> None:
    more = "tests: [pp64, tg8]\nrepetitions: 1\ntimeout: 6s\n"
    ended = desk.run(sweep(more, {"at": [64, 0], "do": "hang"}))

    assert ended.code == 1
    assert [r.status for r in desk.rows()] == ["timeout", "ok"]
    assert not engines_alive([str(desk.folder.parent / "m.gguf")])


@pytest.mark.parametrize(
    ("more", "fault", "kind", "words"),
    [
        ("", {"says": 7}, "row_mismatch", "it measured 7 x (pp64 + tg0) instead of 1 x"),
        ('extra_args: ["-npl", "2"]\n', {}, "bad_argument", "extra_args hold -npl"),
        ('extra_args: ["--bogus"]\n', {}, "bad_argument", "invalid argument: --bogus"),
    ],
)
def test_another_cell_than_asked_is_no_result(
    desk: Desk, sweep: Bench, more: str, fault: dict[str, Any], kind: str, words: str
) -> None:
    ended = desk.run(sweep(f"tests: [pp64]\nrepetitions: 1\n{more}", fault))

    assert ended.code == 1
    (row,) = desk.rows()
    assert row.error_kind == kind
    assert words in (row.error_message or "")


def test_a_shared_prompt_is_counted_once_and_flagged(desk: Desk, sweep: Bench) -> None:
    more = 'tests: [pp64, tg8]\nrepetitions: 1\nextra_args: ["-pps"]\nmatrix: {concurrency: [4]}\n'
    ended = desk.run(sweep(more))

    assert ended.code == 0, ended.stderr
    rows = {r.test_label: r for r in desk.rows()}
    assert "prompt_shared" in rows["pp64"].flags
    assert "prompt_shared" not in rows["tg8"].flags
    (sample,) = [s for s in desk.results().samples if s.cell_id == rows["pp64"].cell_id]
    assert sample.n_tokens == 64


def test_a_build_without_the_program_says_how_to_get_it(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    model = write_model(tmp_path / "m.gguf")
    ended = desk.run(
        desk.write_sweep(f"{HEAD}models: [{{path: {model}}}]\nbuilds: [{fake_build()}]\n")
    )
    assert ended.code != 0
    assert "has no llama-batched-bench beside its llama-bench" in ended.stderr
    assert "--with llama-batched-bench" in ended.stderr
