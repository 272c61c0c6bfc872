from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import write_model
from tests.unit.engines.made import build as known_build
from tests.unit.run.test_resolve import Shelf
from tests.unit.store.records import attempt
from tests.unit.sweep.subjects_made import model

from llamasweep.errors import UsageError
from llamasweep.machine.facts import read_facts
from llamasweep.run.prepare import Prepared, Wishes, as_measured, parse_only, prepare
from llamasweep.sweep.cell import Test
from llamasweep.sweep.parameters import CANONICAL
from llamasweep.sweep.spec import ModelEntry, SweepSpec

FACTS = read_facts()


def prepared(path: Path, *only: str, **wishes: Any) -> Prepared:
    spec = SweepSpec(
        name="s",
        models=(ModelEntry(path=str(path), label="123"),),
        tests=(Test(n_prompt=8, n_gen=0), Test(n_prompt=0, n_gen=4)),
        axes=(
            ("n_batch", (256, 512)),
            ("no_kv_offload", (False, True)),
            ("flash_attn", ("on", "off")),
        ),
        seed=5,
    )
    return prepare(
        spec,
        wishes=Wishes(only=parse_only(only, CANONICAL), **wishes),
        registry=Shelf(known_build(label="11434")),
        facts=FACTS,
        generate=False,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_model(tmp_path / "tiny.gguf")


def test_a_sweep_is_planned_whole(path: Path) -> None:
    found = prepared(path)
    assert found.plan.n_cells == 16
    assert found.spec.seed == 5
    assert [b.label for b in found.subjects.builds] == ["11434"]


@pytest.mark.parametrize(
    ("only", "n_cells"),
    [
        (("n_batch=256",), 8),
        (("batch=256",), 8),
        (("b=256", "b=512"), 16),
        (("b=256", "test=pp8"), 4),
        (("b=256", "b=512", "b=999"), 16),
        (("b=128-256*2",), 8),
        (("b=999",), 0),
        (("no_kv_offload=true",), 8),
        (("nkvo=1",), 8),
        (("nkvo=false",), 8),
        (("flash_attn=on",), 8),
        (("n_gen=4",), 8),
        (("model=123",), 16),
        (("model=12*",), 16),
        (("model=tiny",), 0),
        (("quant=F16",), 16),
        (("build=11434",), 16),
        (("build=b1",), 0),
    ],
)
def test_only_narrows_the_sweep(path: Path, only: tuple[str, ...], n_cells: int) -> None:
    found = prepared(path, *only)
    assert found.plan.n_cells + found.plan.n_unsupported == n_cells


def test_a_seed_of_the_command_line_rules(path: Path) -> None:
    assert prepared(path, seed=9).spec.seed == 9
    assert prepared(path, seed=0).spec.seed == 0


@pytest.mark.parametrize(
    "word",
    [
        "batch",
        "=256",
        "colour=red",
        "batch:256",
        "",
        "nkvo=maybe",
        "n_gen=many",
        "batch=many",
        "test=512",
    ],
)
def test_a_wish_that_says_nothing_is_refused(word: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_only([word], CANONICAL)
    assert repr(word) in refused.value.message
    assert refused.value.hint


def test_wishes_are_read_in_any_spelling() -> None:
    assert parse_only(["ngl=99", "t=physical", "model=a=b"], CANONICAL) == (
        ("n_gpu_layers", "99"),
        ("n_threads", "physical"),
        ("model", "a=b"),
    )


def test_rows_of_models_that_are_here_make_predictions() -> None:
    here = model("here")
    good = attempt(model_hash=here.content_hash, median_tps=50.0)
    rows = [
        good,
        replace(good, median_tps=None),
        replace(good, model_hash="9" * 32),
        replace(good, model_hash=None),
        replace(good, requested={}),
        replace(good, requested={"concurrency": 8}),
        replace(good, requested={"prompt_cache": "warm"}),
        replace(good, requested={"turn": 2}),
    ]
    found = as_measured(rows, [here, replace(here, content_hash=None)])
    assert [(m.model, m.kind, m.tps, m.n_threads) for m in found] == [
        (here, "pp", 50.0, 2),
        (here, "pp", 50.0, None),
    ]
