"""Comparisons of real builds: no alarm for one binary under two names, the known loss of one without vector instructions.

What crashes or lacks an option is a program that starts the real one and does so on purpose.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.engines import bench_rows, find_program
from tests.integration.running import Desk

pytestmark = pytest.mark.needs_llama
HEAD = "version: 1\nbandwidth: 2000 GB/s\nrepetitions: 3\n"
"""So small a model is read from the cache: no row of it may count as above its ceiling."""
SPEEDS = {"faster", "slower", "same", "undecided"}
SLOW_BUILD = "b11434-no-avx"
"""Build 11434 without the vector instructions of this processor; `make test-e2e-long` compiles it."""
N_BARE_PAIRS = 16
T_995_15 = 2.947
"""Student's t with 15 degrees of freedom at 99.5 %, from a printed table."""
_WRAPPER = """#!{python} -SE
import os, signal, subprocess, sys
REAL, OPTION, CRASHES = {real!r}, {option!r}, {crashes!r}
words = sys.argv[1:]
if "--help" in words or "-h" in words:
    told = subprocess.run([REAL, "--help"], capture_output=True, text=True)
    sys.stdout.write("".join(l for l in told.stdout.splitlines(True) if OPTION not in l))
    sys.exit(told.returncode)
child = subprocess.Popen([REAL, *words], stdout=subprocess.PIPE, text=True)
for line in child.stdout:
    if all(part in line for part in CRASHES):
        child.kill()
        child.wait()
        os.kill(os.getpid(), signal.SIGSEGV)
    sys.stdout.write(line)
    sys.stdout.flush()
sys.exit(child.wait())
"""
"""Knows no OPTION, and dies of SIGSEGV before the row that holds all parts of CRASHES."""


def _sweep(desk: Desk, more: str) -> Path:
    return desk.write_sweep(f"{HEAD}models: [{{synth: tiny-llama, quants: [Q4_0, Q8_0]}}]\n{more}")


@pytest.mark.long
def test_one_real_binary_under_two_names_raises_no_alarm(desk: Desk, tmp_path: Path) -> None:
    cache = {"LLAMASWEEP_CACHE": str(tmp_path / "cache")}
    program = find_program("11434", "llama-bench")
    for name in ("left", "right"):
        link = tmp_path / name / "llama-bench"
        link.parent.mkdir()
        link.symlink_to(program)
        assert desk.call("builds", "add", str(link), "--label", name, env=cache).code == 0
    sweep = _sweep(desk, "tests: [pp128, tg32]\nmatrix: {threads: [1, 2]}\n")

    ended = desk.call(
        "ab", "--plain", "--gate", "--json", "--builds", "left", "right", "--", str(sweep),
        env=cache, limit_s=3600,
    )  # fmt: skip

    assert ended.code == 0, ended.stdout + ended.stderr
    told = json.loads(ended.stdout)
    assert len(told["cells"]) == 8
    assert not [cell for cell in told["cells"] if cell["is_official"]]
    assert {cell["verdict"] for cell in told["cells"]} <= {"same", "undecided"}


def test_two_real_builds_give_a_full_comparison(desk: Desk) -> None:
    sweep = _sweep(
        desk, "builds: [10488, 11434]\norder: interleaved\nrounds: 6\ntests: [pp64, tg16]\n"
    )
    assert desk.run(sweep).code == 0

    ended = desk.call("compare", "10488", "11434", "--json")

    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert len(told["cells"]) == 4
    for cell in told["cells"]:
        assert cell["verdict"] in SPEEDS, cell
        assert cell["n_rounds"] == 6
        assert cell["low"] <= cell["ratio"] <= cell["high"]
        assert cell["evidence"] == "paired"


