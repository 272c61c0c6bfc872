"""The fake engine says what the real one said in recorded calls, and its faults are what they are called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import behave, write_model, write_truncated

RECORDED = Path(__file__).parents[1] / "golden" / "fake_engine"
MEASURED = {
    "cpu_info", "model_filename", "model_size", "model_n_params", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts",
    "samples_ns", "samples_ts",
}  # fmt: skip
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with the files of the recorded calls."""
    folder = tmp_path / "models"
    write_model(folder / "tiny.gguf")
    write_truncated(folder / "trunc.gguf")
    write_model(folder / "unk.gguf", arch="zlama")
    (folder / "text.gguf").write_text("hello")
    return folder


@pytest.fixture
def run(fake_build: Callable[..., Path]) -> Run:
    program = fake_build()

    def call(*argv: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *map(str, argv)], capture_output=True, text=True, timeout=30, check=False
        )

    return call


def _rows(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]


def _calls() -> list[tuple[str, str]]:
    return sorted((path.parent.name, path.stem) for path in RECORDED.glob("*/*.argv"))


@pytest.mark.parametrize(("build", "call"), _calls())
def test_recorded_calls_are_answered_as_recorded(
    build: str, call: str, fake_build: Callable[..., Path], models: Path
) -> None:
    # GIVEN a recorded call
    def recorded(kind: str) -> str:
        text = (RECORDED / build / f"{call}.{kind}").read_text(encoding="utf-8")
        return text.replace("/models/", f"{models}/")

    # WHEN the fake of that build gets the same words
    done = subprocess.run(
        [fake_build(build=build), *recorded("argv").split()],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip

    # THEN exit code, stderr and rows are the same, but for what was measured
    expected_rc = int(recorded("rc"))
    assert done.returncode == (expected_rc if expected_rc < 128 else 128 - expected_rc)
    assert _without_tensor(done.stderr) == _without_tensor(recorded("stderr"))
    expected, found = _rows(recorded("stdout")), _rows(done.stdout)
    assert [list(row) for row in found] == [list(row) for row in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert {k: v for k, v in ours.items() if k not in MEASURED} == {
            k: v for k, v in theirs.items() if k not in MEASURED
        }
        assert len(ours["samples_ns"]) == len(theirs["samples_ns"])
    if not expected:
        assert done.stdout == recorded("stdout")


def _without_tensor(stderr: str) -> list[str]:
    """Which tensor a cut hits depends on the model."""
    return [
        "tensor … not within the file" if "not within the file bounds" in line else line
        for line in stderr.splitlines()
    ]


def test_repetitions_take_the_time_that_they_report(run: Run, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.gguf", {"tg_tps": 1000, "noise": 0, "first_factor": 3})
    (row,) = _rows(run("-m", model, "-p", 0, "-n", 20, "-r", 3, "-o", "jsonl").stdout)
    assert row["samples_ns"] == [60_000_000, 20_000_000, 20_000_000]


def test_two_processes_measure_the_same(run: Run, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.gguf", {"noise": 0.1})
    first, second = (_rows(run("-m", model, "-o", "jsonl").stdout) for _ in range(2))
    assert [r["samples_ns"] for r in first] == [r["samples_ns"] for r in second]
    assert len(set(first[0]["samples_ns"])) == 5


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT"])
def test_a_signal_ends_it_after_the_rows_before(run: Run, tmp_path: Path, name: str) -> None:
    fault = {"cell": 1, "do": "signal", "signal": name}
    model = write_model(tmp_path / "m.gguf", {"faults": [fault]})
    done = run("-m", model, "-p", "16,32,64", "-n", 0, "-o", "jsonl")
    assert done.returncode == -getattr(signal, name)
    assert [r["n_prompt"] for r in _rows(done.stdout)] == [16]


def test_a_fault_finds_its_cell_by_its_values(run: Run, tmp_path: Path) -> None:
    fault = {"when": {"n_prompt": 64}, "do": "exit", "code": 1, "stderr": ["boom"]}
    model = write_model(tmp_path / "m.gguf", {"faults": [fault]})
    done = run("-m", model, "-p", "32,64", "-n", 0, "-o", "jsonl")
    assert (done.returncode, done.stderr, len(_rows(done.stdout))) == (1, "boom\n", 1)


def test_a_fault_that_happens_once_is_over_in_the_next_process(run: Run, tmp_path: Path) -> None:
    fault = {"do": "exit", "once": str(tmp_path / "struck")}
    model = write_model(tmp_path / "m.gguf", {"faults": [fault]})
    assert [run("-m", model, "-o", "jsonl").returncode for _ in range(2)] == [1, 0]


def test_garbage_stands_where_the_row_should_be(run: Run, tmp_path: Path) -> None:
    fault = {"cell": 0, "moment": "row", "do": "garbage", "text": "#0 in wait4\n"}
    model = write_model(tmp_path / "m.gguf", {"faults": [fault]})
    done = run("-m", model, "-p", 16, "-n", 8, "-o", "jsonl")
    assert done.stdout.startswith("#0 in wait4\n{")
    assert (done.returncode, len(_rows(done.stdout))) == (0, 1)


def test_a_row_can_break_off_or_lie(run: Run, tmp_path: Path) -> None:
    partial = write_model(tmp_path / "p.gguf", {"faults": [{"moment": "row", "do": "partial_row"}]})
    done = run("-m", partial, "-n", 0, "-o", "jsonl")
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.startswith("{")
    assert not done.stdout.endswith("\n")
    lying = write_model(
        tmp_path / "l.gguf",
        {"faults": [{"moment": "row", "do": "echo", "fields": {"n_threads": 7}}]},
    )
    assert _rows(run("-m", lying, "-n", 0, "-t", 1, "-o", "jsonl").stdout)[0]["n_threads"] == 7


def test_a_hanging_engine_ignores_the_polite_signal(
    fake_build: Callable[..., Path], tmp_path: Path
) -> None:
    # GIVEN an engine that hangs at its first repetition and says so in a pipe
    order_log = tmp_path / "order"
    os.mkfifo(order_log)
    model = write_model(tmp_path / "m.gguf", {"faults": [{"do": "hang", "ignore_sigterm": True}]})
    process = subprocess.Popen([fake_build(order_log=order_log), "-m", model, "-o", "jsonl"])
    try:
        event = ""
        while event != "hang":
            event = json.loads(order_log.read_text(encoding="utf-8").splitlines()[-1])["event"]
        # WHEN it is asked to stop
        process.terminate()
        # THEN only the hard signal ends it
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.1)
    finally:
        process.kill()
    assert process.wait(timeout=10) == -signal.SIGKILL


def test_behaviour_beside_the_model_rules_and_leaves_its_content(run: Run, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.gguf", {"faults": [{"do": "exit"}]})
    before = model.read_bytes()
    behave(model, {"faults": []})
    assert run("-m", model, "-o", "jsonl").returncode == 0
    assert model.read_bytes() == before


def test_the_order_log_tells_what_happened(fake_build: Callable[..., Path], tmp_path: Path) -> None:
    order_log = tmp_path / "order.log"
    model = write_model(tmp_path / "m.gguf")
    subprocess.run(
        [fake_build(order_log=order_log), "-m", model, "-p", "16", "-n", "8", "-o", "none"],
        check=True, timeout=30,
    )  # fmt: skip
    events = [json.loads(line) for line in order_log.read_text(encoding="utf-8").splitlines()]
    assert [e["event"] for e in events] == ["start", "load", "cell", "cell", "stop"]
    assert events[0]["argv"][1:3] == ["-m", str(model)]


def test_verbose_lines_tell_what_was_clamped(run: Run, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.gguf")
    done = run("-m", model, "-p", 16, "-n", 0, "-v", "-o", "jsonl")
    assert "llama_context: n_batch               = 16\n" in done.stderr
    assert "resolve_fused_ops: Flash Attention enabled\n" in done.stderr
