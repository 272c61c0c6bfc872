"""`llamasweep feel` on a real llama-server: against an independent timer, and for a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.e2e.engines import find_program, running_server
from tests.integration.plain_timer import median_and_p95, time_answers

from llamasweep.cli import app
from llamasweep.gguf.synth import cached_model
from llamasweep.run import lock

pytestmark = pytest.mark.needs_llama

N_GEN, N_RUNS, BUILD = 64, 7, "11434"


@pytest.fixture(autouse=True)
def own_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's cache has the builds; a sweep of theirs must not be in the way."""
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "sweep.lock")


def test_it_agrees_with_an_independent_timer_on_a_real_server() -> None:
    model = cached_model("tiny-llama", "Q8_0")
    with running_server(BUILD, model, "-c", "4096", "-np", "1", "-t", "1") as server:
        words = ["feel", "--base-url", server.url, "--runs", str(N_RUNS), "--n-gen", str(N_GEN)]
        done = CliRunner().invoke(app, [*words, "--n-prompt", "400", "--json"])
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        plain = time_answers(server.url, told["model"], 78, N_GEN, N_RUNS)
    assert (told["kind"], told["n_gen"], told["flags"]) == ("llama-server", N_GEN, [])
    assert told["n_prompt"] == pytest.approx(400, rel=0.05)
    assert told["ceiling_tps"] is not None
    for name in ("tpot", "e2e"):
        median_s, p95_s = median_and_p95(plain[name])
        noise = max(
            0.3, p95_s / median_s - 1, told[f"{name}_ms"]["p95"] / told[f"{name}_ms"]["median"] - 1
        )
        assert told[f"{name}_ms"]["median"] == pytest.approx(median_s * 1e3, rel=noise)


def test_a_file_is_served_measured_and_held_against_its_ceiling() -> None:
    find_program(BUILD, "llama-server")
    model = cached_model("tiny-llama", "Q8_0")
    words = [
        "feel",
        str(model),
        "--build",
        BUILD,
        "--runs",
        "2",
        "--n-gen",
        "16",
        "--n-prompt",
        "64",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "2 answers of 16 tokens, prompts of" in done.stdout
    assert "ceiling: " in done.stdout
    assert "the speed at which people read" in done.stdout
