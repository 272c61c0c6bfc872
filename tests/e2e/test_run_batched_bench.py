"""Sweeps on the real llama-batched-bench: its own lines are the samples, more streams give more, what it leaves out is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.e2e.engines import find_program
from tests.integration.running import Desk, engines_alive

from llamasweep import load_results

pytestmark = pytest.mark.needs_llama
HEAD = (
    "version: 1\nengine: llama-batched-bench\nbuilds: [11434]\nbandwidth: 20 GB/s\n"
    "models: [{synth: tiny-llama, quants: [Q4_0]}]\n"
)


def results_of(desk: Desk) -> Path:
    (run,) = (desk.folder / "results").iterdir()
    return run


def test_many_streams_are_measured_as_the_program_does(desk: Desk) -> None:
    find_program("11434", "llama-batched-bench")
    sweep = desk.write_sweep(
        f"{HEAD}tests: [pp128, tg16]\nrepetitions: 3\n"
        "matrix: {threads: [1], concurrency: [1, 8], depth: [0, 128]}\n"
        "exclude: [{test: pp128, depth: 128}]\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    cells = load_results(results_of(desk))
    assert set(cells["status"]) == {"ok"}
    assert len(cells) == 6
    assert (cells["n_samples"] + cells["n_discarded"] == 3).all()
    assert (cells["concurrency_applied"] == cells["concurrency"]).all()
    assert (cells["n_threads_applied"] == 1).all()
    assert (cells["n_ctx_applied"] >= cells["concurrency"] * (16 + cells["n_depth"])).all()
    assert not any("applied_differs" in flags for flags in cells["flags"])
    rates = {
        (r["test_kind"], r["n_depth"], r["concurrency"]): r["median_tps"]
        for r in cells.to_dict("records")
    }
    many = cells[cells["concurrency"] == 8]
    assert (many["latency_ratio"] * many["throughput_ratio"]).round(6).eq(8).all()
    assert (many["stream_tps"] * 8).sub(many["median_tps"]).abs().lt(1e-6).all()
    assert many["ceiling_tps"].notna().sum() >= 2  # of generation; prompts need a known peak
    # Weights are read once for all streams, so that eight give more than one, and each less.
    assert rates["tg", 0, 1] * 1.1 < rates["tg", 0, 8] < rates["tg", 0, 1] * 8
    assert not engines_alive([str(desk.folder)])


def test_its_own_words_are_kept_in_the_log(desk: Desk) -> None:
    find_program("11434", "llama-batched-bench")
    sweep = desk.write_sweep(f"{HEAD}tests: [tg8]\nrepetitions: 2\nmatrix: {{concurrency: [2]}}\n")

    assert desk.run(sweep).code == 0

    logs = results_of(desk) / "logs"
    said = b"".join(
        gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes()
        for p in sorted(logs.iterdir())
    )
    assert b"n_seq_max" in said
    (row,) = [
        json.loads(line)
        for p in logs.glob("*.jsonl")
        if p.name.count(".") == 1
        for line in p.read_text().splitlines()
    ]
    assert row["n_tokens"] == [16, 16]


def test_a_cell_that_it_leaves_out_is_a_failed_row(desk: Desk) -> None:
    find_program("11434", "llama-batched-bench")
    sweep = desk.write_sweep(
        f'{HEAD}tests: [pp512, tg8]\nrepetitions: 1\nextra_args: ["-c", "256", "-b", "256"]\n'
        "matrix: {concurrency: [2]}\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 1
    cells = {r["test_kind"]: r for r in load_results(results_of(desk)).to_dict("records")}
    assert cells["tg"]["status"] == "ok"
    assert cells["pp"]["error_kind"] == "cell_skipped"
    assert "needs 1024 tokens of context, and there were 512" in cells["pp"]["error_message"]
