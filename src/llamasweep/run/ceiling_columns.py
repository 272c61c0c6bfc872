"""The ceiling of a cell, made before it is measured and kept in the group's log; the row gets its share of it afterwards.

The arithmetic is `ceilings.cell`'s; here are only the cell's axes with the engine's defaults, and the doubts that a share raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamasweep.ceilings.assumptions import Bandwidth, Basis, Peak
from llamasweep.ceilings.cell import cell_ceiling
from llamasweep.ceilings.prefill import NO_PEAK
from llamasweep.engines.known import engine_named
from llamasweep.gguf.facts import ModelFacts
from llamasweep.results.ceiling_checks import SUSPICIOUS_BELOW
from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.sweep.cell import Cell, TestKind
from llamasweep.sweep.subjects import Build

NO_BANDWIDTH = (
    "the bandwidth of the memory that holds the weights is not known; give `bandwidth` in the sweep"
)
NO_PEAK_HERE = f"{NO_PEAK}; `llamasweep calibrate` measures one, or give `compute` in the sweep"
SEVERAL_STREAMS = (
    "a ceiling of several streams is not made for a row; `llamasweep ceiling --streams` tells it"
)
WARM_PROMPT = "a prompt that was read before has no ceiling"
LATER_TURN = (
    "a later turn of a conversation has no ceiling: its prompt is longer than the test says"
)
_DEFAULT_N_BATCH, _DEFAULT_N_UBATCH = 2048, 512
_BASIS_OF: dict[str, Basis] = {
    "measured": "measured",
    "calibrated": "measured",
    "specification": "spec",
}
_CARRIED = (
    "pencil_ceiling_tps",
    "ceiling_tps",
    "bytes_per_token",
    "flop_per_token",
    "arithmetic_intensity",
)


def describe_ceiling(
    cell: Cell,
    facts: ModelFacts,
    build: Build,
    *,
    bandwidth_bytes_per_s: float | None,
    bandwidth_source: str | None,
    peak: Peak | None = None,
    peak_source: str | None = None,
) -> dict[str, Any]:
    """What the log keeps: figures, or the reason why there are none. Plain JSON values.

    A peak that is only a reference says nothing about generation, which needs so little compute; it is left out there.
    """
    if bandwidth_bytes_per_s is None:
        return {"reason": NO_BANDWIDTH}
    if (cell.get("concurrency") or 1) != 1:
        return {"reason": SEVERAL_STREAMS}
    turn = cell.get("turn")
    if turn is not None and turn != 1:
        return {"reason": LATER_TURN}
    if cell.get("prompt_cache") == "warm" and turn is None:  # nothing is cached at a first turn
        return {"reason": WARM_PROMPT}
    is_prompt = cell.test.n_prompt > 0
    used = peak if peak is not None and (is_prompt or not peak.is_reference) else None
    flash_attn = cell.get("flash_attn")
    if flash_attn is None:
        flash_attn = engine_named(cell.engine).default_flash_attn(build)
    ceiling = cell_ceiling(
        facts,
        n_prompt=cell.test.n_prompt,
        n_gen=cell.test.n_gen,
        n_depth=cell.n_depth,
        n_batch=_count(cell, "n_batch", _DEFAULT_N_BATCH),
        n_ubatch=_count(cell, "n_ubatch", _DEFAULT_N_UBATCH),
        type_k=str(cell.get("type_k") or "f16"),
        type_v=str(cell.get("type_v") or "f16"),
        flash_attn=str(flash_attn),
        bandwidth_bytes_per_s=Bandwidth(
            bytes_per_s=bandwidth_bytes_per_s, basis=_basis(bandwidth_source)
        ),
        peak_flop_per_s=used,
    )
    return {
        "ceiling_bandwidth_bytes_per_s": bandwidth_bytes_per_s,
        "ceiling_bandwidth_source": bandwidth_source,
        "ceiling_peak_flop_per_s": None if used is None else used.flop_per_s,
        "ceiling_peak_source": None if used is None else peak_source,
        "ceiling_is_reference": ceiling.is_reference if ceiling.ceiling_tps is not None else None,
        **{name: getattr(ceiling, name) for name in _CARRIED},
        "ceiling_bound": ceiling.bound if ceiling.ceiling_tps is not None else None,
        "ceiling_assumptions": [assumption.text for assumption in ceiling.assumptions],
        "reason": NO_PEAK_HERE if ceiling.reason == NO_PEAK else ceiling.reason,
        "peak_reason": None if used is not None else _no_peak_reason(is_prompt=is_prompt),
    }


def _no_peak_reason(*, is_prompt: bool) -> str:
    return NO_PEAK_HERE if is_prompt else "none was used: generation is held against the memory"


def _basis(bandwidth_source: str | None) -> Basis:
    """As the sentence begins that tells the source."""
    known = (beginning for beginning in _BASIS_OF if (bandwidth_source or "").startswith(beginning))
    return _BASIS_OF.get(next(known, ""), "given")


def _count(cell: Cell, name: str, default: int) -> int:
    value = cell.get(name)
    return default if value is None else int(value)


def ceiling_columns(
    kept: Mapping[str, Any], kind: TestKind, median_tps: float | None
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Columns of the row, reasons for what is None, and flags. kept: what `describe_ceiling` gave, {} in old logs.

    A share of a ceiling that rests on a reference is no reason to doubt the row, high or low: no flag.
    """
    columns = {name: value for name, value in kept.items() if not name.endswith("reason")}
    columns["ceiling_assumptions"] = tuple(kept.get("ceiling_assumptions", ()))
    columns["pencil_fraction"] = _share(median_tps, kept.get("pencil_ceiling_tps"))
    columns["ceiling_fraction"] = _share(median_tps, kept.get("ceiling_tps"))
    if median_tps is not None:
        if kind == "tg" and kept.get("bytes_per_token"):
            columns["achieved_bytes_per_s"] = median_tps * kept["bytes_per_token"]
        if kind == "pp" and kept.get("flop_per_token"):
            columns["achieved_flop_per_s"] = median_tps * kept["flop_per_token"]
    reasons = {}
    if kept.get("reason"):
        missing = [name for name in ("ceiling_tps", "pencil_ceiling_tps") if kept.get(name) is None]
        reasons = dict.fromkeys(missing, str(kept["reason"]))
    if kept.get("peak_reason"):
        reasons["ceiling_peak_flop_per_s"] = str(kept["peak_reason"])
    if kept.get("predicted_reason"):
        reasons["predicted_ram_bytes"] = str(kept["predicted_reason"])
    if kept.get("ceiling_is_reference"):
        return columns, reasons, []
    return columns, reasons, _flags(columns["ceiling_fraction"])


def _share(median_tps: float | None, ceiling_tps: float | None) -> float | None:
    return None if median_tps is None or not ceiling_tps else median_tps / ceiling_tps


def _flags(fraction: float | None) -> list[str]:
    if fraction is None:
        return []
    if fraction > BROKEN_ABOVE:
        return ["above_ceiling"]
    return ["far_below_ceiling"] if fraction < SUSPICIOUS_BELOW else []
