"""What `llamasweep best` prints is pasted into a shell, and the real llama-server runs with it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from tests.e2e.engines import BUILDS, find_program, running_server
from tests.integration.running import Desk

pytestmark = pytest.mark.needs_llama


@pytest.mark.parametrize("build", BUILDS)
def test_the_server_starts_with_the_settings_that_measured_best(desk: Desk, build: str) -> None:
    program = find_program(build, "llama-server")
    sweep = desk.write_sweep(
        f"version: 1\nmodels: [{{synth: tiny-llama, quants: [Q4_0]}}]\nbuilds: [{build}]\n"
        "tests: [pp32, tg8]\nrepetitions: 3\nbandwidth: 20 GB/s\n"
        "matrix: {threads: [1, 2], flash_attn: on, ctk: q8_0, ctv: q8_0, lm: none, nkvo: on, poll: 0}\n"
    )
    assert desk.run(sweep).code == 0

    best = desk.call("best", "--json")

    assert best.code == 0, best.stderr
    told = json.loads(best.stdout)
    (model,) = told["models"]
    for way in model["ways"]:
        argv = [os.path.expanduser(word) for word in shlex.split(way["llama_server"])]  # noqa: PTH111
        assert Path(argv[0]) == program
        assert argv[1] == "-m"
        with running_server(build, Path(argv[2]), *argv[3:]) as server:
            answer = server.post("/completion", {"prompt": "a", "n_predict": 3})
            assert answer["tokens_predicted"] == 3
        assert "PARAMETER num_ctx 4096" in way["ollama"]
        assert "OLLAMA_KV_CACHE_TYPE=q8_0" in way["ollama_server"]
