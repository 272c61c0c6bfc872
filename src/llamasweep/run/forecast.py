"""What a group is expected to take and how fast it should be, before it runs. Rates are those of the predicted time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from llamasweep.run.predicted_memory import predicted_memory
from llamasweep.sweep.blocks import values_of
from llamasweep.sweep.cell import Block, Group, Test
from llamasweep.sweep.predict import Rates

Span = tuple[float, float]

_SET_PLACES = (
    "type_k",
    "type_v",
    "flash_attn",
    "n_gpu_layers",
    "n_cpu_moe",
    "devices",
    "no_kv_offload",
)
"""What changes the memory of a cell beside its length and its batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """Of one group. pp_tps, tg_tps: of one stream, least and most over depths and threads; None where the group has no such test
    or nothing is known of the model. ram_bytes, vram_bytes: of the cell that takes most; None with the reason."""

    pp_tps: Span | None
    tg_tps: Span | None
    ram_bytes: int | None
    vram_bytes: int | None
    memory_reason: str | None


def forecast(group: Group, rates: Rates) -> Forecast:
    """Never raises for a model: what is not known is None."""
    told = _most_memory(group)
    kinds = {test.kind for test in group.block.tests}
    has_facts = group.model.facts is not None
    return Forecast(
        pp_tps=_span(group, rates, "pp") if has_facts and kinds & {"pp", "pg"} else None,
        tg_tps=_span(group, rates, "tg") if has_facts and kinds & {"tg", "pg"} else None,
        ram_bytes=told.get("predicted_ram_bytes"),
        vram_bytes=told.get("predicted_vram_bytes"),
        memory_reason=told.get("predicted_reason"),
    )


def _span(group: Group, rates: Rates, kind: str) -> Span:
    found = [
        rates.rate(group.model, kind, n_depth, n_threads).tps
        for n_depth in values_of(group.block, "n_depth") or (0,)
        for n_threads in values_of(group.block, "n_threads") or (None,)
    ]
    return min(found), max(found)


def _most_memory(group: Group) -> dict[str, Any]:
    """The longest test at the greatest depth and batch, over all that else changes the memory."""
    if group.model.facts is None:
        return {"predicted_reason": "the file of the model is not known"}
    facts, build = group.model.facts, group.build
    told = [predicted_memory(cell, facts, build) for cell in _largest(group.block).cells()]
    reason = next((one for one in told if "predicted_reason" in one), None)
    return reason or max(told, key=lambda one: int(one["predicted_ram_bytes"]))


def _largest(block: Block) -> Block:
    """The block with the cells alone that can take most."""

    def length(test: Test) -> int:
        return test.n_prompt + test.n_gen

    def kept(name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if name in ("n_depth", "n_ubatch"):
            return (max(values),)
        return values if name in _SET_PLACES else values[:1]

    axes = tuple((name, kept(name, values)) for name, values in block.axes)
    return replace(block, axes=axes, tests=(max(block.tests, key=length),))
