"""Frozen records from the JSON values that they were written as, checked by their annotations.

Unknown keys are passed over, so that a newer version may add some; anything else that does not fit
is a ValueError that names the field.
"""

from __future__ import annotations

import math
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

Record = TypeVar("Record")


def read_record(kind: type[Record], plain: object) -> Record:
    """The record that `asdict` and JSON made `plain` of. Raises ValueError where it does not fit."""
    if not isinstance(plain, dict) or not is_dataclass(kind):
        raise ValueError(f"{kind.__name__} is not an object")
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in plain:
            try:
                values[field.name] = _checked(hints[field.name], plain[field.name])
            except ValueError as problem:
                raise ValueError(f"{kind.__name__}.{field.name}: {problem}") from None
    try:
        return typing.cast("Record", kind(**values))
    except TypeError as problem:  # a field without a default is missing
        raise ValueError(f"{kind.__name__}: {problem}") from None


def _checked(hint: Any, value: Any) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        (hint,) = (kind for kind in inner if kind is not type(None))
        return _checked(hint, value)
    if origin is tuple:
        return _checked_tuple(inner, value)
    if origin is typing.Literal:
        if value not in inner:
            raise ValueError(f"{value!r:.60} is none of {inner}")
        return value
    if is_dataclass(hint) and isinstance(hint, type):
        return read_record(hint, value)
    return _checked_scalar(hint, value)


def _checked_tuple(inner: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    if inner[1:] == (Ellipsis,):
        return tuple(_checked(inner[0], part) for part in value)
    if len(inner) != len(value):
        raise ValueError(f"not a list of {len(inner)}")
    return tuple(_checked(kind, part) for kind, part in zip(inner, value, strict=True))


def _checked_scalar(hint: Any, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and is_number and math.isfinite(value):
        return float(value)
    if hint in (int, str, bool) and type(value) is hint:
        return value
    raise ValueError(f"{value!r:.60} is no {getattr(hint, '__name__', hint)}")
