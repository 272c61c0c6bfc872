"""How a field of a record is declared: its sentence and its unit, from which columns and docs are derived."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def column(doc: str, *, unit: str | None = None) -> Any:
    """A field that may be absent; `unit` as in names: bytes, ns, s, tps, w, j, c, mhz, fraction, count."""
    return field(default=None, metadata={"doc": doc, "unit": unit})


def needed(doc: str, *, unit: str | None = None) -> Any:
    """A field that every row has."""
    return field(metadata={"doc": doc, "unit": unit})
