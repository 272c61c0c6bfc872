"""What llama-bench really did: its row and the library's log against what the cell asked. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llamasweep.engines.base import Verified
from llamasweep.engines.llama_bench_output import LogFacts
from llamasweep.sweep.cell import Cell
from llamasweep.sweep.parameters import PARAMETERS, Parameter, Scalar

_ECHO_ONLY_WHEN_AUTO: dict[str, frozenset[Any]] = {
    "flash_attn": frozenset({"auto"}),
    "n_gpu_layers": frozenset({-1}),
    "load_mode": frozenset({"auto"}),
    "lazy_mode": frozenset({"auto"}),
    "devices": frozenset({"auto"}),
}
"""Fields whose echo is a request, not an effect, at these values."""

_NOT_ECHOED = frozenset({"numa", "prio", "rpc"})
_FLASH_WORDS = {-1: "auto", 0: "off", 1: "on"}
"""The bools of old builds are 0 and 1."""
_MAX_INT = 2**63 - 1
_MAX_TPS = 1e18
_MAX_LOST_ROWS = 16
"""How many lines in a row may be garbage before pairing gives up; a search over all cells takes minutes for thousands."""


def verify(
    cell: Cell, row: Mapping[str, Any], facts: LogFacts, load: LogFacts, *, cpu_only: bool
) -> Verified:
    """Compare what a row and the log say with what the cell asked. cpu_only: the build sees no GPU."""
    applied = _applied_by_row(row)
    applied |= _applied_by_log(facts, load, cpu_only=cpu_only)
    differences = []
    for name, asked in cell.params:
        if name in _NOT_ECHOED or name not in applied:
            continue
        if name == "n_gpu_layers" and _are_all_layers(asked, load):
            continue
        if not _same(name, asked, applied[name]):
            differences.append(f"{name}: asked {asked}, applied {applied[name]}")
    flags = _difference_flags(differences)
    if facts.is_unpinned or load.is_unpinned:
        flags.append("unpinned")
    return Verified(
        applied=applied,
        differences=tuple(differences),
        mismatch=_mismatch(cell, row),
        flags=tuple(flags),
        n_ctx=facts.n_ctx,
        n_layers_offloaded=load.n_layers_offloaded,
        columns=_own_columns(row),
    )


def pair_rows(cells: Sequence[Cell], rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """The cell's index for each row: in order, and normally one by one.

    Where a row answers another cell than its turn says and fits a later one, those between have no row: their line was
    garbage. A row that fits nowhere stays at its turn, and `verify` says what is wrong with it.
    """
    indices: list[int] = []
    turn = 0
    for row in rows:
        echoed = _applied_by_row(row)
        later = range(turn, min(turn + _MAX_LOST_ROWS, len(cells)))
        place = next((i for i in later if _fits(cells[i], row, echoed)), turn)
        if place >= len(cells):
            break
        indices.append(place)
        turn = place + 1
    return indices


def _fits(cell: Cell, row: Mapping[str, Any], echoed: Mapping[str, Scalar]) -> bool:
    """Whether the row's echo is that of this cell."""
    return _mismatch(cell, row) is None and all(
        _same(name, asked, echoed[name]) for name, asked in cell.params if name in echoed
    )


def _difference_flags(differences: list[str]) -> list[str]:
    """The engine always clamps batches to the context, which is worth a word but no doubt."""
    clamped = [d for d in differences if d.startswith(("n_batch:", "n_ubatch:"))]
    flags = ["clamped"] if clamped else []
    return flags + (["applied_differs"] if len(clamped) < len(differences) else [])


def _mismatch(cell: Cell, row: Mapping[str, Any]) -> str | None:
    asked = {"n_prompt": cell.test.n_prompt, "n_gen": cell.test.n_gen, "n_depth": cell.n_depth}
    wrong = [f"{k} {row[k]} instead of {v}" for k, v in asked.items() if k in row and row[k] != v]
    return f"the engine measured {', '.join(wrong)}" if wrong else None


