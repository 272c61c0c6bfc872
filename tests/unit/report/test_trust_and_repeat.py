from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.unit.report.factory import (
    HOSTILE,
    hostile_run,
    info,
    lost,
    measured,
    run_of,
    sweep_parts,
)

from llamasweep import sweep_file
from llamasweep.report.figures import THIN
from llamasweep.report.repeat import MAX_GROUPS, repeat
from llamasweep.report.rows import rows_of
from llamasweep.report.trust import Trust, trust
from llamasweep.results.findings import Finding
from llamasweep.results.records import RunData
from llamasweep.sweep import schema
from llamasweep.sweep.cell import Cell
from llamasweep.sweep.matrix import expand
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import ModelSource

SWEEPS = sorted((Path(__file__).parents[3] / "sweeps").glob("*.yaml"))


def _trust(run: RunData) -> Trust:
    return trust([run], rows_of([run]))


def test_doubts_are_counted_explained_and_linked() -> None:
    view = _trust(run_of(sweep_parts(models=("m",), quants=("Q4_0",), depths=(0,))))
    (doubt,) = view.doubts
    assert (doubt.word, doubt.n_rows, doubt.anchors) == ("noisy", 2, ("row-5", "row-6"))
    assert view.mark == "2 of 6 measured rows with a doubt"


def test_no_doubts_are_said_as_such() -> None:
    assert _trust(run_of([measured(1, [1.0, 1.0])])).mark == "no doubts in 1 measured row"


def test_an_alarm_about_a_row_is_a_doubt() -> None:
    run = run_of([measured(1, [8.0, 8.1]), measured(2, [8.0, 8.1], n_depth=512)])
    rows = rows_of([run])
    alarm = Finding(
        kind="above_ceiling", severity="alarm", evidence=(), cause="", next_step="", attempt_ids=()
    )
    warning = replace(alarm, severity="warning")
    doubted = [replace(rows[0], findings=(alarm,)), replace(rows[1], findings=(warning,))]
    assert trust([run], doubted).mark == "1 of 2 measured rows with a doubt"


def test_where_only_cells_failed_nothing_was_measured() -> None:
    run = run_of([lost(1, status="failed", flags=("busy_neighbour",)), lost(2, status="failed")])
    assert _trust(run).mark == "nothing was measured"


def test_left_out_repetitions_are_told() -> None:
    text = _trust(run_of([measured(1, [5.0, 10.0, 10.1], n_discarded=1)])).repetitions
    assert text.startswith("2 repetitions in 1 measured row; 1 leading repetition left out")
    rounds = [measured(1, [10.0]), measured(2, [10.0], round_index=1, cell_id=f"{1:016x}")]
    assert "over up to 2 rounds; none left out." in _trust(run_of(rounds)).repetitions


def test_differences_between_asked_and_applied_are_counted() -> None:
    parts = [measured(n, [1.0], differences=("n_batch: asked 2048, applied 512",)) for n in (1, 2)]
    assert _trust(run_of(parts)).differences == (("n_batch: asked 2048, applied 512", 2),)


def test_the_ceiling_tells_where_its_bandwidth_comes_from_or_why_there_is_none() -> None:
    parts = [measured(1, [1.0]), measured(2, [1.0], model_size_bytes=None)]
    assert _trust(run_of(parts)).calibration == (
        f"Memory bandwidth 41.8{THIN}GB/s, measured (1 tg row).",
        "No exact ceiling for 1 tg row: the memory bandwidth is not known",
        "Assumed: flash attention was left to the engine and is taken to be on.",
    )


def test_the_cost_of_the_sampler_is_told_or_said_to_be_unknown() -> None:
    assert "took 0.500\u202f% of one core" in _trust(run_of([measured(1, [1.0])])).sampler
    assert "was not measured" in _trust(run_of([measured(1, [1.0])], groups=[])).sampler


def test_generated_models_are_named() -> None:
    parts = [
        measured(n, [1.0], model_label=f"m{n:02d}", model_quant=None, model_is_synthetic=True)
        for n in range(10)
    ]
    text = _trust(run_of(parts)).synthetic
    assert text is not None
    assert "m07 and 2 more" in text
    assert _trust(run_of([measured(1, [1.0])])).synthetic is None


