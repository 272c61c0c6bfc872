"""What a cell should take: weights, context and compute bound where placement is known, else the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.models import write_model
from tests.unit.run.builds_made import CPU_BUILD, GPU_BUILD

from llamasweep.ceilings.kv_cache import ContextSettings, context_memory
from llamasweep.ceilings.memory_fit import compute_bytes_upper
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.header import read_model
from llamasweep.run.ceiling_columns import ceiling_columns
from llamasweep.run.predicted_memory import LEFT_TO_ENGINE, OTHER_ENGINE, predicted_memory
from llamasweep.sweep.cell import Cell, Test
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import ModelSource

TEST = Test(n_prompt=0, n_gen=32)


@pytest.fixture
def facts(tmp_path: Path) -> ModelFacts:
    return read_model(write_model(tmp_path / "m.gguf"))


def _cell(**params: Scalar) -> Cell:
    return Cell(model=ModelSource(label="m"), test=TEST, params=tuple(params.items()))


def test_on_the_processor_it_is_weights_context_and_the_bound_of_the_buffer(
    facts: ModelFacts,
) -> None:
    told = predicted_memory(_cell(n_depth=96, n_ubatch=64), facts, CPU_BUILD)
    settings = ContextSettings(n_ctx=128, n_ubatch=64)
    weights = sum(use.tensor.n_bytes for use in weight_traffic(facts).uses)
    context = context_memory(facts, settings).stored_bytes
    assert told["predicted_ram_bytes"] == weights + context + compute_bytes_upper(facts, settings)
    assert told["predicted_vram_bytes"] is None


def test_more_context_takes_more(facts: ModelFacts) -> None:
    small = predicted_memory(_cell(n_depth=0), facts, CPU_BUILD)
    large = predicted_memory(_cell(n_depth=4096), facts, CPU_BUILD)
    assert large["predicted_ram_bytes"] > small["predicted_ram_bytes"]


def test_layers_on_one_gpu_move_memory_there(facts: ModelFacts) -> None:
    told = predicted_memory(_cell(n_gpu_layers=99), facts, GPU_BUILD)
    assert told["predicted_vram_bytes"] > told["predicted_ram_bytes"]
    none = predicted_memory(_cell(n_gpu_layers=0), facts, GPU_BUILD)
    assert none["predicted_vram_bytes"] is None


def test_a_placement_that_the_engine_chooses_is_not_predicted(facts: ModelFacts) -> None:
    assert predicted_memory(_cell(), facts, GPU_BUILD) == {"predicted_reason": LEFT_TO_ENGINE}
    two = replace(GPU_BUILD, devices=("CUDA0", "CUDA1"))
    assert predicted_memory(_cell(n_gpu_layers=99), facts, two) == {
        "predicted_reason": LEFT_TO_ENGINE
    }
    served = replace(_cell(), engine="llama-server")
    assert predicted_memory(served, facts, CPU_BUILD) == {"predicted_reason": OTHER_ENGINE}


def test_columns_and_reasons_of_the_row_come_from_what_the_log_kept() -> None:
    columns, reasons, _ = ceiling_columns({"predicted_ram_bytes": 5}, "tg", None)
    assert columns["predicted_ram_bytes"] == 5
    columns, reasons, _ = ceiling_columns({"predicted_reason": "no"}, "tg", None)
    assert "predicted_reason" not in columns
    assert reasons["predicted_ram_bytes"] == "no"
