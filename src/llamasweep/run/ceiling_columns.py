"""The ceiling of a cell, made before it is measured and kept in the group's log; the row gets its share of it afterwards.

The arithmetic is `ceilings.cell`'s; here are only the cell's axes with the engine's defaults, and the doubts that a share raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamasweep.ceilings.assumptions import Bandwidth, Basis, Peak
from llamasweep.ceilings.cell import CellCeiling, cell_ceiling
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.prefill import NO_PEAK
from llamasweep.ceilings.stream_cell import stream_cell_ceiling
from llamasweep.engines.known import engine_named
from llamasweep.engines.llama_batched_bench import BATCHED_BENCH
from llamasweep.gguf.facts import ModelFacts
from llamasweep.results.ceiling_checks import SUSPICIOUS_BELOW
from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.results.request_load import request_load
from llamasweep.sweep.cell import Cell, TestKind
from llamasweep.sweep.subjects import Build

NO_BANDWIDTH = (
    "the bandwidth of the memory that holds the weights is not known; give `bandwidth` in the sweep"
)
NO_PEAK_HERE = f"{NO_PEAK}; `llamasweep calibrate` measures one, or give `compute` in the sweep"
PENCIL_IS_OF_ONE = "people compute it for one stream"
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
_TOLD_REASONS = {
    "estimate_reason": "estimate_tps",
    "peak_reason": "ceiling_peak_flop_per_s",
    "predicted_reason": "predicted_ram_bytes",
}
_CARRIED = (
    "pencil_ceiling_tps",
    "ceiling_tps",
    "estimate_tps",
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

    A peak that is only a reference says nothing about generation by one stream, which needs little compute; it is left out.
    """
    if bandwidth_bytes_per_s is None:
        return {"reason": NO_BANDWIDTH}
    turn = cell.get("turn")
    if turn is not None and turn != 1:
        return {"reason": LATER_TURN}
    if cell.get("prompt_cache") == "warm" and turn is None:  # nothing is cached at a first turn
        return {"reason": WARM_PROMPT}
    n_streams = request_load(dict(cell.params)).n_streams
    is_prompt = cell.test.n_prompt > 0
    needs_compute = is_prompt or n_streams > 1
    used = peak if peak is not None and (needs_compute or not peak.is_reference) else None
    bandwidth = Bandwidth(bytes_per_s=bandwidth_bytes_per_s, basis=_basis(bandwidth_source))
    ceiling = _ceiling(cell, facts, build, n_streams, bandwidth, used)
    several = {"estimate_reason": ceiling.estimate_reason} if n_streams > 1 else {}
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
        "peak_reason": None if used is not None else _no_peak_reason(needs_compute=needs_compute),
        **several,
    }


def _ceiling(
    cell: Cell,
    facts: ModelFacts,
    build: Build,
    n_streams: int,
    bandwidth: Bandwidth,
    peak: Peak | None,
) -> CellCeiling:
    """Of one stream, or of several together."""
    flash_attn = cell.get("flash_attn")
    if flash_attn is None:
        flash_attn = engine_named(cell.engine).default_flash_attn(build)
    test, n_depth = cell.test, cell.n_depth
    n_batch = _count(cell, "n_batch", _DEFAULT_N_BATCH)
    n_ubatch = _count(cell, "n_ubatch", _DEFAULT_N_UBATCH)
    type_k, type_v = str(cell.get("type_k") or "f16"), str(cell.get("type_v") or "f16")
    if n_streams > 1:
        settings = ContextSettings(
            n_ctx=test.n_prompt + test.n_gen + n_depth,
            n_ubatch=min(n_ubatch, n_batch),
            type_k=type_k,
            type_v=type_v,
            flash_attn=flash_attn not in (False, "off"),
        )
        return stream_cell_ceiling(
            facts,
            settings,
            n_streams=n_streams,
            lengths=(test.n_prompt, test.n_gen, n_depth),
            n_batch=n_batch,
            bandwidth=bandwidth,
            peak=peak,
            is_overlapping=cell.engine != BATCHED_BENCH,
        )
    return cell_ceiling(
        facts,
        n_prompt=test.n_prompt,
        n_gen=test.n_gen,
        n_depth=n_depth,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        type_k=type_k,
        type_v=type_v,
        flash_attn=str(flash_attn),
        bandwidth_bytes_per_s=bandwidth,
        peak_flop_per_s=peak,
    )


def _no_peak_reason(*, needs_compute: bool) -> str:
    return NO_PEAK_HERE if needs_compute else "none was used: generation is held against the memory"


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
    reasons = _reasons(kept)
    if kept.get("ceiling_is_reference"):
        return columns, reasons, []
    flags = _flags(columns["ceiling_fraction"])
    if "estimate_reason" in kept:  # several streams stay far below a line of memory alone
        flags = [flag for flag in flags if flag != "far_below_ceiling"]
    return columns, reasons, flags


def _reasons(kept: Mapping[str, Any]) -> dict[str, str]:
    """Column -> why it is None."""
    reasons = {}
    if kept.get("reason"):
        missing = [name for name in ("ceiling_tps", "pencil_ceiling_tps") if kept.get(name) is None]
        reasons = dict.fromkeys(missing, str(kept["reason"]))
    elif "estimate_reason" in kept:
        reasons["pencil_ceiling_tps"] = PENCIL_IS_OF_ONE
    for told, column in _TOLD_REASONS.items():
        if kept.get(told):
            reasons[column] = str(kept[told])
    return reasons


def _share(median_tps: float | None, ceiling_tps: float | None) -> float | None:
    return None if median_tps is None or not ceiling_tps else median_tps / ceiling_tps


def _flags(fraction: float | None) -> list[str]:
    if fraction is None:
        return []
    if fraction > BROKEN_ABOVE:
        return ["above_ceiling"]
    return ["far_below_ceiling"] if fraction < SUSPICIOUS_BELOW else []
