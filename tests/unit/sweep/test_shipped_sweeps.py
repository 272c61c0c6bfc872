"""Each sweep that is shipped loads, plans, and says what a user may edit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sweep.subjects_made import build, model

from llamasweep.sweep.matrix import expand
from llamasweep.sweep.plan import make_plan
from llamasweep.sweep.predict import Rates
from llamasweep.sweep_file import load

SWEEPS = sorted((Path(__file__).parents[3] / "sweeps").glob("*.yaml"))
WORDS = {"physical": 2, "logical": 2, "performance": 2, "half": 1}


def test_the_promised_sweeps_are_there() -> None:
    assert {path.stem for path in SWEEPS} >= {
        "quick",
        "overnight",
        "threads",
        "kv-cache",
        "batch",
        "builds",
    }


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_a_shipped_sweep_loads_and_has_cells_and_comments(path: Path) -> None:
    spec = load(path)
    one = model()

    blocks = expand(spec, [one.source], WORDS)
    plan = make_plan(
        spec,
        blocks,
        models={one.source: one},
        builds=[build(label) for label in spec.builds or ("one",)],
        restrictions=lambda _block, _model, _build: [],
        rates=Rates(),
    )

    assert plan.n_cells > 0
    assert spec.name == path.stem
    assert path.read_text().count("#") >= 5
    assert "llamasweep run" in path.read_text()


def test_quick_needs_no_download_and_has_the_axes_that_it_promises() -> None:
    spec = load(next(path for path in SWEEPS if path.stem == "quick"))

    assert all(entry.synth for entry in spec.models)
    assert [len(entry.quants) for entry in spec.models] == [2]
    assert {name for name, _ in spec.axes} == {"n_threads", "n_depth"}


def test_builds_takes_turns() -> None:
    spec = load(next(path for path in SWEEPS if path.stem == "builds"))

    assert spec.order == "interleaved"
    assert len(spec.builds) == 2


def test_the_warm_prompt_of_the_server_sweep_stands_beside_a_new_one() -> None:
    spec = load(next(path for path in SWEEPS if path.stem == "server-concurrency"))
    one = model()

    blocks = expand(spec, [one.source], WORDS)

    asked = {
        (cell.get("concurrency"), cell.get("prompt_cache"))
        for block in blocks
        for cell in block.cells()
        if cell.test.label == "pp512"
    }
    assert asked == {(1, "cold"), (1, "warm"), (2, None), (4, None), (8, None)}
