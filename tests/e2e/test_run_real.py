"""Whole sweeps on the real llama-bench: every misery, killed and resumed, builds by turns, samples to the nanosecond."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from tests.e2e.engines import find_program
from tests.fakes.builds import write_build
from tests.fakes.models import write_model, write_truncated
from tests.integration.running import Desk, engines_alive

from llamasweep import load_results
from llamasweep.gguf.synth import cached_model

pytestmark = pytest.mark.needs_llama
HEAD = "version: 1\nbandwidth: 20 GB/s\nrepetitions: 2\n"


def _models(*quants: str) -> str:
    return f"models: [{{synth: tiny-llama, quants: [{', '.join(quants)}]}}]\n"


def test_a_sweep_measures_and_its_samples_are_the_engines_own(desk: Desk) -> None:
    sweep = desk.write_sweep(
        f"{HEAD}{_models('Q4_0', 'Q8_0')}builds: [11434]\ntests: [pp32, tg8, pg16+4]\n"
        "matrix: {depth: [0, 64], threads: [1, 2], flash_attn: [on, auto]}\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    (run,) = (desk.folder / "results").iterdir()
    told = [
        ns
        for log in sorted((run / "logs").glob("*.jsonl"))
        if log.name.count(".") == 1
        for line in log.read_text().splitlines()
        for ns in json.loads(line)["samples_ns"]
    ]
    assert pd.read_parquet(run / "samples.parquet")["duration_ns"].tolist() == told
    cells = load_results(run)
    assert len(cells) == 2 * 3 * 2 * 2 * 2
    assert set(cells["status"]) == {"ok"}
    assert set(cells["flash_attn_applied"]) == {"on"}, "the log tells what auto became"
    assert (cells["n_threads_applied"] == cells["n_threads"]).all()
    assert (cells["n_ctx_applied"] >= cells["n_prompt"] + cells["n_gen"] + cells["n_depth"]).all()
    assert cells["ram_peak_process_bytes"].notna().all()
    assert (cells["load_s"] > 0).all()
    assert set(cells["model_quant"]) == {"Q4_0", "Q8_0"}
    assert cells["ceiling_tps"][cells["test_kind"] == "tg"].notna().all()


def test_one_of_every_misery(desk: Desk, tmp_path: Path) -> None:
    """The real program for what it can do by itself; a fake build for a hang, a crash and garbage."""
    fake = write_build(tmp_path / "builds" / "odd")
    models = tmp_path / "models"
    good = cached_model("tiny-llama", "Q4_0")
    write_truncated(models / "cut.gguf")
    write_model(models / "alien.gguf", arch="llamazilla")
    (models / "text.gguf").write_text("hello, this is no model\n" * 100)
    for name, fault in (
        ("hang", {"do": "hang", "ignore_sigterm": True}),
        ("crash", {"do": "signal", "signal": "SIGSEGV"}),
        ("babble", {"do": "garbage", "moment": "row", "text": "Segmentation? no: babble"}),
    ):
        write_model(models / f"{name}.gguf", {"faults": [{"when": {"n_gen": 8}, **fault}]})
    real = desk.write_sweep(
        f"{HEAD}models: [{{path: {good}, label: good}}, {{path: {models}/cut.gguf}}, {{path: {models}/alien.gguf}},"
        f" {{path: {models}/missing.gguf}}, {{path: {models}/text.gguf}}]\nbuilds: [11434]\ntests: [pp16, tg8]\n"
        "matrix: {depth: [0, 8000000], type_v: [f16, q8_0], flash_attn: [off]}\n"
        "address_space_limit: 4 GiB\n",
        "real.yaml",
    )
    odd = desk.write_sweep(
        f"{HEAD}models: [{{path: {models}/hang.gguf}}, {{path: {models}/crash.gguf}}, {{path: {models}/babble.gguf}}]\n"
        f"builds: [{fake}]\ntests: [pp16, tg8]\ntimeout: 1s\n",
        "odd.yaml",
    )

    assert desk.run(real).code == 1
    rows = desk.rows()
    assert desk.run(odd).code == 1
    rows += desk.rows()

    def outcomes(label: str, **where: object) -> set[tuple[str, str | None]]:
        return {
            (r.status, r.error_kind)
            for r in rows
            if r.model_label == label and all(getattr(r, k) == v for k, v in where.items())
        }

    assert ("ok", None) in outcomes("good", n_depth=0)
    assert outcomes("good", n_depth=0) == {("ok", None), ("unsupported", "unsupported")}
    assert ("out_of_memory", "allocation_failed") in outcomes("good", n_depth=8_000_000)
    assert {kind for _, kind in outcomes("alien")} == {"unknown_architecture", "unsupported"}
    assert {status for status, _ in outcomes("missing")} == {"failed"}
    assert all(
        "no such file" in (r.error_message or "") for r in rows if r.model_label == "missing"
    )
    assert {status for status, _ in outcomes("text")} == {"failed"}
    assert {status for status, _ in outcomes("cut")} == {"failed"}
    assert outcomes("hang", test_kind="tg") == {("timeout", "hang")}
    assert outcomes("crash", test_kind="tg") == {("failed", "signal")}
    assert outcomes("babble", test_kind="tg") == {("failed", "garbage_output")}
    for label in ("hang", "crash", "babble"):
        assert outcomes(label, test_kind="pp") == {("ok", None)}
    assert engines_alive([str(fake), str(find_program("11434", "llama-bench"))]) == []


@pytest.mark.long
def test_killed_ten_times_every_cell_is_there_once(desk: Desk) -> None:
    sweep = desk.write_sweep(
        f"{HEAD}{_models('Q4_0', 'Q8_0')}builds: [11434]\ntests: [pp64, tg16]\n"
        "matrix: {depth: [0, 256], threads: [1, 2]}\n"
    )
    program = str(find_program("11434", "llama-bench"))
    dice = random.Random(7)
    for _ in range(10):
        process = desk.start("run", "--plain", "--no-report", "--", str(sweep))
        with contextlib.suppress(Exception):
            process.communicate(timeout=2.0 + 6.0 * dice.random())
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        end_s = time.monotonic() + 5.0
        while engines_alive([program]) and time.monotonic() < end_s:
            time.sleep(0.01)
        assert engines_alive([program]) == []
        if any(
            (desk.folder / "results").glob("*/run.json")
        ):  # killed before it, there is nothing to read
            load_results(desk.folder / "results")

    assert desk.run(sweep).code == 0

    rows = desk.rows()
    assert set(Counter(r.cell_id for r in rows).values()) == {1}
    assert len(rows) == 16
    assert {r.status for r in rows} == {"ok"}


def test_two_builds_take_turns_on_the_same_cells(desk: Desk) -> None:
    sweep = desk.write_sweep(
        f"{HEAD}{_models('Q4_0')}builds: [11434, 10488]\ntests: [pp32, tg8]\n"
        "matrix: {threads: 1, flash_attn: on, load_mode: mmap}\norder: interleaved\nrounds: 3\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    rows = desk.rows()
    assert Counter(r.build_number for r in rows) == {11434: 6, 10488: 6}
    assert len({r.cell_id for r in rows}) == 2
    assert {r.status for r in rows} == {"ok"}
    numbers = [r.build_number for r in rows if r.test_kind == "pp"]
    assert all(
        set(pair) == {11434, 10488} for pair in zip(numbers[::2], numbers[1::2], strict=True)
    )
