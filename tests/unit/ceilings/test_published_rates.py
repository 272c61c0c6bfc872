"""Published decode rates of dense models on one device against their exact ceilings.

No rate may pass its ceiling: bandwidths are the makers', so that 1.02 leaves room for rounding only.
"""

from __future__ import annotations

import statistics
from functools import cache

import pytest
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


CHECKED = [(row, *ceiling_of(row)) for row in rows("ceiling_check.csv")]


def test_the_table_is_whole_and_most_rows_are_exact() -> None:
    assert len(CHECKED) == 353
    assert sum(is_exact for _, _, is_exact in CHECKED) >= 275


def test_no_published_rate_passes_its_ceiling() -> None:
    above = [
        (row["device"], row["model"], row["quant"], row["tokens_per_s"], ceiling)
        for row, ceiling, _ in CHECKED
        if fraction_of(float(row["tokens_per_s"]), ceiling) > 1.02
    ]
    assert not above


def test_rates_pass_the_pencil_ceiling_where_the_embedding_is_a_lookup() -> None:
    above = {
        (row["device"], row["quant"])
        for row, _, _ in CHECKED
        if float(row["pct_weights_only"]) > 102
    }
    assert above == {("Ryzen 9 7950X (CPU)", "BF16"), ("Ryzen 9 7950X (CPU)", "Q6_K")}


@pytest.mark.parametrize(
    ("family", "low", "high"),
    [("NVIDIA GPU", 0.6, 0.9), ("AMD APU", 0.7, 0.85), ("Apple", 0.6, 0.85)],
)
def test_shares_by_family_are_what_people_see(family: str, low: float, high: float) -> None:
    shares = [
        fraction_of(float(row["tokens_per_s"]), ceiling)
        for row, ceiling, is_exact in CHECKED
        if row["family"] == family and is_exact and int(row["depth"]) <= 512
    ]
    assert len(shares) >= 30
    assert low < statistics.median(shares) < high
