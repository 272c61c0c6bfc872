"""What a test asks of a server: one new request, several streams together, a prompt that it has read before, a turn of a talk.

The rate of several streams is a sum over all users, most of a warm prompt is not read, and a later turn is a longer prompt:
none of them is what one person gets for a new request.
So the load is part of the question, as the depth is, and no setting that could be the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

DEFAULTS: dict[str, int | str] = {"concurrency": 1, "prompt_cache": "cold", "turn": 1}
"""Parameters that make the load, with what is so where the sweep names none."""

_Row = TypeVar("_Row")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class RequestLoad:
    """is_warm: the server has read the same prompt before, or in a conversation its earlier turns. n_streams: requests that it
    answers at once. turn: of a conversation, 1 for a request alone. The least first."""

    is_warm: bool = False
    n_streams: int = 1
    turn: int = 1

    @property
    def is_one_new_request(self) -> bool:
        """Whether it is what one person asks for the first time."""
        return self == RequestLoad()


def request_load(settings: Mapping[str, object]) -> RequestLoad:
    """The load that these requested parameters make; engines without streams answer one new request."""
    return RequestLoad(
        is_warm=settings.get("prompt_cache") == "warm",
        n_streams=_count(settings.get("concurrency")),
        turn=_count(settings.get("turn")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def least_load(rows: Sequence[_Row], load: Callable[[_Row], RequestLoad]) -> list[_Row]:
    """The rows of the least load among them: one new request where any row asks for that."""
    least = min((load(row) for row in rows), default=None)
    return [row for row in rows if load(row) == least]
