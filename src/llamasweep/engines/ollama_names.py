"""Names of models on an Ollama: which can be one, and those that we give, so that nothing but our own is ever removed. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from llamasweep.errors import UsageError, quoted

RAW_TEMPLATE = "{{ .Prompt }}"
"""The prompt as it is given, so that a tag at its start comes first."""
OWN_PREFIX = "llamasweep-"
"""Models with this prefix were made by us and may be removed by us."""
CELL_PREFIX = f"{OWN_PREFIX}cell-"
"""Those that hold the parameters of one cell, and no weights of their own; they are gone when it is measured."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,199}")


def checked_name(name: str) -> str:
    """The model's name. Raises UsageError for what can be none."""
    if _NAME.fullmatch(name) is None or ".." in name:
        raise UsageError(f"{quoted(name)} is no name of an Ollama model")
    return name


def checked_own_name(name: str) -> str:
    """Only models with our prefix are made or removed. Raises UsageError for others."""
    if not name.startswith(OWN_PREFIX):
        raise UsageError(f"{quoted(name)} is not a model of llamasweep's own")
    return checked_name(name)


def own_name(
    base: str, parameters: Mapping[str, object], template: str | None = RAW_TEMPLATE
) -> str:
    """A name that says what is in it: the same base, parameters and template have the same one."""
    return OWN_PREFIX + _content(base, parameters, template)


def cell_name(owner: str, base: str, parameters: Mapping[str, object], template: str | None) -> str:
    """The same for the model of one cell. owner: eight hex digits, so that nobody removes what others still use."""
    return f"{CELL_PREFIX}{owner}-{_content(base, parameters, template)}"


def is_of_cell(name: str, owner: str) -> bool:
    """Whether this owner made the model for a cell, under the name as Ollama lists it."""
    pattern = rf"{CELL_PREFIX}{re.escape(owner)}-[0-9a-f]{{16}}(:latest)?"
    return re.fullmatch(pattern, name) is not None


def _content(base: str, parameters: Mapping[str, object], template: str | None) -> str:
    said = json.dumps([base, sorted(parameters.items()), template], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]
