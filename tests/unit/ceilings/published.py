"""Published decode rates of dense models on one device, and the ceiling of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tests.unit.ceilings.reference import quantised, rows

from llamasweep.ceilings.assumptions import Bandwidth
from llamasweep.ceilings.decode import decode_ceiling, fraction_of, pencil_tps
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.ggml_types import FILE_TYPES

SHAPES = {
    "llama 7B": "Llama-2-7B",
    "llama 8B": "Llama-3.1-8B",
    "llama 1B": "Llama-3.2-1B",
    "gemma4 31B": "Gemma-4-31B",
    "qwen3 32B": "Qwen3-32B",
    "qwen35 27B": "Qwen3.5-27B",
}
"""What llama-bench calls a model -> its reference shape, where there is one."""

QUANTS = {
    name: entry.short_name
    for entry in FILE_TYPES
    for name in (entry.llama_bench_name, entry.short_name)
}


@cache
def model_of(model: str, quant: str) -> ModelFacts | None:
    """The model behind a row, None where no reference shape is known."""
    if model not in SHAPES or quant not in QUANTS:
        return None
    return quantised(SHAPES[model], QUANTS[quant])


def is_same_file(row: dict[str, str], facts: ModelFacts) -> bool:
    """Whether the published file is of this shape and mixture: equal in size to 1 %."""
    return abs(facts.size_bytes / 1e9 / float(row["weights_GB"]) - 1) < 0.01


def ceiling_of(row: dict[str, str]) -> tuple[float, bool]:
    """Ceiling and whether it is exact; else that of the whole file, which is lower."""
    bandwidth = Bandwidth(bytes_per_s=float(row["mem_bandwidth_GBps"]) * 1e9, basis="spec")
    facts = model_of(row["model"], row["quant"])
    if facts is None or not is_same_file(row, facts):
        return pencil_tps(float(row["weights_GB"]) * 1e9, bandwidth), False
    n_gen, n_depth = int(row["test"].removeprefix("tg")), int(row["depth"])
    settings = ContextSettings(n_ctx=n_depth + n_gen)
    exact = decode_ceiling(facts, settings, n_depth=n_depth, n_gen=n_gen, bandwidth=bandwidth)
    return exact.ceiling_tps, True


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """One row. is_exact: the ceiling is of this very file, else of the whole file's bytes, which is lower."""

    row: dict[str, str]
    ceiling_tps: float
    is_exact: bool

    @property
    def share(self) -> float:
        """Of the ceiling."""
        return fraction_of(float(self.row["tokens_per_s"]), self.ceiling_tps)

    @property
    def is_shallow(self) -> bool:
        """Whether the run starts behind 512 tokens at most."""
        return int(self.row["depth"]) <= 512


@cache
def published() -> tuple[Published, ...]:
    """Every row of the table."""
    found = []
    for row in rows("ceiling_check.csv"):
        ceiling_tps, is_exact = ceiling_of(row)
        found.append(Published(row=row, ceiling_tps=ceiling_tps, is_exact=is_exact))
    return tuple(found)