def _applied_by_row(row: Mapping[str, Any]) -> dict[str, Scalar]:
    """Echoed fields under their canonical names, without those that only repeat a request."""
    applied: dict[str, Scalar] = {}
    for parameter in PARAMETERS:
        value = _as_kind(parameter, row.get(parameter.name))
        if value is not None and value not in _ECHO_ONLY_WHEN_AUTO.get(parameter.name, ()):
            applied[parameter.name] = value
    if "load_mode" not in row:
        applied |= _old_load_mode(row)
    return applied


def _as_kind(parameter: Parameter, value: object) -> Scalar | None:
    """The field as a value of its parameter; None where it is no such value."""
    if parameter.name == "flash_attn":
        return _FLASH_WORDS.get(value) if isinstance(value, int) else None
    if parameter.kind == "bool":
        return bool(value) if isinstance(value, int) and value in {0, 1} else None
    if parameter.kind == "int":
        is_int = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_INT
        return value if is_int else None  # type: ignore[return-value]
    return value if isinstance(value, str) else None


def _old_load_mode(row: Mapping[str, Any]) -> dict[str, Scalar]:
    """use_mmap and use_direct_io of builds before b10105, as a load mode."""
    if row.get("use_direct_io"):
        return {"load_mode": "dio"}
    if "use_mmap" in row:
        return {"load_mode": "mmap" if row["use_mmap"] else "none"}
    return {}


def _applied_by_log(facts: LogFacts, load: LogFacts, *, cpu_only: bool) -> dict[str, Scalar]:
    """What the library's log knows better than the echo: clamped batches, resolved flash attention, load mode."""
    found: dict[str, Scalar] = {}
    if facts.n_batch is not None:
        found["n_batch"] = facts.n_batch
    if facts.n_ubatch is not None:
        found["n_ubatch"] = facts.n_ubatch
    if facts.flash_attn is not None:
        found["flash_attn"] = facts.flash_attn
    if load.load_mode not in {None, "auto"}:
        found["load_mode"] = str(load.load_mode)
    if load.n_layers_offloaded is not None:
        found["n_gpu_layers"] = load.n_layers_offloaded
    elif cpu_only:
        found["n_gpu_layers"] = 0
    return found


def _are_all_layers(asked: Scalar, load: LogFacts) -> bool:
    """More layers than there are, such as 99, is how people say "all"."""
    total = load.n_layers_total
    return (
        isinstance(asked, int)
        and total is not None
        and load.n_layers_offloaded == total
        and asked >= total
    )


def _same(name: str, asked: Scalar, applied: Scalar) -> bool:
    if asked == "auto" or (name == "n_gpu_layers" and asked == -1):
        return True  # any outcome is what was asked for; the applied column tells which
    if name == "tensor_split":
        return _shares(asked) == _shares(applied)
    if name == "devices":
        return str(asked).replace(",", "/") == str(applied)
    if name == "cpu_mask":
        return _mask(asked) == _mask(applied)
    return asked == applied


def _shares(value: Scalar) -> list[float]:
    parts = str(value).replace(",", "/").split("/")
    try:
        shares = [float(p) for p in parts]
    except ValueError:
        return []
    while shares and shares[-1] == 0:
        shares.pop()
    return shares


def _mask(value: Scalar) -> int | str:
    try:
        return int(str(value), 16)
    except ValueError:
        return str(value)


_ENGINE_TEXT = {
    "cpu_name": "cpu_info",
    "gpu_name": "gpu_info",
    "build_backends": "backends",
    "model_type": "model_type",
}


def _own_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the engine says of itself; 0 and "unknown" mean that it does not know."""
    facts: dict[str, Any] = {}
    for column, key in _ENGINE_TEXT.items():
        if isinstance(row.get(key), str) and row[key]:
            facts[column] = row[key]
    mean = _number(row.get("avg_ts"))
    if mean is not None:
        facts["engine_mean_tps"] = mean
    number, commit = row.get("build_number"), row.get("build_commit")
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        facts["build_number"] = number
    if isinstance(commit, str) and commit not in {"", "unknown"}:
        facts["build_commit"] = commit
    return facts


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MAX_TPS else None  # neither nan nor inf is less
