"""A sweep as run.json keeps it, written as a sweep file again: the same cells, every setting explicit. Pure.

Takes plain values from a record of any version, so that what it does not know is passed on under its own name. Reading the
file back is the work of `schema`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Plain = Mapping[str, Any]

_LEFT_OUT = frozenset({"file", "kv_types", "on_finish"})
"""file: where it once was. kv_types stand in the matrix. on_finish: a record holds no more than its program."""


def sweep_document(resolved: Plain) -> dict[str, Any]:
    """Keys and values of a sweep file that asks the same as the record does; `extends` and words are already resolved.

    What is None in the record is left out, for the file says it so.
    """
    document: dict[str, Any] = {}
    for key, value in resolved.items():
        if key in _LEFT_OUT or (value is None and key != "telemetry_interval_s"):
            continue
        name, write = _KEYS.get(key, (key, _as_it_is))
        written = write(value)
        if written not in ({}, []):
            document[name] = written
    return _with_kv_types(document, resolved.get("kv_types"))


def _with_kv_types(document: dict[str, Any], kv_types: object) -> dict[str, Any]:
    if isinstance(kv_types, list | tuple) and kv_types:
        matrix = document.get("matrix")
        known = matrix if isinstance(matrix, dict) else {}
        document["matrix"] = {**known, "kv_type": list(kv_types)}
    return document


def _as_it_is(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _models(value: Any) -> Any:
    return [_without_none(entry) for entry in value] if isinstance(value, list) else value


def _without_none(entry: Any) -> Any:
    """A mapping without what is not given, at every depth."""
    if not isinstance(entry, Mapping):
        return entry
    return {k: _without_none(v) for k, v in entry.items() if v is not None and v not in ([], ())}


def _included(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [_include(entry) if isinstance(entry, Mapping) else entry for entry in value]


def _include(entry: Plain) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, name in (("models", "model"), ("quants", "quant")):
        if entry.get(key):
            written[name] = list(entry[key])
    if entry.get("tests"):
        written["test"] = [_test(test) for test in entry["tests"]]
    return written | {name: list(values) for name, values in entry.get("axes") or ()}


def _test(test: Any) -> Any:
    """`pp512+tg128` of the tokens of a test."""
    if not isinstance(test, Mapping):
        return test
    parts = [f"{word}{n}" for word, n in (("pp", test["n_prompt"]), ("tg", test["n_gen"])) if n]
    return "+".join(parts)


def _excluded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [
        {key: _condition(asked) for key, asked in entry.get("where") or ()}
        if isinstance(entry, Mapping)
        else entry
        for entry in value
    ]


def _condition(asked: Plain) -> Any:
    values = list(asked["values"])
    return values if asked["operator"] == "in" else f"{asked['operator']} {values[0]}"


def _cooldown(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    names = {"wait_s": "wait", "until_gpu_below_c": "gpu_below", "until_cpu_below_c": "cpu_below"}
    return {name: value[key] for key, name in names.items() if value.get(key) is not None}


def _telemetry(value: Any) -> Any:
    return "off" if value is None else {"interval": value}


def _per_second(unit: str) -> Callable[[Any], Any]:
    """With its unit, which the file must have; to a billionth, in plain digits."""

    def write(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        digits = f"{value:.9f}".rstrip("0").rstrip(".")
        return f"{digits} {unit}"

    return write


_KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "models": ("models", _models),
    "axes": ("matrix", _as_it_is),
    "include": ("include", _included),
    "exclude": ("exclude", _excluded),
    "timeout_s": ("timeout", _as_it_is),
    "max_time_s": ("max_time", _as_it_is),
    "address_space_limit_bytes": ("address_space_limit", _as_it_is),
    "cooldown": ("cooldown", _cooldown),
    "telemetry_interval_s": ("telemetry", _telemetry),
    "bandwidth_bytes_per_s": ("bandwidth", _per_second("B/s")),
    "peak_flop_per_s": ("compute", _per_second("FLOPS")),
}
"""Name in the record -> name in the file, and how its value is written there; any other as it is."""
