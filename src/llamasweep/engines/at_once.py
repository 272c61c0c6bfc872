"""Several requests at the same moment: connections are opened first, and all are sent when the last one is open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from llamasweep.engines.http_exchange import RequestError
from llamasweep.errors import UsageError

MAX_STREAMS = 512

_Answer = TypeVar("_Answer")
Ask = Callable[[int, Callable[[], object]], _Answer]
"""Makes the request with that index, and calls the second argument on its open connection, just before it sends."""


def ask_at_once(n_streams: int, ask: Ask[_Answer]) -> tuple[_Answer | RequestError, ...]:
    """The outcome of each; a failure is a value, so that the others are kept.

    Raises UsageError for more than 512 streams.
    """
    if not 0 < n_streams <= MAX_STREAMS:
        raise UsageError(f"{n_streams} streams at once; from 1 to {MAX_STREAMS} can be measured")
    outcomes: list[_Answer | RequestError] = [
        RequestError("garbage_output", "the request ended without an outcome")
        for _ in range(n_streams)
    ]
    gate = threading.Barrier(n_streams)
    has_passed = [False] * n_streams

    def run(index: int) -> None:
        def wait_for_all() -> None:
            gate.wait()
            has_passed[index] = True

        try:
            outcomes[index] = ask(index, wait_for_all)
        except RequestError as problem:
            outcomes[index] = problem
        except threading.BrokenBarrierError:
            outcomes[index] = RequestError("not_reachable", "another stream could not connect")
        finally:
            if not has_passed[index]:
                gate.abort()  # nobody waits for one that never comes, whatever kept it

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n_streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(outcomes)


def first_reason(outcomes: tuple[_Answer | RequestError, ...]) -> RequestError | None:
    """Why a stream failed: one that fails keeps the others from starting, so its own words go first. None where none did."""
    problems = [outcome for outcome in outcomes if isinstance(outcome, RequestError)]
    return next((p for p in problems if p.kind != "not_reachable"), next(iter(problems), None))
