"""Comparisons of real builds: one binary under two names raises no alarm, two builds give a full comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.e2e.engines import find_program
from tests.integration.running import Desk

pytestmark = pytest.mark.needs_llama
HEAD = "version: 1\nbandwidth: 2000 GB/s\nrepetitions: 3\n"
"""So small a model is read from the cache: no row of it may count as above its ceiling."""
SPEEDS = {"faster", "slower", "same", "undecided"}


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
