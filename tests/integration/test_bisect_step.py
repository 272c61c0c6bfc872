"""`llamasweep bisect-step` on builds that somebody else compiled: the exit codes that `git bisect run` reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.models import write_model
from tests.integration.running import Desk, Ended

FAST = {"tg_tps": 4000, "noise": 0.0}
SLOW = {"tg_tps": 3600, "noise": 0.0}
SWEEP = (
    "version: 1\nbandwidth: 10 GB/s\ntelemetry: off\nrepetitions: 1\nwarmup: off\ntests: [tg16]\n"
    "timeout: 3s\n"
)


@pytest.fixture
def sweep(desk: Desk, tmp_path: Path) -> Path:
    model = write_model(tmp_path / "m.gguf", {})
    return desk.write_sweep(f"{SWEEP}models: [{{path: {json.dumps(str(model))}}}]\n")


@pytest.mark.long
def test_good_bad_and_skip_are_what_git_bisect_run_reads_and_errors_stop_it(
    desk: Desk, sweep: Path, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    dead = [{"do": "signal", "signal": "SIGSEGV"}]
    ends = {
        "--good": fake_build("good", number=7, behaviour=FAST),
        "--bad": fake_build("bad", number=7, behaviour=SLOW),
    }
    builds = {
        "fast": fake_build("fast", number=7, behaviour={**FAST, "rep_s": 0.1}),
        "slow": fake_build("slow", number=7, behaviour={**SLOW, "rep_s": 0.1}),
        "dead": fake_build("dead", number=7, behaviour={**FAST, "faults": dead}),
        "hung": fake_build("hung", number=7, behaviour={**FAST, "faults": [{"do": "hang"}]}),
    }
    words = [str(word) for pair in ends.items() for word in pair]
    no_program = tmp_path / "no-program"
    no_program.write_text("#!/bin/sh\nexit 1\n")
    no_program.chmod(0o755)

    def called(build: Path | str, *more: str) -> Ended:
        return desk.call(
            "bisect-step", "--plain", *words, "--build", str(build), *more, "--", str(sweep)
        )

    def step(build: Path | str) -> tuple[int, str]:
        ended = called(build)
        return ended.code, ended.stdout + ended.stderr

    assert step(builds["fast"])[0] == 0
    code, text = step(builds["slow"])
    assert code == 1
    assert "against the good end" in text
    assert step(builds["dead"])[0] == 125
    code, text = step(builds["hung"])
    assert code == 1
    assert "it hangs" in text
    assert step(ends["--good"])[0] == 0
    code, text = step(no_program)
    assert code == 125
    assert "is not a llama-bench" in text
    assert step(tmp_path / "missing")[0] == 255
    n_rows = len(desk.rows())
    again = called(builds["slow"], "--json")
    assert again.code == 1
    assert json.loads(again.stdout)["outcome"] == "bad"
    assert len(desk.rows()) == n_rows
    assert len(list((desk.folder / "results").iterdir())) == 1
