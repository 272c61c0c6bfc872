"""The tables of docs/sweep-file.md, derived from the declarations that the code itself uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamasweep.sweep.axes import FIXED_WORDS, KV_TYPE, MACHINE_WORDS
from llamasweep.sweep.parameters import PARAMETERS, Parameter

_COST = {
    "process": "new process",
    "model": "model load",
    "context": "new context",
    "request": "nothing",
}


def axis_table() -> str:
    """Markdown: every axis, its other spellings, its values, and what a change costs."""
    rows = ["| axis | also written | values | a change costs | meaning |", "|---|---|---|---|---|"]
    for parameter in PARAMETERS:
        words = ", ".join(f"`{word}`" for word in parameter.words) or "–"
        rows.append(
            f"| `{parameter.name}` | {words} | {_values(parameter)} | {_cost(parameter)} "
            f"| {parameter.doc} |"
        )
    rows.append(
        f"| `{KV_TYPE}` | – | as `type_k` | as `type_k` | sets `type_k` and `type_v` to the same value |"
    )
    return "\n".join(rows)


def _values(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return ", ".join(f"`{choice}`" for choice in parameter.choices)
    if parameter.kind == "bool":
        return "`on`, `off`"
    if parameter.kind == "str":
        return "text"
    words = (*MACHINE_WORDS.get(parameter.name, ()), *FIXED_WORDS.get(parameter.name, {}))
    least = "" if parameter.minimum is None else f" ≥ {parameter.minimum}"
    return f"whole number{least}" + "".join(f", `{word}`" for word in words)


def _cost(parameter: Parameter) -> str:
    cost = _COST[parameter.scope]
    if parameter.scope == "context" and not parameter.keeps_depth_state:
        return "new context; above depth 0 a process of its own"
    return cost


def key_table(schema: Mapping[str, Any]) -> str:
    """Markdown: every key of a sweep with its default, from the JSON Schema of `schema.json_schema`."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    needed = set(schema.get("required", ()))
    for key, value in schema["properties"].items():
        default = value.get("default")
        shown = "needed" if key in needed else _shown(default)
        rows.append(f"| `{key}` | {shown} | {value['description']} |")
    return "\n".join(rows)


def _shown(default: object) -> str:
    if default in (None, [], {}):
        return "–"
    if isinstance(default, dict):
        parts = ", ".join(f"{k}: {v:g}" for k, v in default.items() if v is not None)
        return f"`{{{parts}}}`"
    if isinstance(default, bool):
        return "`on`" if default else "`off`"
    return f"`{default}`"
