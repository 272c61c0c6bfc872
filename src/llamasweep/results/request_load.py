"""What a test asks of a server at once: one new request, several streams together, or a prompt that it has read before.

The rate of several streams is a sum over all users, and most of a warm prompt is not read: neither is what one person gets.
So the load is part of the question, as the depth is, and no setting that could be the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

DEFAULTS: dict[str, int | str] = {"concurrency": 1, "prompt_cache": "cold"}
"""Parameters that make the load, with what is so where the sweep names none."""

_Row = TypeVar("_Row")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class RequestLoad:
    """is_warm: the server has read the same prompt before. n_streams: requests that it answers at once. The least first."""

    is_warm: bool = False
    n_streams: int = 1

    @property
    def is_one_new_request(self) -> bool:
        """Whether it is what one person asks for the first time."""
        return not self.is_warm and self.n_streams == 1


def request_load(settings: Mapping[str, object]) -> RequestLoad:
    """The load that these requested parameters make; engines without streams answer one new request."""
    streams = settings.get("concurrency")
    return RequestLoad(
        is_warm=settings.get("prompt_cache") == "warm",
        n_streams=streams if isinstance(streams, int) and streams > 0 else 1,
    )


def least_load(rows: Sequence[_Row], load: Callable[[_Row], RequestLoad]) -> list[_Row]:
    """The rows of the least load among them: one new request where any row asks for that."""
    least = min((load(row) for row in rows), default=None)
    return [row for row in rows if load(row) == least]
