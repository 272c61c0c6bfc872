"""llama-bench on the very file that Ollama serves, with the settings that Ollama applied: what the kernels alone make of it.

It runs before Ollama's own cells, with the model unloaded, so that neither takes memory or cores from the other.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from llamasweep.engines.base import CallOptions
from llamasweep.engines.llama_bench import LlamaBench
from llamasweep.engines.llama_bench_output import parse_row
from llamasweep.engines.ollama import LEAST_PROMPT_TOKENS
from llamasweep.run.process import clean_environment
from llamasweep.sweep.cell import Block, Cell, Group, Test, ordered_axes
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, Model, ModelSource

COPIED = ("n_threads", "n_batch", "n_ubatch", "type_k", "type_v", "n_gpu_layers", "main_gpu")
"""Settings that mean the same to both programs. The window does not: llama-bench makes one as long as its test."""
FAILED = "no_same_weights"
"""Flag of a row beside which llama-bench could not be run."""
_FLASH_WORDS = {1: "on", 0: "off"}
_NOT_SETTINGS = ("-m", "-o", "-r", "-v", "--progress")
_LONGEST_TEXT = 200

Sign = Callable[[], object]


def axes_of(cell: Cell, applied: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """What llama-bench is told: as Ollama applied it, else as the cell asked; the same tokens in the cache before.

    applied: flash_attn as 1 (on) and 0 (off), the rest by canonical name.
    """
    axes: dict[str, Scalar] = {}
    for name in COPIED:
        value = applied.get(name, cell.get(name))
        if value is not None and value != -1:
            axes[name] = value
    said = applied.get("flash_attn")
    flash_attn = _FLASH_WORDS.get(said) if isinstance(said, int) else cell.get("flash_attn")
    if flash_attn in ("on", "off"):
        axes["flash_attn"] = str(flash_attn)
    if cell.test.kind == "tg":
        axes["n_depth"] = max(cell.n_depth, LEAST_PROMPT_TOKENS)
    return axes


def bench_argv(
    bench: Build, file: str, test: Test, axes: Mapping[str, Scalar], n_reps: int
) -> tuple[str, ...]:
    """The call for one test. axes: by canonical name; those that this build cannot say are left out."""
    engine = LlamaBench()
    source = ModelSource(label="same weights", path=file)
    model = Model(source=source, content_hash=None, facts=None)
    known: dict[str, tuple[Scalar, ...]] = {name: (value,) for name, value in axes.items()}
    block = Block(model=source, axes=ordered_axes(known), tests=(test,))
    for refused in engine.restrictions(block, model, bench):
        for name in refused.where:
            known.pop(name, None)
    group = Group(
        build=bench, model=model, block=Block(model=source, axes=ordered_axes(known), tests=(test,))
    )
    return engine.describe(group, CallOptions(model_path=file, n_reps=n_reps)).argv


def run_bench(
    bench: Build, argv: Sequence[str], test: Test, folder: Path, sign: Sign
) -> dict[str, Any] | None:
    """Columns of the row; None where llama-bench gave no row. sign: called for each repetition that it begins."""
    rows = folder / "same-weights.jsonl"
    with (
        rows.open("wb") as stdout,
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=clean_environment((("GGML_NO_BACKTRACE", "1"),)),
            cwd=folder,
        ) as process,
    ):
        assert process.stderr is not None  # noqa: S101  (a pipe was asked for)
        for line in process.stderr:
            if b" run " in line:
                sign()
    rates = list(_rates(rows, test))
    if process.returncode != 0 or not rates:
        return None
    return {
        "same_weights_tps": median(rates),
        "same_weights_min_tps": min(rates),
        "same_weights_max_tps": max(rates),
        "same_weights_build": bench.label,
        "same_weights_settings": " ".join(_settings(argv))[:_LONGEST_TEXT],
    }


def _rates(file: Path, test: Test) -> Iterator[float]:
    for line in file.read_bytes().splitlines():
        row = parse_row(line.strip())
        if row is not None and (row["n_prompt"], row["n_gen"]) == (test.n_prompt, test.n_gen):
            yield from ((test.n_prompt + test.n_gen) * 1e9 / ns for ns in row["samples_ns"])


def _settings(argv: Sequence[str]) -> Iterator[str]:
    """The words of a call without program, model and what concerns its output."""
    for word, value in zip(argv, [*argv[1:], "-"], strict=True):
        if word.startswith("-") and word not in _NOT_SETTINGS:
            yield word if value.startswith("-") else f"{word} {value}"
