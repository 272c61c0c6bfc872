"""Generated models in the real programs: same types as llama-quantize, same speed, no run ends early."""

from __future__ import annotations

import math
import re
import statistics
from pathlib import Path

import pytest
from tests.e2e.engines import BUILDS, bench_rows, find_program, run_program, running_server

from llamasweep.gguf.facts import TensorInfo
from llamasweep.gguf.ggml_types import tensor_bytes
from llamasweep.gguf.mixture import QUANTS, choose_types, read_traits
from llamasweep.gguf.shapes import planned_metadata, planned_tensors, read_shape, shape_names
from llamasweep.gguf.writer import encode_head, write_model

pytestmark = pytest.mark.needs_llama

TINY = [name for name in shape_names() if name.startswith("tiny-")]
QUANTIZE_BUILD = "11434"
COMMON_QUANTS = ("Q4_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "IQ4_XS")
THOROUGH = ("tiny-llama", "Gemma-3-1B", "Qwen3-30B-A3B", "Nemotron-3-Nano-30B-A3B", "LFM2-1.2B")
DRY_RUN_LINE = re.compile(
    r"^\[ *\d+/ *\d+\] +(\S+) +- \[.*?\], type = +(\w+), size = [^(\n]*(?:\((\w+)\))?$", re.M
)


def _write_skeleton(shape: str, path: Path) -> None:
    """An unquantised model whose weights are a hole in the file."""
    known = read_shape(shape)
    tensors = [
        TensorInfo(
            name=t.name, ne=t.ne, ggml_type=t.ggml_type, n_bytes=tensor_bytes(t.ggml_type, t.ne)
        )
        for t in known.tensors
    ]
    head = encode_head(planned_metadata(shape, "F16"), tensors)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + sum(-(-t.n_bytes // 32) * 32 for t in tensors))


def _types_by_llama_quantize(skeleton: Path, quant: str) -> dict[str, str]:
    program = find_program(QUANTIZE_BUILD, "llama-quantize")
    done = run_program([str(program), "--dry-run", str(skeleton), quant])
    lines = DRY_RUN_LINE.finditer(done.stdout + done.stderr)
    return {line[1]: line[3] or line[2] for line in lines}


@pytest.mark.parametrize("shape", shape_names())
def test_types_of_every_shape_equal_those_of_llama_quantize(shape: str, tmp_path: Path) -> None:
    skeleton = tmp_path / "skeleton.gguf"
    _write_skeleton(shape, skeleton)

    for quant in COMMON_QUANTS:
        expected = _types_by_llama_quantize(skeleton, quant)
        assert {t.name: t.ggml_type for t in planned_tensors(shape, quant)} == expected, quant


@pytest.mark.parametrize("shape", THOROUGH)
def test_every_other_quantisation_without_importance_matrix_agrees_too(
    shape: str, tmp_path: Path
) -> None:
    skeleton = tmp_path / "skeleton.gguf"
    _write_skeleton(shape, skeleton)
    known = read_shape(shape)
    has_odd_rows = any(t.ne[0] % 128 for t in known.tensors if t.ggml_type == "f16")

    for quant in QUANTS:
        if quant == "Q1_0" and has_odd_rows:
            continue  # llama-quantize refuses as well: no fall-back is defined
        expected = _types_by_llama_quantize(skeleton, quant)
        traits = read_traits(known.metadata)
        assert choose_types(known.tensors, quant, traits, has_imatrix=False) == expected, quant


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("shape", TINY)
def test_every_tiny_shape_runs_in_llama_bench(shape: str, build: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model(shape, "Q4_K_M", path)

    rows = bench_rows(build, path, "-p", "32", "-n", "8", "-r", "1", "-t", "1", "-d", "64")

    tensors = planned_tensors(shape, "Q4_K_M")
    assert [(row["n_prompt"], row["n_gen"]) for row in rows] == [(32, 0), (0, 8)]
    for row in rows:
        assert row["model_n_params"] == sum(math.prod(t.ne) for t in tensors)
        assert row["model_size"] == sum(t.n_bytes for t in tensors)
        assert row["model_type"].endswith("Q4_K - Medium")


@pytest.mark.parametrize("quant", QUANTS)
def test_every_quantisation_runs_in_llama_bench(quant: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("tiny-llama", quant, path)

    rows = bench_rows(QUANTIZE_BUILD, path, "-p", "8", "-n", "4", "-r", "1", "-t", "1")

    assert len(rows) == 2
    assert all(row["avg_ts"] > 0 for row in rows)


@pytest.mark.parametrize("build", BUILDS)
def test_a_real_server_gives_all_64_tokens_forty_times(build: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("tiny-llama", "Q4_K_M", path)
    counts = []

    with running_server(build, path, "-c", "1024", "-np", "1", "-t", "1") as server:
        for i in range(20):
            plain = server.post(
                "/completion", {"prompt": f"{i}: tell me more.", "n_predict": 64, "seed": i}
            )
            chat = server.post(
                "/v1/chat/completions",
                {
                    "messages": [{"role": "user", "content": f"{i}: tell\nme more."}],
                    "max_tokens": 64,
                    "seed": i,
                },
            )
            counts += [plain["tokens_predicted"], chat["usage"]["completion_tokens"]]

    assert counts == [64] * 40


def _median_rate(path: Path) -> float:
    arguments = ("-p", "0", "-n", "32", "-r", "5", "-t", "1")
    (row,) = bench_rows(QUANTIZE_BUILD, path, *arguments)
    rates: list[float] = row["samples_ts"]
    return statistics.median(rates)


def test_generated_weights_are_as_fast_as_quantised_ones(tmp_path: Path) -> None:
    source, ours, theirs = (tmp_path / f"{name}.gguf" for name in ("f16", "ours", "theirs"))
    write_model("tiny-llama", "F16", source)
    write_model("tiny-llama", "Q4_K_M", ours)
    quantize = find_program(QUANTIZE_BUILD, "llama-quantize")
    done = run_program([str(quantize), str(source), str(theirs), "Q4_K_M", "1"])
    assert done.returncode == 0, done.stderr[-2000:]

    logs = []
    for pair in range(24):
        first, second = (ours, theirs) if pair % 2 else (theirs, ours)
        rates = {first: _median_rate(first), second: _median_rate(second)}
        logs.append(math.log(rates[ours] / rates[theirs]))
        error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 7 else math.inf
        if error < 0.01:
            break

    assert abs(statistics.median(logs)) < 0.02 + 2 * error
