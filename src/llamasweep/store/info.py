"""run.json: a `RunInfo` as JSON text and back. Opens no file."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from llamasweep.errors import StoreError
from llamasweep.results.records import RunInfo
from llamasweep.store.migrate import check_version

_TABLES_READABLE = "the tables beside it can still be read: llamasweep.load_results(folder)"
_FIELDS = {field.name for field in dataclasses.fields(RunInfo)}


def info_text(info: RunInfo) -> str:
    """Indented JSON. A number that is not finite becomes null, since JSON has no word for it."""
    return json.dumps(_plain(dataclasses.asdict(info)), indent=2, allow_nan=False) + "\n"


def info_from_text(text: str, where: str) -> RunInfo:
    """The run's facts; keys that are not known here are dropped.

    Raises StoreError where the text is damaged, incomplete, or of a newer schema.
    """
    try:
        document = json.loads(text)
        version = document["schema_version"]
    except (ValueError, TypeError, KeyError) as problem:
        raise StoreError(f"{where} is damaged: {problem}", hint=_TABLES_READABLE) from problem
    check_version(version if isinstance(version, int) else None, where)
    try:
        return RunInfo(**{key: value for key, value in document.items() if key in _FIELDS})
    except TypeError as problem:
        raise StoreError(f"{where} is incomplete: {problem}", hint=_TABLES_READABLE) from problem


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
