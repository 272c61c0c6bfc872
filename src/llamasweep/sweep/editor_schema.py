"""The axes' part of the JSON Schema that editors use: every spelling of every axis, derived. Pure."""

from __future__ import annotations

from typing import Any

from llamasweep.sweep.axes import FIXED_WORDS, KV_TYPE, MACHINE_WORDS
from llamasweep.sweep.parameters import BY_NAME, PARAMETERS, Parameter

_RANGE = r"-?\d+(\s*-\s*-?\d+(\s*[+*]\s*\d+)?)?"
_RANGE_TEXT = rf"^\s*{_RANGE}(\s*,\s*{_RANGE})*\s*$"
_COMPARISON = {"type": "string", "pattern": "^(>=|<=|!=|==|>|<)"}
_TEST = {
    "type": "string",
    "pattern": r"^(pp\d+|tg\d+|pg\d+[+,]\d+|pp\d+\+tg\d+)$",
    "examples": ["pp512", "tg128", "pg512+128"],
}
DURATION = {"type": ["string", "number"], "examples": ["90s", "10m", "1h30m"]}
"""How a duration may be written."""
_OFF = {"enum": ["off", False]}
_NAME = {"type": ["string", "integer"]}
_SWITCH = [True, False, "on", "off", "yes", "no", 0, 1]


def with_axes(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` with matrix, include, exclude and tests spelled out."""
    axes = _axes()
    tests = one_or_many(_TEST)
    subjects = {"model": one_or_many(_NAME), "quant": one_or_many(_NAME), "test": tests}
    tokens = {"type": ["integer", "string", "array"]}
    excluded = {key: {"anyOf": [value, _COMPARISON]} for key, value in {**axes, **subjects}.items()}
    excluded |= {"build": one_or_many(_NAME), "n_prompt": tokens, "n_gen": tokens}
    properties = schema["properties"]
    properties["tests"] = {**tests, "description": properties["tests"]["description"]}
    for key, flat in (("cooldown", DURATION), ("telemetry", {"anyOf": [DURATION, _OFF]})):
        whole = properties[key]
        properties[key] = {"anyOf": [flat, {"$ref": whole["$ref"]}]} | {
            k: v for k, v in whole.items() if k != "$ref"
        }
    properties["matrix"] |= _closed(axes)
    properties["include"]["items"] = _closed({**axes, **subjects})
    properties["exclude"]["items"] = _closed(excluded)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def one_or_many(item: dict[str, Any]) -> dict[str, Any]:
    """A value or a list of them."""
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _axes() -> dict[str, Any]:
    axes: dict[str, Any] = {}
    for parameter in PARAMETERS:
        for word in (parameter.name, *parameter.words):
            axes[word] = {**one_or_many(_value(parameter)), "description": parameter.doc}
    axes[KV_TYPE] = {
        **one_or_many(_value(BY_NAME["type_k"])),
        "description": "type of K and V, both the same",
    }
    return axes


def _value(parameter: Parameter) -> dict[str, Any]:
    if parameter.kind == "bool":
        return {"enum": _SWITCH}
    if parameter.kind == "choice":
        switches = [s for s in (*_SWITCH, -1) if "on" in parameter.choices]
        return {"enum": [*parameter.choices, *(s for s in switches if s not in parameter.choices)]}
    if parameter.kind == "str":
        return {"type": ["string", "integer"]}
    words = [*MACHINE_WORDS.get(parameter.name, ()), *FIXED_WORDS.get(parameter.name, {})]
    number: dict[str, Any] = {"type": "integer"}
    if parameter.minimum is not None:
        number["minimum"] = parameter.minimum
    text = {"type": "string", "pattern": _RANGE_TEXT}
    return {"anyOf": [number, text, *([{"enum": words}] if words else [])]}
