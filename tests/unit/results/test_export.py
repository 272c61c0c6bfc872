"""Rows in llama-bench's columns: builds told apart, keys never null, figures from our samples."""

from __future__ import annotations

import csv
import dataclasses
import json
import sqlite3
import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.unit.store.records import attempt, samples_of

from llamasweep.errors import StoreError
from llamasweep.results.export import (
    EXPORT_FIELDS,
    LLAMA_BENCH_FIELDS,
    build_commits,
    llama_bench_rows,
)
from llamasweep.results.request_times import RequestTimes
from llamasweep.store.export_files import write_export

_COMPARED = (
    "cpu_info", "gpu_info", "backends", "n_gpu_layers", "n_cpu_moe", "tensor_buft_overrides",
    "model_filename", "model_type", "n_batch", "n_ubatch", "embeddings", "cpu_mask",
    "cpu_strict", "poll", "n_threads", "type_k", "type_v", "load_mode", "no_kv_offload",
    "split_mode", "main_gpu", "tensor_split", "flash_attn", "n_prompt", "n_gen", "n_depth",
    "fit_target", "fit_min_ctx",
)  # fmt: skip
"""What compare-llama-bench.py pairs rows by; in SQL, null never equals null."""


def _build(number: int | None, commit: str | None, digest: str) -> Any:
    return attempt(
        build_number=number, build_commit=commit, build_hash=digest, build_label=f"label {digest}"
    )


def test_figures_are_those_of_the_kept_samples() -> None:
    one = attempt(sample_std_tps=None)
    first, second, third = samples_of(one, 3)
    dropped = dataclasses.replace(first, is_discarded=True, duration_ns=1)

    row = llama_bench_rows([one], [dropped, second, third]).rows[0]

    assert row["samples_ns"] == [second.duration_ns, third.duration_ns]
    assert row["avg_ts"] == pytest.approx(statistics.fmean([second.tps, third.tps]))
    assert row["stddev_ts"] == pytest.approx(statistics.stdev([second.tps, third.tps]))
    assert row["avg_ns"] == 5_000_000_002
    assert row["test_time"] == "2026-11-29T14:07:55Z"


def test_one_sample_has_no_deviation() -> None:
    one = attempt(sample_std_tps=None)
    row = llama_bench_rows([one], samples_of(one, 1)).rows[0]
    assert row["stddev_ts"] is None
    assert row["stddev_ns"] is None


def test_only_measured_cells_are_rows() -> None:
    attempts = [attempt(), attempt("g2", status="failed"), attempt("g3", status="unsupported")]
    assert len(llama_bench_rows(attempts, []).rows) == 1


def test_no_column_that_rows_are_paired_by_is_null() -> None:
    row = llama_bench_rows([attempt(gpu_name=None, cpu_name=None)], []).rows[0]
    assert [name for name in _COMPARED if row[name] is None] == []
    assert row["flash_attn"] == -1
    assert row["repack"] is True


def test_parameters_are_what_the_engine_echoes_and_not_what_it_made_of_them() -> None:
    one = attempt(
        requested={
            "n_batch": 4096,
            "flash_attn": "off",
            "tensor_split": "3/1",
            "no_op_offload": True,
        },
        applied={"n_threads": 2, "n_batch": 512, "n_ubatch": 64, "n_gpu_layers": 0},
    )
    row = llama_bench_rows([one], []).rows[0]
    assert (row["n_batch"], row["n_ubatch"], row["n_threads"]) == (4096, 512, 2)
    assert (row["flash_attn"], row["n_gpu_layers"]) == (0, -1)
    assert row["tensor_split"] == "3.00/1.00"
    assert row["no_op_offload"] == 1
    assert not isinstance(row["no_op_offload"], bool)


@pytest.mark.parametrize(
    ("builds", "names"),
    [
        ([(11434, "0123456789", "aa"), (10488, "abcdef0", "bb")], ["0123456", "abcdef0"]),
        ([(11434, "sdist", "aa"), (9437, "sdist", "bb")], ["b11434", "b09437"]),
        ([(11434, "sdist", "a" * 32), (11434, "sdist", "b" * 32)], ["a" * 8, "b" * 8]),
        ([(None, None, "c" * 31 + "1"), (None, None, "c" * 31 + "2")],
         ["c" * 31 + "1", "c" * 31 + "2"]),
    ],
)  # fmt: skip
def test_builds_have_different_names_of_one_length(
    builds: list[tuple[int | None, str | None, str]], names: list[str]
) -> None:
    attempts = [_build(*build) for build in builds]
    assert list(build_commits(attempts).values()) == names
    export = llama_bench_rows(attempts, [])
    assert [row["build_commit"] for row in export.rows] == names
    assert export.builds == tuple((n, f"label {b[2]}") for n, b in zip(names, builds, strict=True))


def test_two_models_of_one_file_name_stay_two_and_one_model_has_one_type_text() -> None:
    rows = llama_bench_rows(
        [
            attempt(model_hash="a" * 32, model_type="llama ?B (guessed) F16"),
            attempt("g2", model_hash="a" * 32, model_type="llama ?B F16 (guessed)"),
            attempt("g3", model_hash="b" * 32, model_type="qwen3 0.6B Q4_0"),
        ],
        [],
    ).rows
    assert [r["model_filename"] for r in rows] == [
        "tiny.gguf#aaaaaaaa", "tiny.gguf#aaaaaaaa", "tiny.gguf#bbbbbbbb",
    ]  # fmt: skip
    assert rows[0]["model_type"] == rows[1]["model_type"]