def test_what_crashes_is_newly_failing_and_what_lacks_an_option_is_only_in_a(
    desk: Desk, tmp_path: Path
) -> None:
    real = find_program("11434", "llama-bench")
    broken = tmp_path / "broken" / "llama-bench"
    broken.parent.mkdir()
    text = _WRAPPER.format(
        python=sys.executable,
        real=str(real),
        option="--poll",
        crashes=('"n_gen": 16,', '"n_threads": 2,'),
    )
    broken.write_text(text, encoding="utf-8")
    broken.chmod(0o755)
    cache = {"LLAMASWEEP_CACHE": str(tmp_path / "cache")}
    for name, program in (("whole", real), ("broken", broken)):
        assert desk.call("builds", "add", str(program), "--label", name, env=cache).code == 0
    sweep = _sweep(
        desk,
        "builds: [whole, broken]\norder: interleaved\nrounds: 3\ntests: [pp64, tg16]\n"
        "matrix: {threads: [1, 2]}\ninclude: [{test: pp32, threads: 1, poll: 0}]\n",
    )
    desk.call("run", "--plain", "--no-report", "--", str(sweep), env=cache)

    ended = desk.call("compare", "whole", "broken", "--gate", "--json", env=cache)

    assert ended.code == 3, ended.stdout + ended.stderr
    cells = {
        (cell["model"], cell["test"], cell["settings"]["n_threads"]): cell
        for cell in json.loads(ended.stdout)["cells"]
    }
    assert len(cells) == 10
    for (_, test, n_threads), cell in cells.items():
        if (test, n_threads) == ("tg16", 2):
            assert (cell["verdict"], cell["is_official"]) == ("newly_failing", True)
            assert cell["why"] == "the engine was ended by SIGSEGV"
            assert (len(cell["a_tps"]), len(cell["b_tps"])) == (3, 0)
        elif test == "pp32":
            assert cell["verdict"] == "only_in_a"
            assert cell["why"] == "broken does not know --poll (poll)"
        else:
            assert cell["verdict"] in SPEEDS
            assert (len(cell["a_tps"]), len(cell["b_tps"])) == (3, 3)


@pytest.mark.long
def test_a_build_without_vector_instructions_is_slower_by_what_long_bare_runs_show(
    desk: Desk,
) -> None:
    find_program(SLOW_BUILD, "llama-bench")
    sweep = _sweep(desk, "tests: [pp128, tg32]\nmatrix: {threads: [2]}\n")

    ended = desk.call(
        "ab", "--plain", "--gate", "--json", "--builds", "b11434", SLOW_BUILD, "--", str(sweep),
        limit_s=3600,
    )  # fmt: skip

    assert ended.code == 3, ended.stdout + ended.stderr
    told = json.loads(ended.stdout)
    (options,) = [one for one in told["differences"] if one["name"] == "cmake_options"]
    assert "GGML_AVX2=OFF" in options["b"]
    assert "GGML_AVX2" not in options["a"]
    assert len(told["cells"]) == 4
    bare = {quant: _bare_intervals(quant) for quant in ("Q4_0", "Q8_0")}
    for cell in told["cells"]:
        assert (cell["verdict"], cell["is_official"]) == ("slower", True), cell
        low, high = bare[cell["model"].split()[-1]][cell["test"]]
        assert cell["low"] <= high, (cell, low, high)
        assert low <= cell["high"], (cell, low, high)


def _bare_intervals(quant: str) -> dict[str, tuple[float, float]]:
    """99 % interval of the ratio of the two builds per test, from pairs of bare processes, by Student's t on the logs."""
    from llamasweep.gguf.synth import cached_model

    model = cached_model("tiny-llama", quant)
    logs: dict[str, list[float]] = {"pp128": [], "tg32": []}
    for number in range(N_BARE_PAIRS):
        builds = ("b11434", SLOW_BUILD) if number % 2 else (SLOW_BUILD, "b11434")
        rates = {build: _bare_rates(build, model) for build in builds}
        for test, found in logs.items():
            found.append(math.log(rates[SLOW_BUILD][test] / rates["b11434"][test]))
    return {test: _interval(found) for test, found in logs.items()}


def _interval(logs: list[float]) -> tuple[float, float]:
    middle = statistics.fmean(logs)
    half = T_995_15 * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle - half), math.exp(middle + half)


def _bare_rates(build: str, model: Path) -> dict[str, float]:
    rows: list[dict[str, Any]] = bench_rows(
        build, model, "-p", "128", "-n", "32", "-t", "2", "-r", "10"
    )
    return {
        f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}": statistics.median(
            row["samples_ts"]
        )
        for row in rows
    }
