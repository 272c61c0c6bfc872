"""Numbers out of GGUF metadata, scalar or one per layer, bounded before anything counts with them. Pure.

Knows how llama.cpp reads a key that may be a number or an array. Knows no key by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import ModelFacts

MAX_NUMBER = 2**31 - 1
"""Largest count or width that is believed; llama.cpp keeps them in 32 bits."""

_Made = TypeVar("_Made")


class Keys:
    """The keys below one architecture's name."""

    def __init__(self, metadata: Mapping[str, object], arch: str) -> None:
        self._metadata = metadata
        self._arch = arch

    def has(self, key: str) -> bool:
        """Whether the file has the key at all."""
        return f"{self._arch}.{key}" in self._metadata

    def is_array(self, key: str) -> bool:
        """Whether the key holds one value per layer."""
        return isinstance(self._metadata.get(f"{self._arch}.{key}"), list | tuple)

    def number(self, key: str, default: int = 0) -> int:
        """A whole number from 0, `default` where the key is absent, the first one of an array.

        Raises ModelFileError where something else stands there.
        """
        value = self._metadata.get(f"{self._arch}.{key}", default)
        if isinstance(value, list | tuple):
            value = value[0] if value else default
        return self._checked(key, value)

    def per_layer(self, key: str, n_layers: int, default: int = 0) -> tuple[int, ...]:
        """One number per layer: an array's first n_layers, or a scalar repeated.

        Raises ModelFileError where an array is shorter than the model or holds something else.
        """
        value = self._metadata.get(f"{self._arch}.{key}", default)
        if not isinstance(value, list | tuple):
            return (self._checked(key, value),) * n_layers
        if len(value) < n_layers:
            raise ModelFileError(
                f"the key '{self._arch}.{key}' has {len(value)} values for {n_layers} layers"
            )
        return tuple(self._checked(key, entry) for entry in value[:n_layers])

    def _checked(self, key: str, value: object) -> int:
        if isinstance(value, int) and 0 <= value <= MAX_NUMBER:
            return int(value)
        raise ModelFileError(f"the key '{self._arch}.{key}' is not a number from 0 to {MAX_NUMBER}")


class _Same:
    """A model as a dictionary key by identity: hashing thousands of tensors costs more than the arithmetic."""

    __slots__ = ("facts",)

    def __init__(self, facts: ModelFacts) -> None:
        self.facts = facts

    def __hash__(self) -> int:
        return id(self.facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.facts is self.facts


def once_per_model(function: Callable[[ModelFacts], _Made]) -> Callable[[ModelFacts], _Made]:
    """The function, remembering its value for the last 32 models; a sweep asks for each cell."""
    remembered = lru_cache(maxsize=32)(lambda same: function(same.facts))

    def of(facts: ModelFacts) -> _Made:
        return remembered(_Same(facts))

    of.__doc__ = function.__doc__
    of.__name__ = function.__name__
    return of
