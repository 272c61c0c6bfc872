"""run.json: a `RunInfo` as JSON text and back. Opens no file."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from llamasweep.errors import StoreError, plain_reason
from llamasweep.results.records import RunInfo
from llamasweep.store.migrate import check_version

_TABLES_READABLE = "the tables beside it can still be read: llamasweep.load_results(folder)"
_FIELDS = {field.name for field in dataclasses.fields(RunInfo)}
_REQUIRED = tuple(
    field.name
    for field in dataclasses.fields(RunInfo)
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
)
_KINDS: dict[str, type] = {
    "run_id": str, "sweep_name": str, "started_at": str, "sweep_resolved": dict, "machine": dict, "versions": dict,
    "builds": list, "models": list, "groups": list, "notes": list, "n_cells_planned": int, "seed": int,
}  # fmt: skip
_ITEM_KINDS: dict[str, type] = {"builds": dict, "models": dict, "groups": dict, "notes": str}
"""What readers rely on: a run.json that was damaged by a disk or a hand is refused at once, in words."""


def info_text(info: RunInfo) -> str:
    """Indented JSON. A number that is not finite becomes null, since JSON has no word for it."""
    return json.dumps(_plain(dataclasses.asdict(info)), indent=2, allow_nan=False) + "\n"


def info_from_text(text: str, where: str) -> RunInfo:
    """The run's facts; keys that are not known here are dropped.

    Raises StoreError where the text is damaged, incomplete, or of a newer schema.
    """
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise StoreError(f"{where} is damaged: it holds no object", hint=_TABLES_READABLE)
        version = document["schema_version"]
    except (ValueError, TypeError, KeyError) as problem:
        raise StoreError(
            f"{where} is damaged: {plain_reason(problem)}", hint=_TABLES_READABLE
        ) from problem
    except RecursionError as problem:
        raise StoreError(
            f"{where} is damaged: nested too deeply", hint=_TABLES_READABLE
        ) from problem
    check_version(version if isinstance(version, int) else None, where)
    if wrong := _of_wrong_kind(document):
        raise StoreError(f"{where} is damaged: {', '.join(wrong)} cannot be so")
    if missing := [name for name in _REQUIRED if name not in document]:
        raise StoreError(
            f"{where} is incomplete: {', '.join(missing)} missing", hint=_TABLES_READABLE
        )
    return RunInfo(**{key: value for key, value in document.items() if key in _FIELDS})


def _of_wrong_kind(document: Mapping[str, Any]) -> list[str]:
    """Fields that hold something else than they must; one that is missing is told elsewhere."""
    wrong = []
    for name, kind in _KINDS.items():
        value = document.get(name, kind())
        item_kind = _ITEM_KINDS.get(name, object)
        if not isinstance(value, kind) or (
            isinstance(value, list) and not all(isinstance(item, item_kind) for item in value)
        ):
            wrong.append(name)
    return wrong


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
