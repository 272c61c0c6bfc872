"""Rules between the keys of a sweep file: which go together, which exclude one another. Collects faults, raises none. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llamasweep.sweep import axes as ax

_SOURCES = ("path", "glob", "synth", "ollama", "served")
_ENGINES_OF: dict[str, tuple[str, ...]] = {
    "mode": ("ollama",),
    "pull": ("ollama",),
    "same_weights": ("ollama",),
    "template": ("ollama", "openai"),
    "base_url": ("ollama", "openai"),
    "key_variable": ("openai",),
}
"""Keys that only some engines have."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


def check_models(raw: object, engine: object, faults: ax.Faults) -> None:
    """Rules between the keys of one model."""
    for index, entry in dicts(raw):
        place = ("models", index)
        given = [key for key in _SOURCES if entry.get(key) is not None]
        if given == ["path", "served"]:
            given = ["served"]  # the file is looked at for ceilings, the server has it already
        if len(given) != 1:
            faults.add(place, "needs exactly one of path, glob, synth, ollama and served")
            continue
        _check_quants(entry, given[0], place, faults)
        _check_engine(given[0], engine, place, faults)


def _check_quants(
    entry: Mapping[str, Any], given: str, place: tuple[str | int, ...], faults: ax.Faults
) -> None:
    has_quants = bool(entry.get("quants"))
    has_gap = "{quant}" in str(entry[given])
    if given == "path" and has_gap and not has_quants:
        faults.add(place, "the path holds {quant}, but there are no quants to fill it with")
    elif given == "path" and has_quants and not has_gap:
        faults.add(place, "has quants, but its path does not hold {quant}")
    elif given not in ("path", "synth") and has_quants:
        faults.add(place, f"quants go with path or synth, not with {given}")


def _check_engine(
    given: str, engine: object, place: tuple[str | int, ...], faults: ax.Faults
) -> None:
    if given == "ollama" and engine != "ollama":
        faults.add(place, "a model of Ollama needs `engine: ollama`")
    elif given == "served" and engine != "openai":
        faults.add(place, "a served model needs `engine: openai`")
    elif engine == "openai" and given != "served":
        faults.add(place, "`engine: openai` needs `served`, the name that the server has for it")


def check_server(data: Mapping[str, Any], faults: ax.Faults) -> None:
    """Keys of servers stand only where their engine does."""
    engine = data.get("engine")
    for key, engines in _ENGINES_OF.items():
        if data.get(key) not in (None, False) and engine not in engines:
            faults.add((key,), f"goes with engine {' or '.join(engines)} only")
    name = data.get("key_variable")
    if isinstance(name, str) and not _VARIABLE.fullmatch(name):
        faults.add(
            ("key_variable",), "is not a name of a variable; the key itself never stands here"
        )


def check_env(raw: object, faults: ax.Faults) -> None:
    """Names of variables."""
    for name in raw if isinstance(raw, dict) else ():
        if not _VARIABLE.fullmatch(name):
            faults.add(("env", name), "is not a name of a variable")


def dicts(items: object) -> list[tuple[int, dict[str, Any]]]:
    """The mappings of a list with their places; [] for what is no list."""
    if not isinstance(items, list):
        return []
    return [(i, item) for i, item in enumerate(items) if isinstance(item, dict)]