def test_what_the_script_would_average_silently_is_said() -> None:
    export = llama_bench_rows(
        [attempt(requested={"repack": True}), attempt("g2", requested={"repack": False})], []
    )
    assert any("averages over repack" in note for note in export.notes)
    assert any("lack the number of threads" in note for note in export.notes) is False


def test_rows_of_a_server_are_told_apart_by_what_was_asked_of_it(tmp_path: Path) -> None:
    times = RequestTimes(ttft_median_s=0.25, tpot_median_s=0.02, e2e_median_s=1.5)
    loads: list[dict[str, Any]] = [
        {"concurrency": 1},
        {"concurrency": 4},
        {"prompt_cache": "warm"},
        {"prompt_cache": "warm", "turn": 3},
        {"num_ctx": 4096},
    ]
    attempts = [
        attempt(str(i), engine="llama-server", requested=load, requests=times)
        for i, load in enumerate(loads)
    ]
    export = llama_bench_rows([*attempts, attempt("bench")], [])
    write_export(export.rows, "csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))

    names = ("engine", "concurrency", "prompt_cache", "turn", "num_ctx", "ttft_median_s")
    assert [tuple(row[name] for name in names) for row in table] == [
        ("llama-server", "1", "cold", "1", "", "0.25"),
        ("llama-server", "4", "cold", "1", "", "0.25"),
        ("llama-server", "1", "warm", "1", "", "0.25"),
        ("llama-server", "1", "warm", "3", "", "0.25"),
        ("llama-server", "1", "cold", "1", "4096", "0.25"),
        ("llama-bench", "1", "cold", "1", "", ""),
    ]
    assert (table[0]["tpot_median_s"], table[0]["e2e_median_s"]) == ("0.02", "1.5")
    assert export.notes == (
        "compare-llama-bench.py averages over engine, concurrency, prompt_cache, turn, num_ctx: "
        "export one value at a time",
    )


def test_columns_of_llama_bench_come_first_and_in_its_order() -> None:
    """Readers that count columns find them where they were."""
    row = llama_bench_rows([attempt()], []).rows[0]
    assert list(row)[: len(LLAMA_BENCH_FIELDS)] == [f.name for f in LLAMA_BENCH_FIELDS]
    assert [f.name for f in LLAMA_BENCH_FIELDS][-2:] == ["avg_ts", "stddev_ts"]


def test_the_three_files_hold_the_same_rows(tmp_path: Path) -> None:
    hostile = 'it\'s "<b>"\n;DROP TABLE llama_bench'
    attempts = [attempt(), attempt("g2", model_file=hostile, model_hash="b" * 32)]
    rows = llama_bench_rows(attempts, [s for a in attempts for s in samples_of(a)]).rows
    for kind in ("csv", "jsonl", "sqlite"):
        write_export(rows, kind, tmp_path / f"out.{kind}")

    lines = [json.loads(text) for text in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    database = sqlite3.connect(tmp_path / "out.sqlite")
    stored = database.execute("SELECT * FROM llama_bench").fetchall()
    types = database.execute("PRAGMA table_info(llama_bench)").fetchall()
    database.close()

    assert lines == list(rows)
    assert [r["model_filename"] for r in table] == ["tiny.gguf", hostile]
    assert [r["avg_ts"] for r in table] == [str(r["avg_ts"]) for r in rows]
    assert [r[5] for r in stored] == ["tiny.gguf", hostile]
    assert [(t[1], t[2]) for t in types] == [(f.name, f.sql) for f in EXPORT_FIELDS]


def test_an_existing_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with pytest.raises(StoreError, match="there already"):
        write_export([], "csv", path)
    assert path.read_text() == "mine"
    write_export([], "csv", path, replace=True)
    assert path.read_text().startswith('"build_commit"')


def test_rows_of_two_builds_are_paired_by_the_join_of_the_compare_script(tmp_path: Path) -> None:
    attempts = [
        dataclasses.replace(_build(number, "sdist", digest), attempt_id=f"{number}-{depth}", n_depth=depth,
                            applied={"flash_attn": "on"} if number > 11000 else {})
        for number, digest in ((11434, "aa"), (10488, "bb"))
        for depth in (0, 512, 4096)
    ]  # fmt: skip
    export = llama_bench_rows(attempts, [s for a in attempts for s in samples_of(a)])
    write_export(export.rows, "sqlite", tmp_path / "out.sqlite")

    equal = " AND ".join(f"tb.{name} = tc.{name}" for name in _COMPARED)
    database = sqlite3.connect(tmp_path / "out.sqlite")
    pairs = database.execute(
        f"SELECT tb.n_depth, tb.avg_ts, tc.avg_ts FROM llama_bench tb JOIN llama_bench tc ON {equal} "  # noqa: S608
        "AND tb.build_commit = 'b10488' AND tc.build_commit = 'b11434'"
    ).fetchall()
    database.close()

    assert sorted(pair[0] for pair in pairs) == [0, 512, 4096]