def test_each_call_is_the_exact_command_with_its_environment() -> None:
    view = repeat(run_of([measured(1, [1.0])]))
    (call,) = view.calls
    assert call.command == (
        "env GGML_NO_BACKTRACE=1 '/opt/llama bench/llama-bench' -m models/tiny-llama-Q4_0.gguf -o jsonl"
    )
    assert call.outcome == f"4 cells, exit code 0, 41.0{THIN}s"
    assert call.log_path == "logs/00001-g0.jsonl"
    assert view.command == "llamasweep run sweeps/quick.yaml"


def test_a_run_without_a_file_has_no_command() -> None:
    assert repeat(run_of([], sweep_file=None)).command is None


def test_the_yaml_of_a_hostile_record_hides_nothing() -> None:
    assert yaml.safe_load(repeat(run_of([])).sweep_yaml) == info().sweep_resolved
    hostile = hostile_run().info.sweep_resolved
    text = repeat(hostile_run()).sweep_yaml
    assert "\u202e" not in text
    assert yaml.safe_load(text) == hostile


def cells_of(spec: SweepSpec) -> list[Cell]:
    """Every cell, on a machine of two cores."""
    models = [
        ModelSource(label=f"{entry.synth} {quant}", synth=entry.synth, quant_asked=quant)
        for entry in spec.models
        for quant in entry.quants or ("Q4_K_M",)
    ]
    words = {"physical": 2, "logical": 2, "performance": 2, "half": 1}
    return [cell for block in expand(spec, models, words) for cell in block.cells()]


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_the_yaml_is_a_sweep_file_with_the_same_cells(path: Path) -> None:
    spec = sweep_file.load(path)
    recorded = json.loads(json.dumps(spec.to_resolved_dict()))
    text = repeat(run_of([], sweep_resolved=recorded)).sweep_yaml
    again = schema.parse(text, "sweep.yaml", lambda name, _: (name, name))
    assert cells_of(again) == cells_of(spec)
    assert len(cells_of(spec)) > 1


def test_the_steps_fetch_each_build_and_run_the_saved_file() -> None:
    parts = [
        measured(n, [1.0], build_number=number) for n, number in ((1, 11434), (2, 10488), (3, None))
    ]
    assert repeat(run_of(parts)).steps.split("\n") == [
        "llamasweep builds install 11434",
        "llamasweep builds install 10488",
        "llamasweep run sweep.yaml",
    ]


def test_what_the_record_cannot_give_back_is_said() -> None:
    resolved = {
        "on_finish": ["notify", "(hidden)"],
        "env": {"API_KEY": "(hidden)"},
        "models": [{"path": "~/m.gguf", "glob": None}],
    }
    view = repeat(run_of([], sweep_resolved=resolved))
    assert [note.split()[0] for note in view.notes] == ["on_finish", "Secrets", "Paths"]
    assert "on_finish" not in view.sweep_yaml
    assert repeat(run_of([])).notes == ()


def test_many_groups_are_bounded() -> None:
    groups = [
        {"group_id": str(n), "argv": ["x"], "exit_signal": "SIGKILL"} for n in range(MAX_GROUPS + 3)
    ]
    view = repeat(run_of([], groups=groups))
    assert len(view.calls) == MAX_GROUPS
    assert view.n_left_out == 3
    assert view.calls[0].outcome == "ended by SIGKILL"


def test_hashes_of_all_builds_and_models_are_told_or_said_to_be_missing() -> None:
    view = repeat(
        run_of(
            [
                measured(1, [1.0], build_number=11434, build_commit="abc"),
                lost(2, model_hash=None, model_file=None),
            ]
        )
    )
    assert ("build", "11434 (number 11434, commit abc)", "b" * 32) in view.hashes
    assert ("build", "11434 (the binary tells no number and no commit)", "b" * 32) in view.hashes
    assert ("model", "tiny-llama-Q4_0", "no hash: the file could not be read") in view.hashes
    assert HOSTILE not in str(repeat(hostile_run()))
