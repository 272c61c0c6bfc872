"""What a group should take and how fast it should be, before it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.models import write_model
from tests.unit.run.builds_made import CPU_BUILD, GPU_BUILD

from llamasweep.gguf.header import read_model
from llamasweep.run.forecast import forecast
from llamasweep.run.predicted_memory import LEFT_TO_ENGINE, predicted_memory
from llamasweep.sweep.cell import Block, Group, Test, ordered_axes
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.predict import RateKey, Rates
from llamasweep.sweep.subjects import Model, ModelSource

PP, TG = Test(n_prompt=128, n_gen=0), Test(n_prompt=0, n_gen=32)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    facts = read_model(write_model(tmp_path / "m.gguf"))
    return Model(source=ModelSource(label="m"), content_hash="m", facts=facts)


def group(model: Model, *tests: Test, **axes: tuple[Scalar, ...]) -> Group:
    block = Block(model=model.source, axes=ordered_axes(axes), tests=tests)
    return Group(build=CPU_BUILD, model=model, block=block)


def test_rates_are_those_of_the_predicted_time_over_depths_and_threads(model: Model) -> None:
    rates = Rates(
        history={
            RateKey(model_identity="m", kind="tg", n_depth=0, n_threads=n): 10.0 * n for n in (1, 4)
        }
    )
    expected = forecast(group(model, TG, n_depth=(0,), n_threads=(1, 4)), rates)
    assert expected.tg_tps == (10.0, 40.0)
    assert expected.pp_tps is None


def test_a_known_compute_rate_makes_faster_prompts_and_says_so(model: Model) -> None:
    slow, fast = (
        forecast(group(model, PP), Rates(flop_per_s=flop)).pp_tps for flop in (100e9, 300e9)
    )
    assert slow is not None
    assert fast is not None
    assert fast[0] == pytest.approx(3 * slow[0])
    assert "which is a guess" not in Rates(flop_per_s=100e9).rate(model, "pp", 0, None).basis
    assert "which is a guess" in Rates().rate(model, "pp", 0, None).basis


def test_memory_is_that_of_the_cell_that_takes_most(model: Model) -> None:
    asked = group(model, PP, TG, n_depth=(0, 512), type_k=("f32", "f16"), n_threads=(1, 2))
    assert model.facts is not None
    every = [
        predicted_memory(cell, model.facts, CPU_BUILD)["predicted_ram_bytes"]
        for cell in asked.block.cells()
    ]
    assert forecast(asked, Rates()).ram_bytes == max(every) > min(every)


def test_what_is_not_known_is_none_with_its_reason(model: Model) -> None:
    left_open = forecast(replace(group(model, TG), build=GPU_BUILD), Rates())
    assert (left_open.ram_bytes, left_open.memory_reason) == (None, LEFT_TO_ENGINE)

    unknown = forecast(group(replace(model, facts=None), PP, TG), Rates())
    assert (unknown.pp_tps, unknown.tg_tps, unknown.ram_bytes) == (None, None, None)
    assert unknown.memory_reason == "the file of the model is not known"
