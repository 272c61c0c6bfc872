"""Context, state and compute buffers that the real program allocates, against the arithmetic, on six architectures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.e2e.engines import find_program, run_program

from llamasweep.ceilings.kv_cache import ContextSettings, context_memory
from llamasweep.ceilings.memory_fit import compute_bytes_upper
from llamasweep.ceilings.placement import PlacementSettings, place
from llamasweep.gguf.header import read_model
from llamasweep.gguf.writer import write_model

pytestmark = pytest.mark.needs_llama

BUILD = "11434"
SHAPES = (
    "tiny-llama", "tiny-qwen3", "tiny-qwen3moe", "tiny-gemma3", "tiny-qwen3next", "tiny-granitehybrid",
)  # fmt: skip
SETTINGS = (
    (0, 512, True, "f16", "f16"),
    (600, 256, True, "f16", "f16"),
    (600, 256, False, "f16", "f16"),
    (1100, 128, True, "q8_0", "q4_0"),
    (300, 1024, True, "bf16", "f16"),
)
MIB = 2**20
KEPT = re.compile(r"^llama_(?:kv_cache|memory_recurrent): size = +([\d.]+) MiB", re.MULTILINE)
CELLS = re.compile(r"^llama_kv_cache: size = .*?\( *(\d+) cells", re.MULTILINE)
COMPUTE = re.compile(r"^sched_reserve: +CPU compute buffer size = +([\d.]+) MiB", re.MULTILINE)
SPLITS = re.compile(r"^sched_reserve: graph: .*splits = (\d+)", re.MULTILINE)


def _log(model: Path, n_depth: int, n_ubatch: int, flash_attn: bool, k: str, v: str) -> str:
    """What llama-bench says with -v while it makes the context of tg4 at a depth."""
    program = find_program(BUILD, "llama-bench")
    test = ["-p", "0", "-n", "4", "-d", str(n_depth), "-r", "1", "-t", "2", "--no-warmup"]
    how = ["-ub", str(n_ubatch), "-fa", str(int(flash_attn)), "-ctk", k, "-ctv", v, "-v"]
    done = run_program([str(program), "-m", str(model), *test, *how])
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    made = {shape: folder / f"{shape}.gguf" for shape in SHAPES}
    for shape, path in made.items():
        write_model(shape, "Q4_0", path)
    return made


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n_depth", "n_ubatch", "flash_attn", "k", "v"), SETTINGS)
def test_buffers_are_those_that_the_arithmetic_says(
    models: dict[str, Path],
    shape: str,
    n_depth: int,
    n_ubatch: int,
    flash_attn: bool,
    k: str,
    v: str,
) -> None:
    log = _log(models[shape], n_depth, n_ubatch, flash_attn, k, v)

    facts = read_model(models[shape])
    settings = ContextSettings(
        n_ctx=n_depth + 4, n_ubatch=n_ubatch, type_k=k, type_v=v, flash_attn=flash_attn
    )
    memory = context_memory(facts, settings)
    kept = [float(size) for size in KEPT.findall(log)]
    assert memory.stored_bytes / MIB == pytest.approx(sum(kept), abs=0.006 * len(kept))
    cells = {settings.cells_per_sequence} | ({memory.swa_cells} - {None})
    assert {int(n) for n in CELLS.findall(log)} == cells
    (compute,) = COMPUTE.findall(log)
    assert float(compute) <= compute_bytes_upper(facts, settings) / MIB <= 2.5 * float(compute)
    (splits,) = SPLITS.findall(log)
    assert place(facts, settings, PlacementSettings(tensor_split=())).graph_splits == int(splits)
