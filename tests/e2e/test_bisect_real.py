"""A bisection over real programs: wrappers around one llama-bench, the later ones of which force a slower setting."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.e2e.engines import find_program
from tests.integration.running import Desk

from llamasweep.builds.registry import Registry

pytestmark = pytest.mark.needs_llama
SWEEP = (
    "version: 1\nbandwidth: 2000 GB/s\nrepetitions: 2\ntests: [pp64]\n"
    "models: [{synth: tiny-llama, quants: [Q4_0]}]\n"
)
"""So small a model is read from the cache: no row of it may count as above its ceiling."""
FIRST_SLOW = 6


def _wrapper(path: Path, program: Path, more: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n# {path.parent.name}\nexec '{program}' \"$@\" {more}\n")
    path.chmod(0o755)
    return path


def test_the_first_wrapper_that_forces_a_small_batch_is_found(desk: Desk, tmp_path: Path) -> None:
    cache = {"LLAMASWEEP_CACHE": str(tmp_path / "cache")}
    registry = Registry(tmp_path / "cache")
    program = find_program("11434", "llama-bench")
    for number in range(1, 9):
        more = "" if number < FIRST_SLOW else "-ub 8"
        path = _wrapper(tmp_path / f"build {number}" / "llama-bench", program, more)
        registry.add(path, f"w{number}")
    sweep = desk.write_sweep(SWEEP)

    ended = desk.call(
        "bisect", "--plain", "--json", "--good", "w1", "--bad", "w8", "--", str(sweep),
        env=cache, limit_s=900,
    )  # fmt: skip

    assert ended.code == 0, ended.stdout + ended.stderr
    told = json.loads(ended.stdout)
    assert f"w{FIRST_SLOW}" in told["suspects"], told
    assert len(told["suspects"]) <= 2
    assert told["is_confirmed"]
    assert told["step"]["high"] < 0.95
    assert {"name": "n_ubatch", "a": "64", "b": "8", "is_default": True} in told["differences"]
    assert told["n_measurements"] == len(desk.rows())
    applied = {(r.build_label, r.applied.get("n_ubatch")) for r in desk.rows()}
    assert {("w1", 64), ("w8", 8)} <= applied
    assert max(Counter((r.build_label, r.round_index) for r in desk.rows()).values()) == 1
